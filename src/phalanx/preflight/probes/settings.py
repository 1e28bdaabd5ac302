"""Settings of libraries that should be the same on all ranks, and how sure it is that a difference harms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from phalanx.model import Unchecked
from phalanx.preflight.agreement import split_of_variable
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.host_facts import HostFacts
from phalanx.preflight.options import CheckOptions

# Ranks that choose another algorithm, protocol or number of channels wait for messages that nobody sends.
_HANG = (
    "NCCL_ALGO", "NCCL_PROTO", "NCCL_BUFFSIZE", "NCCL_NTHREADS", "NCCL_LL_THRESHOLD", "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_NET", "NCCL_IB_DISABLE",
    "NCCL_COLLNET_ENABLE", "NCCL_CROSS_NIC", "NCCL_NVLS_ENABLE", "HOROVOD_CPU_OPERATIONS", "HOROVOD_GPU_OPERATIONS", "HOROVOD_CACHE_CAPACITY", "HOROVOD_HIERARCHICAL_ALLREDUCE",
)  # fmt: skip
_SLOW = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NCCL_P2P_DISABLE",
    "NCCL_P2P_LEVEL",
    "NCCL_SHM_DISABLE",
    "NCCL_NSOCKS_PERTHREAD",
)
_NUMBERS = (
    "NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "CUBLAS_WORKSPACE_CONFIG", "TF_ENABLE_ONEDNN_OPTS", "TF_DETERMINISTIC_OPS", "TF_CUDNN_DETERMINISTIC", "XLA_FLAGS",
    "TF_XLA_FLAGS", "XLA_USE_BF16", "XLA_DOWNCAST_BF16", "JAX_ENABLE_X64", "JAX_DEFAULT_DTYPE_BITS", "JAX_DEFAULT_MATMUL_PRECISION", "JAX_NUMPY_DTYPE_PROMOTION",
    "ACCELERATE_MIXED_PRECISION", "KERAS_BACKEND",
)  # fmt: skip


def examine(all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """Not set counts as a value: the library then chooses by itself."""
    for harm, names in (("hang", _HANG), ("slow", _SLOW), ("numbers", _NUMBERS)):
        for name in names:
            split = split_of_variable(all_facts, name)
            if split is not None:
                accused = split.odd if split.common else ()
                harmed = () if accused else tuple(one.label for one in all_facts)
                yield observe("setting-differs", accused, harmed, name=name, harm=harm, **split.fields())

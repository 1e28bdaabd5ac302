"""Tells what an exception is that no rule knows: by its class and by the module that raised it, never by the words of its message."""

from __future__ import annotations

import re
from collections.abc import Mapping

from phalanx.diagnosis.threads import is_feeding
from phalanx.model import Event, Frame, Stage
from phalanx.model.lazy import lazy
from phalanx.sources.readers.tracebacks import TRUNCATED

_Stages = Mapping[Stage | None, str]
_COMMUNICATION: _Stages = {None: "fail.communication-error", Stage.COMM: "comm.setup-failure", Stage.PREP: "prep.communication-error"}  # fmt: skip
_WAITING: _Stages = {None: "perf.hang", Stage.COMM: "comm.hang-timeout", Stage.PREP: "prep.hang-timeout"}
_DEVICE: _Stages = {None: "fail.device-error", Stage.PREP: "prep.device-error", Stage.COMM: "prep.device-error"}
_GRAPH: _Stages = {None: "fail.graph-execution-error", Stage.PREP: "prep.model-loading-failure"}
_SAVED: _Stages = {None: "fail.checkpoint-unusable", Stage.PREP: "prep.model-loading-failure"}
_SHAPES: _Stages = {None: "fail.tensor-mismatch", Stage.PREP: "prep.model-loading-failure"}
_PATH: _Stages = {None: "fail.path-error", Stage.PREP: "prep.data-loading-failure"}
_SETUP: _Stages = {None: "comm.setup-failure"}
_DATA: _Stages = {None: "prep.data-loading-failure"}
_PREP_ONLY: _Stages = {None: "prep.other", Stage.TRAIN: "fail.other"}
_BY_STAGE: _Stages = {
    None: "fail.other",
    Stage.BUILD: "build.import-error",
    Stage.COMM: "comm.setup-failure",
    Stage.PREP: "prep.other",
    Stage.TRAIN: "fail.other",
}


def _named(symptoms: _Stages, *names: str) -> dict[str, _Stages]:
    return dict.fromkeys(names, symptoms)


# The class of the exception, wherever it was raised.
_BY_CLASS: dict[str, _Stages] = {
    **_named({None: "build.import-error"}, "ImportError", "ModuleNotFoundError"),
    **_named({None: "fail.out-of-memory"}, "MemoryError", "OutOfMemoryError", "ResourceExhaustedError", "RESOURCE_EXHAUSTED"),
    **_named({None: "fail.not-implemented"}, "NotImplementedError", "UnimplementedError", "UNIMPLEMENTED"),
    **_named({None: "fail.attribute-not-found"}, "AttributeError", "NameError", "UnboundLocalError"),
    **_named(_PATH, "FileNotFoundError", "NotADirectoryError", "IsADirectoryError", "PermissionError", "FileExistsError", "NOT_FOUND", "PERMISSION_DENIED"),
    **_named(_COMMUNICATION, "DistBackendError", "DistNetworkError", "DistStoreError", "DistError", "HorovodInternalError", "UnavailableError", "AbortedError"),
    **_named(_COMMUNICATION, "ConnectionError", "ConnectionResetError", "ConnectionRefusedError", "ConnectionAbortedError", "BrokenPipeError", "EnforceNotMet", "IoException", "UNAVAILABLE", "ABORTED", "CANCELLED"),
    **_named(_WAITING, "TimeoutError", "DeadlineExceededError", "TimeoutException", "DEADLINE_EXCEEDED"),
    **_named(_SETUP, "RendezvousError", "RendezvousConnectionError", "RendezvousTimeoutError", "RendezvousClosedError"),
    **_named(_DEVICE, "AcceleratorError", "CudaError", "DeferredCudaCallError"),
    **_named({None: "fail.checkpoint-unusable"}, "UnpicklingError", "CheckpointException", "SafetensorError"),
    **_named(_DATA, "UnicodeDecodeError", "DataLossError", "OutOfRangeError", "UnidentifiedImageError", "Empty", "DatasetGenerationError", "EmptyDataError", "ParserError"),
    **_named(_PREP_ONLY, "PicklingError", "ArgumentError", "JSONDecodeError", "ConfigAttributeError"),
    **_named(_GRAPH, "InvalidArgumentError", "InternalError", "FailedPreconditionError", "INVALID_ARGUMENT", "FAILED_PRECONDITION", "INTERNAL"),
}  # fmt: skip
_STATUS = lazy(r"^\S*(?:Xla|Jax)RuntimeError: ([A-Z_]{5,}):")  # their class is always the same, their status is not

# In which part of which library it was raised: the innermost frames below the user's own, the first that is known.
_BY_MODULE: tuple[tuple[re.Pattern[str], _Stages], ...] = (
    (lazy(r"torch/utils/data/|tensorflow/python/data/|data_adapter|petastorm|webdataset|/datasets/|pandas/|pyarrow/|/PIL/|h5py/_hl/dataset|codecs|/queues?\.py"), _DATA),
    (lazy(r"torch/distributed/checkpoint/|torch/serialization|saving/|saved_model|checkpoint|safetensors|orbax/|flax/serialization|h5py/_hl/files"), _SAVED),
    (lazy(r"torch/distributed/(?:elastic|run|launcher|rendezvous|device_mesh)|cluster_resolver/|jax/_src/(?:distributed|clusters/)|horovod/(?:spark|runn?e?r?|ray)/"), _SETUP),
    (lazy(r"torch/distributed/(?:fsdp|_composable|tensor|_tensor)|deepspeed/runtime|horovod/.*(?:optimizer|gradient)|jax/_src/(?:\w*sharding|mesh|partition_spec|shard_map|array)\b"), _GRAPH),
    (lazy(r"torch/distributed/|torch/nn/parallel/comm\b|torch/cuda/nccl\b|horovod/|mpi4py|collective_util|cross_device|multihost_utils"), _COMMUNICATION),
    (lazy(r"torch/cuda/|pynvml|jax/_src/xla_bridge"), _DEVICE),
    (lazy(r"torch/nn/functional|torch/nn/modules/(?:conv|linear|loss|sparse|normalization|batchnorm|rnn)|keras/.*(?:ops|layers|losses|metrics)/|jax/_src/(?:lax|numpy|ops|nn|scipy|dtypes)\b"), _SHAPES),
    (lazy(r"torch/optim/|optimizers?/|optax/"), {None: "fail.graph-execution-error", Stage.PREP: "prep.other"}),
    (lazy(r"/json/|/yaml/|configparser|omegaconf|hydra|argparse|tomllib|absl/flags|multiprocessing/|concurrent/futures"), _PREP_ONLY),
    (lazy(r"torch/nn/parallel|torch/autograd|torch/_dynamo|torch/_inductor|torch/_tensor\.py|jax/_src/|flax/|equinox/|keras/|tensorflow/"), _GRAPH),
)  # fmt: skip
_FEEDS = ("torch/utils/data/", "tensorflow/python/data/")
_OF_DATA = lazy(r"^(?:__getitem__|__getitems__|__next__|__iter__|__len__|\w*collate\w*)$")
# What launchers set, as the interpreter names it when it is missing.
_RENDEZVOUS = lazy(
    r"^KeyError: '(?:\w*(?:RANK|WORLD|MASTER|COORDINATOR|NPROC|NNODES)\w*|SLURM_\w+|OMPI_\w+|TF_CONFIG)'"
)
# The language itself raises these at a statement of the user's; others at such a line are a library's, whose native frames do not show.
_OF_THE_LANGUAGE = frozenset(
    ("KeyError", "IndexError", "NameError", "UnboundLocalError", "ZeroDivisionError", "AttributeError", "UnicodeDecodeError", "RecursionError", "StopIteration")
)  # fmt: skip
_RAISES = lazy(r"(?:^|[:;] )(?:raise|assert)\b")


def symptom_of(event: Event, stage: Stage | None) -> str:
    """The symptom of an exception that no rule knows."""
    if event.source == "build":
        return "build.install-failure"
    if stage is Stage.BUILD:
        return "build.import-error"
    if _RENDEZVOUS.search(event.text):
        return "comm.setup-failure"
    if is_about_data(event):
        return "prep.data-loading-failure"
    if raised_by_user(event) and class_of(event) not in ("AttributeError", "NameError", "UnboundLocalError"):
        return _at(_BY_STAGE, stage)
    found = _BY_CLASS.get(class_of(event)) or _by_module(event)
    return _at(found or _BY_STAGE, stage)


def class_of(event: Event) -> str:
    """`KeyError`; the status where XLA's one class stands for all of them."""
    if status := _STATUS.search(event.text):
        return status[1]
    return str(event.data.get("type", "")).rsplit(".", 1)[-1].rsplit("::", 1)[-1]


def raised_by_user(event: Event) -> Frame | None:
    """The user's own frame, if a statement there raised it, or the language itself at that statement."""
    frame = event.frames[-1] if event.frames else None
    if frame is None or not frame.is_user_code:
        return None
    return frame if class_of(event) in _OF_THE_LANGUAGE or _RAISES.search(frame.source) else None


def is_about_data(event: Event) -> bool:
    """Whether the user's code that failed is what a data loader calls, or what fills a queue."""
    if is_feeding(event):
        return True
    last = max((index for index, frame in enumerate(event.frames) if frame.is_user_code), default=-1)
    feeds = [frame for frame in event.frames[: last + 1] if any(mark in frame.path for mark in _FEEDS)]
    own = [frame for frame in event.frames if frame.is_user_code]
    return bool(feeds) or any(_OF_DATA.match(frame.function) for frame in own)


def _by_module(event: Event) -> _Stages | None:
    if class_of(event) == TRUNCATED and event.rank is not None and event.frames[-1].function == "_engine_run_backward":
        return _COMMUNICATION  # gradients are exchanged in the backward pass of ranks
    for frame in reversed(event.frames):
        if frame.is_user_code:
            return None
        for pattern, symptoms in _BY_MODULE:
            if pattern.search(frame.path):
                return symptoms
    return None


def _at(symptoms: _Stages, stage: Stage | None) -> str:
    return symptoms.get(stage, symptoms[None])

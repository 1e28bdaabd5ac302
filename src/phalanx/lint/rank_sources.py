"""Where a program reads its rank: calls and variables of the environment, for the whole job and within the host."""

from __future__ import annotations

import ast

from phalanx.lint.infer import Inference
from phalanx.lint.tree import Scope

GLOBAL_CALLS = frozenset({"torch.distributed.get_rank", "horovod.torch.rank", "horovod.tensorflow.rank", "horovod.keras.rank", "horovod.rank", "deepspeed.comm.get_rank", "deepspeed.utils.get_rank", "torch_xla.core.xla_model.get_ordinal", "byteps.torch.rank", "bps.rank", "jax.process_index"})  # fmt: skip
LOCAL_CALLS = frozenset({"torch.distributed.get_node_local_rank", "horovod.torch.local_rank", "horovod.tensorflow.local_rank", "horovod.keras.local_rank", "horovod.local_rank", "deepspeed.comm.get_local_rank", "byteps.torch.local_rank"})  # fmt: skip
OTHER_CALLS = frozenset({"torch_xla.core.xla_model.is_master_ordinal", "transformers.Trainer.is_world_process_zero", "transformers.Trainer.is_local_process_zero", "torch.distributed.get_group_rank"})  # fmt: skip
RANK_VARIABLES = frozenset(
    {"RANK", "SLURM_PROCID", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "HOROVOD_RANK", "GROUP_RANK", "NODE_RANK"}
)
_JOB_VARIABLES = RANK_VARIABLES - {"GROUP_RANK", "NODE_RANK"}
LOCAL_VARIABLES = frozenset(
    {"LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "HOROVOD_LOCAL_RANK", "MPI_LOCALRANKID"}
)
_DEPTH = 4


def rank_kind(node: ast.expr, scope: Scope, inference: Inference, depth: int = _DEPTH) -> str:
    """`global` or `local` if an expression is nothing but this rank's number in the job or on its host."""
    origins = inference.origins(node, scope) if depth else ()
    kinds = {_kind(made, where, inference, depth) for made, where in origins}
    return kinds.pop() if len(kinds) == 1 else ""


def _kind(node: ast.expr, scope: Scope, inference: Inference, depth: int) -> str:
    name = inference.dotted(node.func, scope) if isinstance(node, ast.Call) else None
    key: object = None
    if isinstance(node, ast.Subscript) and inference.dotted(node.value, scope) == "os.environ":
        key = inference.constant(node.slice, scope)
    elif isinstance(node, ast.Call):
        if name == "builtins.int" and node.args:
            return rank_kind(node.args[0], scope, inference, depth - 1)
        key = environment_key(node, name, inference, scope)
    if name in GLOBAL_CALLS or key in _JOB_VARIABLES:
        return "global"
    return "local" if name in LOCAL_CALLS or key in LOCAL_VARIABLES else ""


def environment_key(call: ast.Call, name: str | None, inference: Inference, scope: Scope) -> object:
    """The variable that `os.environ.get(…)` or `os.getenv(…)` reads."""
    if name in ("os.environ.get", "os.getenv", "os.environ.pop") and call.args:
        return inference.constant(call.args[0], scope)
    return None

"""Which collective operations does a piece of code reach, in what order, through which functions of the project?"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from phalanx.lint.fields import PROPERTIES
from phalanx.lint.forwards import Forwards
from phalanx.lint.infer import DDP, ENGINE, FSDP, FULLY_SHARD, Inference
from phalanx.lint.syntax import argument, argument_of, decorated, returns
from phalanx.lint.tree import Module, Scope

_TORCH = "all_reduce all_gather all_gather_object all_gather_into_tensor _all_gather_base broadcast broadcast_object_list reduce reduce_scatter reduce_scatter_tensor _reduce_scatter_base scatter scatter_object_list gather gather_object barrier monitored_barrier all_to_all all_to_all_single all_reduce_coalesced init_process_group new_group new_subgroups new_subgroups_by_enumeration split_group"  # fmt: skip
_HOROVOD = "allreduce allreduce_ allreduce_async allreduce_async_ grouped_allreduce allgather allgather_object broadcast broadcast_ broadcast_parameters broadcast_optimizer_state broadcast_object broadcast_variables broadcast_global_variables alltoall reducescatter barrier join"  # fmt: skip
_ACCELERATE = "wait_for_everyone gather gather_for_metrics reduce pad_across_processes save_state get_state_dict"
_HOROVOD_MODULES = ("horovod.torch", "horovod.tensorflow", "horovod.keras", "horovod.mxnet", "byteps.torch")
COLLECTIVES: dict[str, str] = {
    **{f"torch.distributed.{name}": name for name in _TORCH.split()},
    **{f"torch.distributed.nn.{name}": name for name in _TORCH.split()},
    **{f"torch.distributed.nn.functional.{name}": name for name in _TORCH.split()},
    **{f"deepspeed.comm.{name}": name for name in _TORCH.split()},
    **{f"{module}.{name}": name for module in _HOROVOD_MODULES for name in _HOROVOD.split()},
    **{f"accelerate.Accelerator.{name}": name for name in _ACCELERATE.split()},
    **{f"accelerate.PartialState.{name}": name for name in ("wait_for_everyone",)},
    **{f"accelerate.utils.{name}": name for name in ["gather", "gather_object", "broadcast", "broadcast_object_list", "reduce", "wait_for_everyone"]},
    **{f"torch.distributed.checkpoint.state_dict.{name}": name for name in ("get_model_state_dict", "get_state_dict", "get_optimizer_state_dict", "set_model_state_dict", "set_state_dict")},
    **{f"torch.distributed.checkpoint.{name}": f"checkpoint.{name}" for name in ("save", "load", "save_state_dict", "load_state_dict", "async_save")},
    **{f"{FSDP}.{name}": name for name in ("state_dict", "optim_state_dict", "full_optim_state_dict", "clip_grad_norm_", "summon_full_params", "load_state_dict")},
    **{f"{ENGINE}.{name}": f"engine.{name}" for name in ("save_checkpoint", "load_checkpoint", "save_16bit_model", "save_fp16_model", "backward", "step")},
    **{f"lightning.Fabric.{name}": f"fabric.{name}" for name in ("barrier", "all_gather", "all_reduce", "broadcast", "save")},
    **{f"lightning.Trainer.{name}": f"trainer.{name}" for name in ("save_checkpoint", "fit", "test", "validate", "predict")},
    **{f"transformers.Trainer.{name}": f"trainer.{name}" for name in ("train", "evaluate", "predict")},
    **{f"tensorflow.distribute.MultiWorkerMirroredStrategy.{name}": f"strategy.{name}" for name in ("run", "reduce", "gather")},
    "torch_xla.core.xla_model.rendezvous": "rendezvous",
    DDP: "DistributedDataParallel()",
    FSDP: "FullyShardedDataParallel()",
}  # fmt: skip
_OF_SHARDED = frozenset({"get_model_state_dict", "get_state_dict", "get_optimizer_state_dict", "set_model_state_dict", "set_state_dict"})  # fmt: skip
_KERAS, _FITS = ("keras.Sequential.", "keras.Model."), (".fit", ".evaluate", ".predict")
BARRIERS = frozenset({"barrier", "monitored_barrier", "wait_for_everyone"})
POINT_TO_POINT = {f"torch.distributed.{name}": name for name in ("send", "recv", "isend", "irecv")}
SYNCHRONISERS = frozenset(
    {DDP, FSDP, FULLY_SHARD, "accelerate.Accelerator.prepare", *(f"{m}.DistributedOptimizer" for m in _HOROVOD_MODULES)}
)
_GROUP_POSITION = {"barrier": 0, "monitored_barrier": 0, "all_reduce": 2, "broadcast": 2, "all_gather": 2, "all_gather_object": 2, "all_gather_into_tensor": 2, "broadcast_object_list": 2, "all_to_all": 2, "reduce": 3, "gather": 3, "gather_object": 3, "scatter": 3, "reduce_scatter": 3, "all_to_all_single": 4}  # fmt: skip
_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPOUND = (ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.ExceptHandler)
_WRAPS = ("Parallel", "FSDP", "DDP", "fully_shard", "DistributedOptimizer", "prepare")
_DEPTH = 6


@dataclass(frozen=True, slots=True)
class Operation:
    """A collective that code reaches: `call` is the line in the code asked about, `inner` where it really is."""

    name: str
    call: ast.Call
    scope: Scope
    inner: ast.Call
    inner_scope: Scope
    model: str = ""  # the parameter whose model is called; only callers know whether that is a collective

    @property
    def is_indirect(self) -> bool:
        """Whether a function of the project lies between."""
        return self.call is not self.inner


class Collectives:
    """Finds operations; what functions reach is remembered."""

    def __init__(self, inference: Inference) -> None:
        self.inference = inference
        self.forwards = Forwards(inference)
        self._of_function: dict[Scope, tuple[Operation, ...]] = {}
        self._of: dict[ast.Call, tuple[Operation, ...]] = {}
        self._calls: dict[ast.AST, tuple[ast.Call, ...]] = {}
        self._property_names: dict[Module, set[str]] = {}
        self._properties_of: dict[Module, set[str]] = {}
        self._present: dict[Module, bool] = {}
        self._syncs: dict[Module, bool] = {}

    def operation(self, call: ast.Call, scope: Scope) -> str | None:
        """The collective over all ranks that a call is; None for others and for those of a smaller group."""
        name = self.inference.dotted(call.func, scope)
        found = COLLECTIVES.get(name or "")
        if found in _OF_SHARDED and not (call.args and self.forwards.is_sharded(call.args[0], scope)):
            return None  # of a model that is not sharded yet, or elsewhere, it is no collective
        if found is not None:
            return None if self._has_group(call, found, scope) else found
        if (
            name is not None
            and name.startswith(_KERAS)
            and call.func.__class__ is ast.Attribute
            and name.endswith(_FITS)
        ):
            return (
                f"model.{name.rpartition('.')[2]}"
                if "MultiWorkerMirroredStrategy" in scope.module.source.text
                else None
            )
        if isinstance(call.func, ast.Attribute) and call.func.attr == "backward" and self.synchronises(scope.module):
            return "backward"
        return self._of_trainer(call, scope) or self.forwards.collective(call.func, scope)

    def _of_trainer(self, call: ast.Call, scope: Scope) -> str | None:
        """What a Lightning module or its trainer exchanges: `self.all_gather`, `self.log(…, sync_dist=True)`."""
        func = call.func
        if not isinstance(func, ast.Attribute) or "ightning" not in scope.module.source.text:
            return None
        if func.attr == "barrier" and getattr(func.value, "attr", "") == "strategy":
            return "trainer.strategy.barrier"
        if func.attr not in ("log", "log_dict", "all_gather") or getattr(func.value, "id", "") != "self":
            return None
        owner = self.inference.owner_of(scope)
        if owner is None or "lightning.LightningModule" not in self.inference.bases(owner):
            return None
        synced = any(k.arg == "sync_dist" and getattr(k.value, "value", None) is True for k in call.keywords)
        return f"self.{func.attr}" if synced or func.attr == "all_gather" else None

    def _has_group(self, call: ast.Call, name: str, scope: Scope) -> bool:
        given = next((k.value for k in call.keywords if k.arg in ("group", "process_group", "process_set", "pg")), None)
        if given is None and name in _GROUP_POSITION:
            given = argument(call, _GROUP_POSITION[name], "group")
        if given is None or (isinstance(given, ast.Constant) and given.value is None):
            return False
        dotted = self.inference.dotted(given, scope) or ""
        return not dotted.endswith("WORLD")

    def synchronises(self, module: Module) -> bool:
        """Whether backward passes of a file exchange gradients: its program wraps a model or an optimizer."""
        if module not in self._syncs:
            program = self.inference.project.program(module)
            calls = (item for m in program if any(word in m.source.text for word in _WRAPS) for item in m.calls)
            self._syncs[module] = any(self.inference.dotted(call.func, s) in SYNCHRONISERS for call, s in calls)
        return self._syncs[module]

    def reached(self, nodes: Iterable[ast.AST], scope: Scope, depth: int = _DEPTH) -> list[Operation]:
        """The operations of statements or expressions in the order of evaluation."""
        found: list[Operation] = []
        rest = list(nodes)
        for number, node in enumerate(rest):
            if isinstance(node, ast.If) and (_jumps(node.body) or _jumps(node.orelse)):
                if self._asks_nesting(node.test, scope):
                    break  # `if inside > 0: return`: whether the rest runs depends on the callers
                # One side leaves here: the longer of the two paths.
                later = self.reached(rest[number + 1 :], scope, depth)
                sides = [self.reached(block, scope, depth) for block in (node.body, node.orelse)]
                paths = [
                    side if _jumps(block) else [*side, *later]
                    for side, block in zip(sides, (node.body, node.orelse), strict=True)
                ]
                return [*found, *self._of_node(node.test, scope, depth), *max(paths, key=len)]
            found += self._of_node(node, scope, depth)
        return found

    def _asks_nesting(self, test: ast.expr, scope: Scope) -> bool:
        """Whether a condition reads a global that the project counts up and down, itself or by a function."""
        for node in ast.walk(test):
            function = self.inference.symbol(node.func, scope) if isinstance(node, ast.Call) else None
            results = returns(function) if function is not None and function.is_function else []
            if function is not None and any(_reads_counter(result, function.module) for result in results):
                return True
        return _reads_counter(test, scope.module)

    def _of_node(self, node: ast.AST, scope: Scope, depth: int) -> list[Operation]:
        """Of two branches the one with more operations: on one path only one of them runs."""
        if isinstance(node, ast.If):
            sides = [self.reached(node.body, scope, depth), self.reached(node.orelse, scope, depth)]
            return [*self._of_node(node.test, scope, depth), *max(sides, key=len)]
        if isinstance(node, _COMPOUND):
            return [found for child in ast.iter_child_nodes(node) for found in self._of_node(child, scope, depth)]
        return [found for call in self._calls_of(node, scope) for found in self._of_call(call, scope, depth)]

    def present(self, module: Module) -> bool:
        """Whether any call of a file reaches an operation; most files are done with this question."""
        known = self._present.get(module)
        if known is None:
            known = self._present[module] = any(self._of_call(call, scope, _DEPTH) for call, scope in module.calls)
        return known

    def _calls_of(self, node: ast.AST, scope: Scope) -> tuple[ast.Call, ...]:
        """The calls of a statement or expression; reading a property of the project is one too."""
        known = self._calls.get(node)
        if known is None:
            calls = list(calls_in(node))
            names = self._properties(scope.module)
            read = (n for n in ast.walk(node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load))
            if names and not isinstance(node, _NESTED):
                calls += [ast.copy_location(ast.Call(n, [], []), n) for n in read if n.attr in names]
            known = self._calls[node] = tuple(calls)
        return known

    def _properties(self, module: Module) -> set[str]:
        """The names of properties in a file's program that reach a collective."""
        found = self._property_names.get(module)
        if found is None:
            found = self._property_names[module] = set()  # properties within properties add nothing
            for other in self.inference.project.program(module):
                found |= self._own_properties(other)
        return found

    def _own_properties(self, module: Module) -> set[str]:
        found = self._properties_of.get(module)
        if found is None:
            found = self._properties_of[module] = set()
            for function in module.functions:
                is_property = function.owner is not None and decorated(function.node, PROPERTIES)
                if is_property and self.of_function(function):
                    found.add(getattr(function.node, "name", ""))
        return found

    def _of_call(self, call: ast.Call, scope: Scope, depth: int) -> tuple[Operation, ...]:
        known = self._of.get(call)
        if known is None:
            self._of[call] = ()  # recursion adds nothing
            known = self._of[call] = tuple(self._look(call, scope, depth))
        return known

    def _look(self, call: ast.Call, scope: Scope, depth: int) -> Iterator[Operation]:
        name = self.operation(call, scope)
        if name is not None:
            model = self._parameter(call.func, scope) if name.startswith("forward of") else ""
            yield Operation(name, call, scope, call, scope, model)
            return
        for function in self.inference.callees(call.func, scope) if depth else ():
            yield from self._through(call, scope, function, depth)

    def _through(self, call: ast.Call, scope: Scope, function: Scope, depth: int) -> Iterator[Operation]:
        """What a call reaches through a function of the project."""
        for operation in self.of_function(function, depth - 1):
            name: str | None = operation.name
            model = ""
            if operation.model:
                given = argument_of(call, function, operation.model)
                name = self.forwards.collective(given, scope) if given is not None else None
                model = self._parameter(given, scope) if given is not None else ""
            if name is not None:
                yield Operation(name, call, scope, operation.inner, operation.inner_scope, model)

    def _parameter(self, node: ast.expr, scope: Scope) -> str:
        """The name of a parameter that an expression is."""
        found = self.inference.reaching(node.id, node, scope) if isinstance(node, ast.Name) else []
        return node.id if isinstance(node, ast.Name) and any(b.kind == "param" for b, _ in found) else ""

    def of_function(self, function: Scope, depth: int = _DEPTH) -> tuple[Operation, ...]:
        """The operations that a call of a function makes."""
        known = self._of_function.get(function)
        if known is None:
            self._of_function[function] = ()  # recursion adds nothing
            body = [function.node.body] if isinstance(function.node, ast.Lambda) else function.body
            known = tuple(self.reached(body, function, depth))[:50]
            self._of_function[function] = known
        return known


def _reads_counter(node: ast.AST, module: Module) -> bool:
    names = {item.id for item in ast.walk(node) if isinstance(item, ast.Name)} & module.scope.bindings.keys()
    counts = [[b.node for b in module.scope.bindings[name] if b.kind == "augment"] for name in names]
    return any({type(n.op) for n in found if isinstance(n, ast.AugAssign)} >= {ast.Add, ast.Sub} for found in counts)


def _jumps(block: list[ast.stmt]) -> bool:
    return any(isinstance(statement, (ast.Return, ast.Raise, ast.Continue, ast.Break)) for statement in block)


def calls_in(node: ast.AST) -> Iterator[ast.Call]:
    """The calls of a statement or expression, inner before outer; functions that are only defined are left out."""
    if isinstance(node, _NESTED):
        return
    for child in ast.iter_child_nodes(node):
        yield from calls_in(child)
    if isinstance(node, ast.Call):
        yield node

"""Is a call of a wrapped model itself a collective? Sharded parameters are gathered, and DDP broadcasts buffers."""

from __future__ import annotations

import ast

from phalanx.lint.infer import DDP, ENGINE, FSDP, FULLY_SHARD, Inference
from phalanx.lint.resolve import Value
from phalanx.lint.syntax import parameters, position, returns
from phalanx.lint.tree import Module, Scope

SHARDED = frozenset({FSDP, FULLY_SHARD})
_DEPTH = 5
_WITH_BUFFERS = ("resnet", "resnext", "wide_resnet", "densenet", "mobilenet", "mnasnet", "efficientnet", "shufflenet", "inception", "googlenet", "regnet")  # fmt: skip
_LAYERS = ("torch.nn.BatchNorm", "torch.nn.SyncBatchNorm", "torch.nn.LazyBatchNorm")


class Forwards:
    """Answers for one project; classes are remembered."""

    def __init__(self, inference: Inference) -> None:
        self.inference = inference
        self._classes: dict[Scope, bool] = {}
        self._in_place: dict[Module, bool] = {}

    def collective(self, model: ast.expr, scope: Scope) -> str | None:
        """What calling a model does on all ranks at once; None if nothing, or if it is not known."""
        for value in self.inference.values(model, scope):
            if value.type in SHARDED:
                return "forward of the sharded model"
            if value.type == DDP and "unwrapped" not in value.tags and self._broadcasts(value):
                return "forward of the DDP model, which broadcasts its buffers,"
            if value.type == ENGINE and self._is_stage_3(value):
                return "forward of the ZeRO-3 model"
        return "forward of the sharded model" if self.is_sharded(model, scope) else None

    def is_sharded(self, model: ast.expr, scope: Scope, depth: int = _DEPTH) -> bool:
        """Whether a model is known to be sharded where an expression names it: wrapped, or changed by `fully_shard`."""
        if any(value.type in SHARDED for value in self.inference.values(model, scope)):
            return True
        if not depth or not self._shards_in_place(scope):
            return False
        if self._is_sharded_before(model, scope):
            return True
        if isinstance(model, ast.Name):
            found = self.inference.reaching(model.id, model, scope)
        else:
            found = self.inference.fields(model, scope) if isinstance(model, ast.Attribute) else []
        sources = [(b.value, at) for b, at in found if b.kind == "assign" and b.value is not None and not b.path]
        if isinstance(model, ast.Name):
            sources += [i for b, at in found if b.kind == "param" for i in self.inference.handed(at, model.id)]
        function = self.inference.symbol(model.func, scope) if isinstance(model, ast.Call) else None
        if function is not None and function.is_function:
            sources += [(result, function) for result in returns(function)]
        return any(self.is_sharded(source, at, depth - 1) for source, at in sources)

    def _shards_in_place(self, scope: Scope) -> bool:
        known = self._in_place.get(scope.module)
        if known is None:
            program = self.inference.project.program(scope.module)
            known = self._in_place[scope.module] = any("fully_shard" in module.source.text for module in program)
        return known

    def _is_sharded_before(self, model: ast.expr, scope: Scope) -> bool:
        """`fully_shard(model)` as a statement changes the model itself, also in a function that it is handed to."""
        text, owner = ast.unparse(model), scope.function.owner if scope.function is not None else None
        methods = [f for f in scope.module.functions if f.owner is owner] if text.startswith("self.") else []
        return any(
            bool(call.args)
            and (where in methods if where is not scope else _end(call) <= position(model))
            and ast.unparse(call.args[0]) == text
            and self._shards_first(call, scope)
            for call, where in scope.module.calls
        )

    def _shards_first(self, call: ast.Call, scope: Scope) -> bool:
        """Whether a call shards its first argument."""
        if self.inference.dotted(call.func, scope) == FULLY_SHARD:
            return True
        function = self.inference.symbol(call.func, scope)
        first = parameters(function)[:1] if function is not None and function.is_function else []
        return function is not None and any(
            where is function
            and [getattr(item, "id", "") for item in inner.args[:1]] == first
            and self.inference.dotted(inner.func, where) == FULLY_SHARD
            for inner, where in function.module.calls
        )

    def _broadcasts(self, value: Value) -> bool:
        """DDP broadcasts buffers in the first forward pass after a training step, `no_grad` or not."""
        call = value.node
        given = {item.arg: item.value for item in call.keywords} if isinstance(call, ast.Call) else {}
        off = self.inference.constant(given.get("broadcast_buffers"), value.scope) is False
        model = call.args[0] if isinstance(call, ast.Call) and call.args else given.get("module")
        return not off and model is not None and self._has_buffers(model, value.scope, _DEPTH)

    def _has_buffers(self, node: ast.expr, scope: Scope, depth: int) -> bool:
        if isinstance(node, ast.Call) and self._makes_buffers(node, scope, depth):
            return True
        return any(
            isinstance(value.node, ast.Call) and self._makes_buffers(value.node, value.scope, depth)
            for value in self.inference.values(node, scope)
        )

    def _makes_buffers(self, call: ast.Call, scope: Scope, depth: int) -> bool:
        """Whether a call makes a module with buffers, or holds one that does."""
        name = self.inference.dotted(call.func, scope) or ""
        if name.startswith(_LAYERS):
            return not any(k.arg == "track_running_stats" for k in call.keywords)
        if name.startswith("torchvision.models."):
            last = name.rpartition(".")[2]
            return last.startswith(_WITH_BUFFERS) or last.endswith("_bn")
        owner = self.inference.symbol(call.func, scope)
        if owner is not None and isinstance(owner.node, ast.ClassDef) and depth:
            return self._class_has_buffers(owner, depth - 1)
        if owner is not None and owner.is_function and depth:
            return any(self._has_buffers(result, owner, depth - 1) for result in returns(owner))
        parts = [*call.args, *(item.value for item in call.keywords)] if name.startswith("torch.nn.") else []
        inner = [part.value if isinstance(part, ast.Starred) else part for part in parts]
        inner += [item for part in inner if isinstance(part, (ast.List, ast.Tuple)) for item in part.elts]
        return any(isinstance(item, ast.Call) and self._makes_buffers(item, scope, depth) for item in inner)

    def _class_has_buffers(self, owner: Scope, depth: int) -> bool:
        known = self._classes.get(owner)
        if known is None:
            self._classes[owner] = False  # recursion adds nothing
            known = self._classes[owner] = any(
                getattr(call.func, "attr", "") == "register_buffer" or self._makes_buffers(call, scope, depth)
                for call, scope in owner.module.calls
                if scope.function is not None and scope.function.owner is owner
            )
        return known

    def _is_stage_3(self, value: Value) -> bool:
        """The configuration is a dictionary in the program that asks for stage 3."""
        call = value.node
        given = {item.arg: item.value for item in call.keywords} if isinstance(call, ast.Call) else {}
        config: ast.expr | None = given.get("config") or given.get("config_params")
        if isinstance(config, ast.Name):
            found = self.inference.reaching(config.id, config, value.scope)
            config = found[0][0].value if len(found) == 1 and not found[0][0].path else None
        zero = _item(config, "zero_optimization")
        stage = _item(zero, "stage")
        return isinstance(stage, ast.Constant) and stage.value == 3


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or 0, node.end_col_offset or 0


def _item(node: ast.expr | None, key: str) -> ast.expr | None:
    if not isinstance(node, ast.Dict):
        return None
    pairs = zip(node.keys, node.values, strict=True)
    return next((value for name, value in pairs if isinstance(name, ast.Constant) and name.value == key), None)

"""What an expression is: which framework function it names, of which class its value is, which constant it holds.

Names are followed to the assignments that can reach them, through the project's functions, tuples and `self` fields.
What cannot be known stays unknown; no rule fires on a guess.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from phalanx.lint.callables import PARTIAL, Callables
from phalanx.lint.fields import TUPLE
from phalanx.lint.project import Project
from phalanx.lint.resolve import Value
from phalanx.lint.syntax import argument, argument_of, default_of, first_argument, parameters, qualified, returns
from phalanx.lint.tree import Binding, Module, Scope

_DEPTH = 14
_MOST = 8  # values of one expression that are told apart
_SAME = frozenset({"to", "cuda", "cpu", "train", "eval", "half", "float", "double", "bfloat16", "requires_grad_", "share_memory"})  # fmt: skip
_KEEPERS = frozenset(
    {"torch.compile", "copy.deepcopy", "torch.nn.SyncBatchNorm.convert_sync_batchnorm", "torch.jit.script"}
)
DDP = "torch.nn.parallel.DistributedDataParallel"
FSDP = "torch.distributed.fsdp.FullyShardedDataParallel"
FULLY_SHARD = "torch.distributed.fsdp.fully_shard"
SPAWN = "torch.multiprocessing.spawn"
DATA_PARALLEL = "torch.nn.parallel.DataParallel"
ENGINE = "deepspeed.DeepSpeedEngine"
WRAPPERS = frozenset({DDP, FSDP, DATA_PARALLEL})


class Inference(Callables):
    """Answers for one project; every answer is remembered."""

    def __init__(self, project: Project) -> None:
        super().__init__(project)
        self._values: dict[tuple[ast.AST, Scope, tuple[int, ...]], tuple[Value, ...]] = {}
        self._callers: dict[Scope, list[tuple[ast.Call, Scope]]] = {}
        self._named_calls: dict[str, list[tuple[ast.Call, Scope]]] = {}
        self._apart: dict[Module, dict[str, list[tuple[ast.Call, Scope]]]] = {}  # files that only others import
        self._indexed: set[Module] = set()
        self.targets: list[Module] = []  # the files under analysis

    # Values

    def values(self, node: ast.expr, scope: Scope, path: tuple[int, ...] = ()) -> tuple[Value, ...]:
        """What an expression may be; empty if unknown."""
        key = (node, scope, path)
        known = self._values.get(key)
        if known is not None:
            return known
        if key in self._busy or len(self._busy) > _DEPTH:
            return ()
        self._busy.add(key)
        try:
            found = self._evaluate(node, scope, path)
        finally:
            self._busy.discard(key)
        distinct = tuple({(value.type, value.node): value for value in found}.values())[:_MOST]
        self._values[key] = distinct
        return distinct

    def _evaluate(self, node: ast.expr, scope: Scope, path: tuple[int, ...]) -> list[Value]:
        if isinstance(node, ast.Call):
            return self._call(node, scope, path)
        if isinstance(node, ast.Name):
            return [v for b, where in self.reaching(node.id, node, scope) for v in self._bound(b, where, path)]
        if isinstance(node, ast.Attribute):
            return self._field(node, scope, path)
        if isinstance(node, (ast.Tuple, ast.List)) and path:
            inside = node.elts[path[0]] if path[0] < len(node.elts) else None
            return list(self.values(inside, scope, path[1:])) if inside is not None else []
        if isinstance(node, ast.Subscript):
            return [v for b, where in self.items(node, scope) for v in self._bound(b, where, path)]
        if isinstance(node, ast.IfExp):
            return [*self.values(node.body, scope, path), *self.values(node.orelse, scope, path)]
        if isinstance(node, ast.BoolOp):
            return [value for part in node.values for value in self.values(part, scope, path)]
        if isinstance(node, (ast.NamedExpr, ast.Await)):
            return list(self.values(node.value, scope, path))
        return []

    def _bound(self, binding: Binding, scope: Scope, path: tuple[int, ...]) -> tuple[Value, ...]:
        if binding.kind == "with" and binding.value is not None:
            return self.values(binding.value, scope, path)
        if binding.kind == "assign" and binding.value is not None:
            return self.values(binding.value, scope, (*binding.path, *path))
        if binding.kind == "param" and isinstance(binding.node, ast.arg):
            handed = self.handed(scope, binding.node.arg)
            given = tuple(value for argument, where in handed for value in self.values(argument, where, path))
            default = default_of(scope, binding.node.arg) if not given else None
            given = given or (self.values(default, scope, path) if default is not None else ())
            return given or (self._declared(binding.node, scope) if not path else ())
        if binding.kind == "import":
            found = self.project.variable(binding.target, scope.module)
            return tuple(value for b, where in found[:_MOST] for value in self._bound(b, where, path))
        return ()

    def _declared(self, parameter: ast.arg, function: Scope) -> tuple[Value, ...]:
        """What an annotation says of a parameter, or the library that calls the method."""
        owner = function.owner
        if parameter.arg == "trainer" and owner is not None and "lightning.Callback" in self.bases(owner):
            return (Value("lightning.Trainer", _TRAINER, function),)
        note: ast.expr | None = parameter.annotation
        if isinstance(note, ast.Constant) and isinstance(note.value, str) and note.value.replace(".", "_").isidentifier():  # fmt: skip
            note = ast.parse(note.value, mode="eval").body
        if isinstance(note, ast.BinOp):
            note = note.left  # `X | None`
        if isinstance(note, ast.Subscript) and self.dotted(note.value, function.parent or function) == "typing.Optional":  # fmt: skip
            note = note.slice
        name = self.dotted(note, function.parent or function) if note is not None else None
        is_class = name is not None and name.rpartition(".")[2][:1].isupper() and not name.startswith("typing.")
        return (Value(name, note, function),) if is_class and name is not None and note is not None else ()

    # Callers

    def callers(self, function: Scope) -> list[tuple[ast.Call, Scope]]:
        """Calls of a function in its own file and in the files under analysis."""
        known = self._callers.get(function)
        if known is None:
            self._callers[function] = []  # recursion adds nothing
            found = [item for name in self._called_as(function) for item in self._calls_named(name, function.module)]
            known = self._callers[function] = [item for item in found if self._is(*item, function)]
        return known

    def _called_as(self, function: Scope) -> list[str]:
        """The names under which calls of a function or class stand in the text."""
        name = getattr(function.node, "name", "")
        if isinstance(function.node, ast.ClassDef):
            return [name, "cls"]
        if name == "__init__" and function.owner is not None:
            classes = [function.owner, *self.project.subclasses(function.owner)]
            return [*(getattr(owner.node, "name", "") for owner in classes), "cls", "__init__"]
        if name == "__call__" and function.owner is not None:
            return self._instances(function.owner)
        if isinstance(function.node, ast.Lambda):
            parent = function.module.parents.get(function.node, (None, ""))[0]
            targets = parent.targets if isinstance(parent, ast.Assign) else []
            return [target.id for target in targets if isinstance(target, ast.Name)]
        return [name] if name else []

    def _calls_named(self, name: str, module: Module) -> list[tuple[ast.Call, Scope]]:
        """Calls in the files under analysis, and in one file, in which a name is what is called or is handed on."""
        for other in self.targets[len(self._indexed) :]:
            self._indexed.add(other)
            _index_calls(other, self._named_calls)
        found = self._named_calls.get(name, [])
        if module in self._indexed:
            return found
        if module not in self._apart:
            _index_calls(module, self._apart.setdefault(module, {}))
        return [*self._apart[module].get(name, []), *found]

    def _instances(self, owner: Scope) -> list[str]:
        """The names of the variables and fields that hold objects of a class."""
        made = (where.module.statement(call) for call, where in self.callers(owner))
        targets = [t for item in made if isinstance(item, ast.Assign) for t in item.targets]
        return sorted({t.attr if isinstance(t, ast.Attribute) else getattr(t, "id", "") for t in targets} - {""})

    def _is(self, call: ast.Call, scope: Scope, function: Scope) -> bool:
        found = self.symbol(call.func, scope)
        if getattr(function.node, "name", "") == "__init__" and found is not None:
            found = self.member(found, "__init__") if isinstance(found.node, ast.ClassDef) else found
        return function in (found, self.symbol(call.args[0], scope) if call.args else None)

    def handed(self, function: Scope, parameter: str) -> list[tuple[ast.expr, Scope]]:
        """What callers hand to a parameter, that of `mp.spawn` included."""
        found = []
        for call, scope in self.callers(function):
            if self.dotted(call.func, scope) == SPAWN:
                packed = argument(call, 1, "args")
                names = parameters(function)
                place = names.index(parameter) - 1 if parameter in names else -1
                if isinstance(packed, ast.Tuple) and 0 <= place < len(packed.elts):
                    found.append((packed.elts[place], scope))
                continue
            is_partial = self.dotted(call.func, scope) == PARTIAL
            given = argument_of(call, function, parameter, after=1 if is_partial else 0)
            if given is not None:
                found.append((given, scope))
        return found[:4]

    def is_spawned(self, function: Scope) -> bool:
        """Whether `mp.spawn` calls it, so that its first parameter is the process's number."""
        return any(self.dotted(call.func, scope) == SPAWN for call, scope in self.callers(function))

    def _field(self, node: ast.Attribute, scope: Scope, path: tuple[int, ...]) -> list[Value]:
        found = [v for b, where in self.fields(node, scope) for v in self._bound(b, where, path)]
        if found or getattr(node.value, "id", "") == "self":
            is_trainer = node.attr == "trainer" and not found and self.dotted(node, scope) == "lightning.LightningModule.trainer"  # fmt: skip
            return [Value("lightning.Trainer", node, scope)] if is_trainer else found
        if node.attr == "module":
            return [
                replace(inner, tags=inner.tags | {"unwrapped"})
                for value in self.values(node.value, scope)
                for inner in self.inner(value)
            ]
        return []

    def inner(self, value: Value) -> tuple[Value, ...]:
        """The model inside of a wrapper."""
        if value.type in WRAPPERS and isinstance(value.node, ast.Call):
            argument = first_argument(value.node, "module")
            return self.values(argument, value.scope) if argument is not None else ()
        return ()

    def _call(self, node: ast.Call, scope: Scope, path: tuple[int, ...]) -> list[Value]:
        name = self.dotted(node.func, scope)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _SAME and not path:
            same = self.values(node.func.value, scope)
            if same:
                return [replace(value, tags=value.tags | {node.func.attr}) for value in same]
        if name is None:
            return self._made(node, scope) if not path else []
        if name == "accelerate.Accelerator.prepare":
            return self._prepared(node, scope, path)
        if name == "deepspeed.initialize":
            types = (ENGINE, "deepspeed.Optimizer", "deepspeed.DataLoader", "deepspeed.Scheduler")
            return [Value(types[path[0]], node, scope)] if path and path[0] < 4 else []
        if name in _KEEPERS and node.args:
            return list(self.values(node.args[0], scope, path))
        if name == FULLY_SHARD and not path:
            return [Value(FULLY_SHARD, node, scope)]
        symbol = self.symbol(node.func, scope)
        if symbol is not None and symbol.is_function:
            return self._returned(symbol, node, scope, path)
        if path:
            return []
        last = name.rpartition(".")[2].lstrip("_")
        if symbol is not None or last[:1].isupper() or name in _MAKERS or name.startswith("torchvision.models."):
            return [Value(_MAKERS.get(name, name), node, scope)]
        return []

    def _made(self, node: ast.Call, scope: Scope) -> list[Value]:
        """An object of a named tuple, or of a class that a variable or a table holds: `MODELS[name](…)`."""
        found = []
        for made, where in self.held(node.func, scope):
            if isinstance(made, ast.Call) and self.dotted(made.func, where) == TUPLE:
                found.append(Value(TUPLE, node, scope))
            owner = self.symbol(made, where) if isinstance(made, (ast.Name, ast.Attribute)) else None
            if owner is not None and isinstance(owner.node, ast.ClassDef):
                found.append(Value(qualified(owner), node, scope))
        return found

    def _prepared(self, node: ast.Call, scope: Scope, path: tuple[int, ...]) -> list[Value]:
        position = path[0] if path else 0
        if position >= len(node.args) or isinstance(node.args[position], ast.Starred):
            return []
        if not path and len(node.args) != 1:
            return []
        argument = node.args[position]
        known = self.values(argument, scope, path[1:])
        tag = frozenset({"prepared"})
        return [replace(value, tags=value.tags | tag) for value in known] or [Value("", argument, scope, tag)]

    def _returned(self, symbol: Scope, node: ast.Call, scope: Scope, path: tuple[int, ...]) -> list[Value]:
        found: list[Value] = []
        for result in returns(symbol):
            if isinstance(result, ast.Name) and not path:
                bound = symbol.bindings.get(result.id, [])
                if len(bound) == 1 and bound[0].kind == "param":
                    argument = argument_of(node, symbol, result.id)
                    found += self.values(argument, scope) if argument is not None else ()
                    continue
            found += self.values(result, symbol, path)
        return found


_TRAINER = ast.Name(id="trainer", ctx=ast.Load())
_MAKERS = {
    "torch.device": "torch.device",
    "argparse.ArgumentParser.parse_args": "argparse.Namespace",
    "torch.distributed.fsdp.wrap.wrap": FSDP,
}


def _index_calls(module: Module, index: dict[str, list[tuple[ast.Call, Scope]]]) -> None:
    for call, scope in module.calls:
        last = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        index.setdefault(last, []).append((call, scope))
        for item in call.args[:1]:
            if isinstance(item, ast.Name) and last in ("spawn", "Process", "run", "partial"):
                index.setdefault(item.id, []).append((call, scope))

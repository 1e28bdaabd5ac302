"""What an expression is: which framework function it names, of which class its value is, which constant it holds.

Names are followed to the assignments that can reach them, through the project's functions, tuples and `self` fields.
What cannot be known stays unknown; no rule fires on a guess.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from phalanx.lint.names import canonical
from phalanx.lint.project import Project
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


@dataclass(frozen=True, slots=True)
class Value:
    """One thing an expression may be: the class, the expression that made it, and what happened to it on the way."""

    type: str
    node: ast.expr
    scope: Scope
    tags: frozenset[str] = frozenset()


class Inference:
    """Answers for one project; every answer is remembered."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._dotted: dict[tuple[ast.AST, Scope], str | None] = {}
        self._values: dict[tuple[ast.AST, Scope, tuple[int, ...]], tuple[Value, ...]] = {}
        self._busy: set[object] = set()
        self._callers: dict[Scope, list[tuple[ast.Call, Scope]]] = {}
        self._named_calls: dict[Module, dict[str, list[tuple[ast.Call, Scope]]]] = {}
        self.targets: list[Module] = []  # the files under analysis

    # Names

    def dotted(self, node: ast.AST, scope: Scope) -> str | None:
        """The canonical dotted name of a name or attribute; methods as `class.method`. None if unknown."""
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return None
        key = (node, scope)
        if key not in self._dotted:
            self._dotted[key] = None  # a cycle is unknown
            self._dotted[key] = self._name(node, scope) if isinstance(node, ast.Name) else self._attribute(node, scope)
        return self._dotted[key]

    def _name(self, node: ast.Name, scope: Scope) -> str | None:
        found = self.reaching(node.id, node, scope)
        if not found:
            return f"builtins.{node.id}" if node.id.islower() or node.id.endswith("Error") else None
        binding, where = found[0]
        if binding.kind == "import":
            return canonical(binding.target)
        if binding.kind in ("def", "class"):
            return qualified(where.module.scopes[binding.node])
        if binding.kind == "assign" and not binding.path and isinstance(binding.value, (ast.Name, ast.Attribute)):
            return self.dotted(binding.value, where)
        return None

    def _attribute(self, node: ast.Attribute, scope: Scope) -> str | None:
        base = self.dotted(node.value, scope)
        if base is not None:
            return canonical(f"{base}.{node.attr}")
        if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            method = self.method(node.attr, scope)
            if method is not None:
                return qualified(method)
        for value in self.values(node.value, scope):
            if value.type:
                return f"{value.type}.{node.attr}"
        return None

    def method(self, name: str, scope: Scope) -> Scope | None:
        """`self.name` within a method: the method of this class or of a base within the project."""
        function = scope.function
        owner = function.owner if function is not None else None
        while function is not None and owner is None:
            function = function.parent.function if function.parent is not None else None
            owner = function.owner if function is not None else None
        return self.member(owner, name) if owner is not None else None

    def member(self, owner: Scope, name: str, depth: int = 5) -> Scope | None:
        """A method of a class, looked for in its bases too."""
        for binding in owner.bindings.get(name, ()):
            if binding.kind == "def":
                return owner.module.scopes[binding.node]
        if depth and isinstance(owner.node, ast.ClassDef) and owner.parent is not None:
            for base in owner.node.bases:
                found = self.symbol(base, owner.parent)
                if found is not None and isinstance(found.node, ast.ClassDef):
                    inherited = self.member(found, name, depth - 1)
                    if inherited is not None:
                        return inherited
        return None

    def bases(self, owner: Scope, depth: int = 5) -> set[str]:
        """Canonical names of all base classes, those outside of the project included."""
        found: set[str] = set()
        if isinstance(owner.node, ast.ClassDef) and owner.parent is not None:
            for base in owner.node.bases:
                name = self.dotted(base, owner.parent)
                found.update([name] if name else [])
                inner = self.symbol(base, owner.parent)
                if inner is not None and depth and inner is not owner:
                    found |= self.bases(inner, depth - 1)
        return found

    def symbol(self, node: ast.AST, scope: Scope) -> Scope | None:
        """The project's function or class that an expression names."""
        name = self.dotted(node, scope)
        if name is None:
            return None
        if isinstance(node, ast.Name):
            for binding, where in self.reaching(node.id, node, scope)[:1]:
                if binding.kind in ("def", "class"):
                    return where.module.scopes[binding.node]
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            return self.method(node.attr, scope)
        return self.project.find(name, scope.module)

    # Reaching assignments

    def reaching(self, name: str, node: ast.AST, scope: Scope) -> list[tuple[Binding, Scope]]:
        """The bindings that can give a name its value at a node, the likeliest first."""
        where: Scope | None = scope
        is_own = True
        while where is not None:
            if where is scope or not isinstance(where.node, ast.ClassDef):
                found = where.bindings.get(name)
                if found:
                    chosen = _before(found, node, where) if is_own else list(reversed(found))
                    return [(binding, where) for binding in chosen[:_MOST]]
                is_own = is_own and not where.is_function
            where = where.parent
        return []

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
            return tuple(value for argument, where in handed for value in self.values(argument, where, path))
        return ()

    # Callers

    def callers(self, function: Scope) -> list[tuple[ast.Call, Scope]]:
        """Calls of a function in its own file and in the files under analysis."""
        known = self._callers.get(function)
        if known is None:
            name = getattr(function.node, "name", "")
            if name == "__init__" and function.owner is not None:
                name = getattr(function.owner.node, "name", "")
            modules = dict.fromkeys([function.module, *self.targets])
            known = self._callers[function] = [
                (call, scope)
                for m in modules
                if name
                for call, scope in self._calls_named(m, name)
                if self._is(call, scope, function)
            ]
        return known

    def _calls_named(self, module: Module, name: str) -> list[tuple[ast.Call, Scope]]:
        index = self._named_calls.get(module)
        if index is None:
            index = self._named_calls[module] = {}
            for call, scope in module.calls:
                last = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
                index.setdefault(last, []).append((call, scope))
                for item in call.args[:1]:
                    if isinstance(item, ast.Name) and last in ("spawn", "Process", "run"):
                        index.setdefault(item.id, []).append((call, scope))
        return index.get(name, [])

    def _is(self, call: ast.Call, scope: Scope, function: Scope) -> bool:
        wanted = function.owner if getattr(function.node, "name", "") == "__init__" else function
        return wanted in (self.symbol(call.func, scope), self.symbol(call.args[0], scope) if call.args else None)

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
            given = argument_of(call, function, parameter)
            if given is not None:
                found.append((given, scope))
        return found[:4]

    def is_spawned(self, function: Scope) -> bool:
        """Whether `mp.spawn` calls it, so that its first parameter is the process's number."""
        return any(self.dotted(call.func, scope) == SPAWN for call, scope in self.callers(function))

    def _field(self, node: ast.Attribute, scope: Scope, path: tuple[int, ...]) -> list[Value]:
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            function = scope.function
            owner = function.owner if function is not None else None
            fields = scope.module.self_fields.get(owner.node, {}) if owner is not None else {}
            return [v for b, where in fields.get(node.attr, ()) for v in self._bound(b, where, path)]
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
            return []
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
        if symbol is not None and isinstance(symbol.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return self._returned(symbol, node, scope, path)
        if path:
            return []
        last = name.rpartition(".")[2].lstrip("_")
        if symbol is not None or last[:1].isupper() or name in _MAKERS:
            return [Value(_MAKERS.get(name, name), node, scope)]
        return []

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

    # Constants

    def constant(self, node: ast.AST | None, scope: Scope, depth: int = 5) -> object:
        """The literal that an expression holds, None if it is not known (or is None)."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self.constant(node.operand, scope, depth)
            return -inner if isinstance(inner, (int, float)) else None
        if isinstance(node, ast.Name) and depth:
            found = self.reaching(node.id, node, scope)
            if len(found) == 1 and found[0][0].kind == "assign" and not found[0][0].path:
                return self.constant(found[0][0].value, found[0][1], depth - 1)
        return None


def qualified(scope: Scope) -> str:
    """`package.module.Class.method` of a function or class."""
    parts: list[str] = []
    where: Scope | None = scope
    while where is not None and where.parent is not None:
        parts.append(getattr(where.node, "name", "<lambda>"))
        where = where.parent
    return ".".join([scope.module.name, *reversed(parts)])


def returns(function: Scope) -> list[ast.expr]:
    """The expressions that a function returns."""
    return [
        node.value
        for node, scope in function.module.nodes[ast.Return]
        if scope is function and isinstance(node, ast.Return) and node.value is not None
    ]


def first_argument(call: ast.Call, name: str) -> ast.expr | None:
    """The first positional argument, or the one of this name."""
    return argument(call, 0, name)


def argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """An argument by position or name; None if it is not given."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if 0 <= position < len(call.args) and not any(isinstance(a, ast.Starred) for a in call.args[: position + 1]):
        return call.args[position]
    return None


def parameters(function: Scope) -> list[str]:
    """Names of the positional parameters."""
    node = function.node
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        return []
    return [item.arg for item in (*node.args.posonlyargs, *node.args.args)]


def argument_of(call: ast.Call, function: Scope, name: str) -> ast.expr | None:
    """What a call hands to a parameter."""
    names = parameters(function)
    position = names.index(name) if name in names else -1
    if function.owner is not None and names[:1] in (["self"], ["cls"]):
        position -= 1
    return argument(call, position, name)


def position(node: ast.AST) -> tuple[int, int]:
    """Line and column."""
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _before(found: list[Binding], node: ast.AST, scope: Scope) -> list[Binding]:
    """Of a scope's own bindings those that reach a node: back to the first that every path passes."""
    if len(found) == 1:
        return found
    module: Module = scope.module
    here = position(node)
    own = module.statement(node)
    blocks = {(id(parent), field) for parent, field in [*module.ancestors(node)]}
    chosen: list[Binding] = []
    for binding in reversed(found):
        if binding.kind == "param":
            chosen.append(binding)
            continue
        statement = module.statement(binding.node)
        if statement is own and binding.kind in ("assign", "augment") and not isinstance(binding.node, ast.NamedExpr):
            continue
        if position(binding.node) >= here:
            continue
        step = module.parents.get(statement)
        block = (id(step[0]), step[1]) if step is not None else None
        if any(isinstance(p, ast.If) and _in_other_branch((p, f), blocks) for p, f in module.ancestors(binding.node)):
            continue
        chosen.append(binding)
        if block in blocks and binding.kind != "augment":
            break
    return chosen or list(reversed(found))


def _in_other_branch(step: tuple[ast.AST, str], blocks: set[tuple[int, str]]) -> bool:
    if (id(step[0]), step[1]) in blocks or step[1] == "test":
        return False
    other = "orelse" if step[1] == "body" else "body"
    return (id(step[0]), other) in blocks


_MAKERS = {
    "torch.device": "torch.device",
    "argparse.ArgumentParser.parse_args": "argparse.Namespace",
    "torch.distributed.fsdp.wrap.wrap": FSDP,
}

"""One file as the analysis sees it: its scopes, what binds each name, and where every call, branch and loop is.

Everything is collected in one walk over the syntax tree; rules then ask for what they need and do not walk again.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from phalanx.lint.source import Source

_COMMENT = re.compile(r"""^((?:[^'"#]|'[^']*'|"[^"]*")*)\#.*$""")
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Loop: TypeAlias = ast.For | ast.AsyncFor | ast.While


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """One place that gives a name its value. `path` leads into a tuple: `a, (b, c) = …` binds c at (1, 1)."""

    kind: str  # assign, import, def, class, for, with, param, augment, other
    node: ast.AST
    value: ast.expr | None = None
    path: tuple[int, ...] = ()
    target: str = ""  # of an import: the dotted name


@dataclass(slots=True, eq=False)
class Scope:
    """A module, class, function or lambda, and the names bound in it in the order of the text."""

    node: ast.AST
    parent: Scope | None
    module: Module
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    globals: set[str] = field(default_factory=set)

    @property
    def is_function(self) -> bool:
        """Whether names are bound when it is called."""
        return isinstance(self.node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))

    @property
    def owner(self) -> Scope | None:
        """The class whose method this is."""
        return self.parent if self.parent is not None and isinstance(self.parent.node, ast.ClassDef) else None

    @property
    def function(self) -> Scope | None:
        """The innermost enclosing function, itself included."""
        scope: Scope | None = self
        while scope is not None and not scope.is_function:
            scope = scope.parent
        return scope

    @property
    def body(self) -> list[ast.stmt]:
        """Its statements; none of a lambda."""
        return getattr(self.node, "body", []) if not isinstance(self.node, ast.Lambda) else []

    def bind(self, name: str, binding: Binding) -> None:
        """Add a binding, to the module if the name is declared global."""
        scope = self.module.scope if name in self.globals else self
        scope.bindings.setdefault(name, []).append(binding)


class Module:
    """The index of one file."""

    def __init__(self, source: Source, tree: ast.Module, name: str) -> None:
        self.source, self.tree, self.name, self.lines = source, tree, name, source.lines
        self.file = str(source.path)
        self.parents: dict[ast.AST, tuple[ast.AST, str]] = {}
        self.scope = Scope(tree, None, self)
        self.scopes: dict[ast.AST, Scope] = {tree: self.scope}
        self.calls: list[tuple[ast.Call, Scope]] = []
        self.branches: list[tuple[ast.If, Scope]] = []
        self.loops: list[tuple[Loop, Scope]] = []
        self.nodes: dict[type[ast.AST], list[tuple[ast.AST, Scope]]] = defaultdict(list)
        self.functions: list[Scope] = []
        self.classes: list[Scope] = []
        self.self_fields: dict[ast.AST, dict[str, list[tuple[Binding, Scope]]]] = {}
        self.fields: dict[tuple[str, str], list[tuple[Binding, Scope]]] = {}  # `args.rank = …` and `config["rank"] = …`
        _Walker(self).walk()

    def line(self, number: int) -> str:
        """The text of a line, without its indent."""
        return self.lines[number - 1].strip() if 0 < number <= len(self.lines) else ""

    @cached_property
    def code(self) -> str:
        """The text without comments and docstrings: what they say is not what the program does."""
        lines = [_COMMENT.sub(r"\1", line) if "#" in line else line for line in self.lines]
        for scope in self.scopes.values():
            first = scope.body[0] if isinstance(scope.body, list) and scope.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                for number in range(first.lineno - 1, first.end_lineno or first.lineno):
                    lines[number] = ""
        return "\n".join(lines)

    def ancestors(self, node: ast.AST) -> list[tuple[ast.AST, str]]:
        """(parent, field that holds the child), innermost first."""
        found = []
        step = self.parents.get(node)
        while step is not None:
            found.append(step)
            step = self.parents.get(step[0])
        return found

    def statement(self, node: ast.AST) -> ast.AST:
        """The statement that a node is part of."""
        while not isinstance(node, ast.stmt) and node in self.parents:
            node = self.parents[node][0]
        return node

    def scope_of(self, node: ast.AST) -> Scope:
        """The scope that a node is evaluated in."""
        for parent, _ in self.ancestors(node):
            if parent in self.scopes:
                return self.scopes[parent]
        return self.scope


class _Walker:
    """Fills a module's index. Not recursive: generated files nest thousands of levels deep."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def walk(self) -> None:
        module = self.module
        parents, nodes = module.parents, module.nodes
        stack: list[tuple[ast.AST, Scope]] = [(module.tree, module.scope)]
        while stack:
            node, scope = stack.pop()
            kind = type(node)
            handler = _HANDLERS.get(kind)
            if handler is not None:
                scope = handler(self, node, scope) or scope
            below: list[tuple[ast.AST, Scope]] = []
            for name in node._fields:
                value = getattr(node, name, None)
                if value.__class__ is list:
                    for child in value:
                        if isinstance(child, ast.AST):
                            parents[child] = (node, name)
                            below.append((child, scope))
                elif value.__class__ not in _LEAVES and isinstance(value, ast.AST):
                    parents[value] = (node, name)
                    below.append((value, scope))
            below.reverse()
            stack.extend(below)
            if kind in _KEPT:
                nodes[kind].append((node, scope))

    def call(self, node: ast.Call, scope: Scope) -> None:
        self.module.calls.append((node, scope))

    def branch(self, node: ast.If, scope: Scope) -> None:
        self.module.branches.append((node, scope))

    def function(self, node: Function, scope: Scope) -> Scope:
        scope.bind(node.name, Binding("def", node))
        inner = self._open(node, scope)
        self.module.functions.append(inner)
        return inner

    def lambda_(self, node: ast.Lambda, scope: Scope) -> Scope:
        return self._open(node, scope)

    def _open(self, node: Function | ast.Lambda, scope: Scope) -> Scope:
        inner = Scope(node, scope, self.module)
        self.module.scopes[node] = inner
        arguments = node.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            inner.bind(argument.arg, Binding("param", argument))
        for rest in (arguments.vararg, arguments.kwarg):
            if rest is not None:
                inner.bind(rest.arg, Binding("other", rest))
        return inner

    def class_(self, node: ast.ClassDef, scope: Scope) -> Scope:
        scope.bind(node.name, Binding("class", node))
        inner = Scope(node, scope, self.module)
        self.module.scopes[node] = inner
        self.module.classes.append(inner)
        return inner

    def global_(self, node: ast.Global, scope: Scope) -> None:
        scope.globals.update(node.names)

    def import_(self, node: ast.Import, scope: Scope) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            scope.bind(name, Binding("import", node, target=alias.name if alias.asname else name))

    def import_from(self, node: ast.ImportFrom, scope: Scope) -> None:
        base = _absolute(node, self.module)
        for alias in node.names:
            if alias.name != "*":
                scope.bind(alias.asname or alias.name, Binding("import", node, target=f"{base}.{alias.name}"))

    def assign(self, node: ast.Assign, scope: Scope) -> None:
        for target in node.targets:
            self._target(target, "assign", node, node.value, (), scope)

    def annotated(self, node: ast.AnnAssign, scope: Scope) -> None:
        if node.value is not None:
            self._target(node.target, "assign", node, node.value, (), scope)

    def augmented(self, node: ast.AugAssign, scope: Scope) -> None:
        self._target(node.target, "augment", node, node.value, (), scope)

    def named(self, node: ast.NamedExpr, scope: Scope) -> None:
        self._target(node.target, "assign", node, node.value, (), scope)

    def loop(self, node: ast.For | ast.AsyncFor, scope: Scope) -> None:
        self.module.loops.append((node, scope))
        self._target(node.target, "for", node, node.iter, (), scope)

    def while_(self, node: ast.While, scope: Scope) -> None:
        self.module.loops.append((node, scope))

    def comprehension(self, node: ast.comprehension, scope: Scope) -> None:
        self._target(node.target, "for", node, node.iter, (), scope)

    def with_(self, node: ast.With | ast.AsyncWith, scope: Scope) -> None:
        for item in node.items:
            if item.optional_vars is not None:
                self._target(item.optional_vars, "with", node, item.context_expr, (), scope)

    def handler(self, node: ast.ExceptHandler, scope: Scope) -> None:
        if node.name:
            scope.bind(node.name, Binding("other", node))

    def _target(
        self, target: ast.expr, kind: str, node: ast.AST, value: ast.expr, path: tuple[int, ...], scope: Scope
    ) -> None:
        if isinstance(target, ast.Name):
            scope.bind(target.id, Binding(kind, node, value, path))
        elif isinstance(target, (ast.Tuple, ast.List)):
            for number, element in enumerate(target.elts):
                self._target(element, kind, node, value, (*path, number), scope)
        elif isinstance(target, ast.Starred):
            self._target(target.value, "other", node, value, path, scope)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            key = repr(target.slice.value) if isinstance(target.slice, ast.Constant) else "*"  # `loaders[split] = …`
            stored = self.module.fields.setdefault((target.value.id, f"[{key}]"), [])
            stored.append((Binding(kind, node, value, path), scope))
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            bound = (Binding(kind, node, value, path), scope)
            owner = scope.function.owner if scope.function is not None else None
            if target.value.id != "self":
                self.module.fields.setdefault((target.value.id, target.attr), []).append(bound)
            elif owner is not None:
                self.module.self_fields.setdefault(owner.node, {}).setdefault(target.attr, []).append(bound)


def _absolute(node: ast.ImportFrom, module: Module) -> str:
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    is_package = module.source.path.name == "__init__.py"
    kept = parts[: len(parts) - node.level + (1 if is_package else 0)]
    return ".".join([*kept, *([node.module] if node.module else [])])


_HANDLERS: dict[type[ast.AST], Callable[[_Walker, Any, Scope], Scope | None]] = {
    ast.Call: _Walker.call,
    ast.If: _Walker.branch,
    ast.FunctionDef: _Walker.function,
    ast.AsyncFunctionDef: _Walker.function,
    ast.Lambda: _Walker.lambda_,
    ast.ClassDef: _Walker.class_,
    ast.Global: _Walker.global_,
    ast.Import: _Walker.import_,
    ast.ImportFrom: _Walker.import_from,
    ast.Assign: _Walker.assign,
    ast.AnnAssign: _Walker.annotated,
    ast.AugAssign: _Walker.augmented,
    ast.NamedExpr: _Walker.named,
    ast.For: _Walker.loop,
    ast.AsyncFor: _Walker.loop,
    ast.While: _Walker.while_,
    ast.comprehension: _Walker.comprehension,
    ast.With: _Walker.with_,
    ast.AsyncWith: _Walker.with_,
    ast.ExceptHandler: _Walker.handler,
}
_KEPT = frozenset(
    {
        ast.IfExp,
        ast.Try,
        ast.With,
        ast.Attribute,
        ast.Assign,
        ast.AugAssign,
        ast.BoolOp,
        ast.Return,
        ast.ImportFrom,
        ast.Yield,
    }
)
# Fields that hold no code, the most frequent ones.
_LEAVES = frozenset({str, int, type(None), ast.Load, ast.Store, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.And, ast.Or})

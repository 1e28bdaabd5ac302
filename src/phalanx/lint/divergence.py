"""Branches that make ranks call different collectives: the code of one file compared path by path."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from phalanx.lint.collectives import Collectives, Operation
from phalanx.lint.conditions import are_complements
from phalanx.lint.ranks import Ranks
from phalanx.lint.tree import Module, Scope

_CALLERS = 4
_EXITS = frozenset({"sys.exit", "os._exit", "builtins.exit", "builtins.quit", "builtins.SystemExit"})

_JUMPS: dict[type[ast.stmt], str] = {
    ast.Return: "return",
    ast.Continue: "continue",
    ast.Break: "break",
    ast.Raise: "raise",
}


@dataclass(frozen=True, slots=True)
class Divergence:
    """Ranks part at `test`: those on one side call `operation`, the others `instead` or nothing."""

    kind: str  # missing, order
    node: ast.AST
    test: ast.expr
    scope: Scope
    operation: Operation
    instead: Operation | None = None
    leaves: str = ""  # how ranks leave before the operation: return, continue, break, exit


def divergences(module: Module, ranks: Ranks, collectives: Collectives) -> list[Divergence]:
    """All of a file at conditions on the rank."""
    return [
        *_without_pairs(divergences_at(module, ranks.depends, collectives, nested=True), ranks),
        *_decorated(module, ranks, collectives),
    ]


def divergences_at(
    module: Module, differs: Callable[[ast.expr, Scope], bool], collectives: Collectives, *, nested: bool = False
) -> list[Divergence]:
    """All of a file at conditions that may differ between ranks; `nested` counts exits that a second condition decides."""
    if not collectives.present(module):
        return []
    finder = _Finder(module, differs, collectives, nested)
    return [*finder.branches(), *finder.expressions(), *finder.loops()]


class _Finder:
    def __init__(
        self, module: Module, differs: Callable[[ast.expr, Scope], bool], collectives: Collectives, nested: bool
    ) -> None:
        self.module, self.differs, self.collectives, self.nested = module, differs, collectives, nested

    def branches(self) -> Iterator[Divergence]:
        for branch, scope in self.module.branches:
            found = list(
                self._branch(branch, scope)
            )  # what would follow, before the dearer question whether ranks differ
            if found and self.differs(branch.test, scope):
                yield from found

    def _branch(self, branch: ast.If, scope: Scope) -> Iterator[Divergence]:
        body = self.collectives.reached(branch.body, scope)
        other = self.collectives.reached(branch.orelse, scope)
        left, right = (self._leaves(block, scope, nested=self.nested) for block in (branch.body, branch.orelse))
        if "raise" in (left, right) or _excludes(branch):
            return
        leaves = ""
        if (left or right) and self._joins(branch):
            return
        if left and not right:
            other, leaves = [*other, *self._rest(branch, scope, left)], left
        elif right and not left:
            body, leaves = [*body, *self._rest(branch, scope, right)], right
        yield from _compare(body, other, branch, branch.test, scope, leaves)

    def _joins(self, branch: ast.If) -> bool:
        """Whether ranks may end at different steps: DDP's `with model.join():` or `with Join([…]):` around it."""
        items = [i for p, _ in self.module.ancestors(branch) if isinstance(p, ast.With) for i in p.items]
        return any("join(" in ast.unparse(item.context_expr).lower() for item in items)

    def expressions(self) -> Iterator[Divergence]:
        for node, scope in self.module.nodes[ast.IfExp]:
            if isinstance(node, ast.IfExp) and self.differs(node.test, scope):
                body = self.collectives.reached([node.body], scope)
                yield from _compare(body, self.collectives.reached([node.orelse], scope), node, node.test, scope, "")
                yield from self._chosen(node, scope)
        for node, scope in self.module.nodes[ast.BoolOp]:
            if isinstance(node, ast.BoolOp):
                for number, value in enumerate(node.values[:-1]):
                    if self.differs(value, scope):
                        later = self.collectives.reached(node.values[number + 1 :], scope)
                        yield from _compare(later, [], node, value, scope, "")
                        break

    def loops(self) -> Iterator[Divergence]:
        """`while loss > 0.1:` — ranks leave the loop at different steps."""
        for loop, scope in self.module.loops:
            if isinstance(loop, ast.While) and not isinstance(loop.test, ast.Constant):
                reached = self.collectives.reached(loop.body, scope)
                if reached and self.differs(loop.test, scope):
                    yield Divergence("missing", loop, loop.test, scope, reached[0], None, "while")

    def _chosen(self, node: ast.IfExp, scope: Scope) -> Iterator[Divergence]:
        """`reduce = hvd.allgather if rank == 0 else hvd.allreduce`: the functions themselves."""
        pair = []
        for part in (node.body, node.orelse):
            call = ast.copy_location(ast.Call(func=part, args=[], keywords=[]), part)
            name = self.collectives.operation(call, scope) if isinstance(part, (ast.Name, ast.Attribute)) else None
            if name is not None:
                pair.append(Operation(name, call, scope, call, scope))
        if len(pair) == 2 and pair[0].name != pair[1].name:
            yield Divergence("order", node, node.test, scope, pair[0], pair[1])

    def _leaves(self, block: list[ast.stmt], scope: Scope, *, nested: bool = False) -> str:
        """How a block ends the path: by the first of its own statements that jumps, or also by one under a condition."""
        for statement in block:
            ended = statement.exc if isinstance(statement, ast.Raise) else getattr(statement, "value", None)
            func = ended.func if isinstance(ended, ast.Call) else ended
            if func is not None and self.collectives.inference.dotted(func, scope) in _EXITS:
                fails = isinstance(ended, ast.Call) and any(
                    self.collectives.inference.constant(item, scope) for item in ended.args
                )
                return "raise" if fails else "exit"  # an error ends the job, and nobody waits
            if type(statement) in _JUMPS:
                return _JUMPS[type(statement)]
            if isinstance(statement, ast.If) and nested:
                inner = self._leaves(statement.body, scope) or self._leaves(statement.orelse, scope)
                if inner in ("return", "exit"):
                    return inner
        return ""

    def _rest(self, branch: ast.If, scope: Scope, leaves: str) -> list[Operation]:
        """What the ranks that stay do after the branch, as far as those that left it miss it."""
        found: list[Operation] = []
        child: ast.AST = branch
        for parent, field in self.module.ancestors(branch):
            block = getattr(parent, field)
            is_loop = isinstance(parent, (ast.For, ast.While, ast.AsyncFor))
            if is_loop and field == "body" and leaves in ("break", "exit", "return"):
                found += self.collectives.reached(block, scope)  # later iterations
            elif (
                isinstance(block, list) and child in block and not (isinstance(parent, ast.Try) and field == "handlers")
            ):
                found += self.collectives.reached(block[block.index(child) + 1 :], scope)
            if parent in self.module.scopes or (is_loop and leaves in ("continue", "break")):
                break
            child = parent
        if leaves == "exit" and scope.function is not None:
            found += self._after_calls(scope.function)
        return found

    def _after_calls(self, function: Scope, depth: int = 3) -> list[Operation]:
        """What the callers of a function do after it: a rank that ends the process misses that too."""
        found: list[Operation] = []
        for call, where in self.collectives.inference.callers(function)[:_CALLERS] if depth else ():
            for parent, field in where.module.ancestors(call):
                block = getattr(parent, field)
                inside = [s for s in block if where.module.statement(call) is s] if isinstance(block, list) else []
                if inside:
                    found += self.collectives.reached(block[block.index(inside[0]) + 1 :], where)
            if where.function is not None and where.function is not function:
                found += self._after_calls(where.function, depth - 1)
        return found


def _decorated(module: Module, ranks: Ranks, collectives: Collectives) -> Iterator[Divergence]:
    """Functions that a decorator keeps to one rank (`@rank_zero_only`), and that make a collective."""
    for function in module.functions:
        decorator = ranks.decorator(function)
        if decorator is not None and "first" not in ast.unparse(decorator):
            for operation in collectives.reached(function.body, function)[:1]:
                yield Divergence("missing", function.node, decorator, function, operation)


def _compare(
    body: list[Operation], other: list[Operation], node: ast.AST, test: ast.expr, scope: Scope, leaves: str
) -> Iterator[Divergence]:
    names, others = [o.name for o in body], [o.name for o in other]
    is_by_roles = set(names) == set(others) and any(o.is_indirect for o in (*body, *other))
    if names == others or is_by_roles:  # a server and its workers: functions that were written for each other
        return
    if leaves and any(o.name == "join" for o in (*body, *other)):
        return  # ranks that are done early join
    extra, missing = Counter(names) - Counter(others), Counter(others) - Counter(names)
    first = next((o for o in body if o.name in extra), None)
    second = next((o for o in other if o.name in missing), None)
    if first is None and second is None:
        pair = next((a, b) for a, b in zip(body, other, strict=False) if a.name != b.name)
        yield Divergence("order", node, test, scope, pair[0], pair[1])
    elif first is not None and second is not None and not leaves:
        yield Divergence("order", node, test, scope, first, second)
    else:
        operation = first or second
        if operation is not None:
            yield Divergence("missing", node, test, scope, operation, None, leaves)


def _excludes(branch: ast.If) -> bool:
    """`if not ordered and rank == 0: … elif ordered: …`: where the second is reached, no rank took the first."""
    other = branch.orelse[0] if len(branch.orelse) == 1 else None
    if (
        not isinstance(other, ast.If)
        or not isinstance(branch.test, ast.BoolOp)
        or not isinstance(branch.test.op, ast.And)
    ):
        return False
    second = ast.unparse(other.test)
    return any(
        second in (f"not {first}", first.removeprefix("not ")) and second != first
        for first in map(ast.unparse, branch.test.values)
    )


def _without_pairs(found: list[Divergence], ranks: Ranks) -> list[Divergence]:
    """Drop `if rank != 0: barrier()` … `if rank == 0: barrier()`: every rank makes exactly one of the two."""
    kept = []
    for item in found:
        is_paired = any(
            other is not item
            and other.operation.name == item.operation.name
            and other.scope is item.scope
            and are_complements(item.test, other.test, partial(ranks.depends, scope=item.scope))
            for other in found
        )
        if not is_paired:
            kept.append(item)
    return kept

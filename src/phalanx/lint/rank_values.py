"""Does a value differ from rank to rank?"""

from __future__ import annotations

import ast
from collections.abc import Callable

from phalanx.lint.conditions import asks_whether_distributed, is_looked_up
from phalanx.lint.infer import Inference
from phalanx.lint.rank_sources import (
    GLOBAL_CALLS,
    LOCAL_CALLS,
    LOCAL_VARIABLES,
    OTHER_CALLS,
    RANK_VARIABLES,
    environment_key,
    rank_kind,
)
from phalanx.lint.syntax import default_of, element, parameters, position, returns
from phalanx.lint.tree import Binding, Scope

_ATTRIBUTES = frozenset({"rank", "local_rank", "global_rank", "world_rank", "node_rank", "process_index", "local_process_index", "is_main_process", "is_local_main_process", "is_last_process", "is_global_zero", "is_master", "is_rank_0", "is_rank0", "is_chief", "task_id", "task_index", "input_pipeline_id", "should_save", "local_process_zero", "is_world_process_zero", "is_local_process_zero", "global_rank_zero", "is_main", "dist_rank", "ddp_rank"})  # fmt: skip
_NAMES = frozenset({"rank", "local_rank", "global_rank", "world_rank", "proc_rank", "is_master", "is_main_process", "is_rank0", "is_chief", "ddp_rank", "ddp_local_rank", "master_process", "local_process_index"})  # fmt: skip
_PURE = frozenset({"int", "bool", "str", "float", "len", "abs", "min", "max", "any", "all", "not", "range"})
_VALUES = ("numpy.", "math.", "builtins.sorted", "builtins.sum", "builtins.set", "builtins.list", "builtins.tuple", "builtins.enumerate", "builtins.dict")  # fmt: skip
_METHODS = frozenset(
    {"item", "copy", "tolist", "astype", "split", "strip", "numel", "sum", "max", "min", "mean", "clone", "unique"}
)
_DEPTH = 10


class RankValues:
    """Rank dependence of values within one project; answers are remembered."""

    def __init__(self, inference: Inference) -> None:
        self.inference = inference
        self._depends: dict[tuple[ast.AST, Scope], bool] = {}
        self._busy: set[object] = set()
        self.agrees: Callable[[ast.AST, Scope], bool] = lambda *_: False  # whether code reaches a collective

    def depends(self, node: ast.AST | None, scope: Scope) -> bool:
        """Whether an expression can have another value on another rank."""
        if node is None or isinstance(node, ast.Constant):
            return False
        key = (node, scope)
        if key in self._depends:
            return self._depends[key]
        if key in self._busy or len(self._busy) > _DEPTH:
            return False
        self._busy.add(key)
        try:
            found = self._look(node, scope)
        finally:
            self._busy.discard(key)
        self._depends[key] = found
        return found

    def kind(self, node: ast.expr, scope: Scope) -> str:
        """`global` or `local` if an expression is nothing but this rank's number in the job or on its host."""
        return rank_kind(node, scope, self.inference)

    def _look(self, node: ast.AST, scope: Scope) -> bool:
        if isinstance(node, ast.Call):
            return self._call(node, scope)
        if isinstance(node, ast.Name):
            return self._name(node, scope)
        if isinstance(node, ast.Attribute):
            is_size = node.attr in ("shape", "size") and self.depends(node.value, scope)
            return node.attr in _ATTRIBUTES or is_size or self._field(node, scope)
        if isinstance(node, ast.Subscript):
            return self._subscript(node, scope)
        if isinstance(node, ast.Compare):
            if isinstance(node.left, ast.Tuple) or is_looked_up(node, scope):
                return False  # a key: every rank has kept its own at the same call
            return not asks_whether_distributed(node) and any(
                self.depends(part, scope) for part in (node.left, *node.comparators)
            )
        if isinstance(node, (ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.IfExp, ast.JoinedStr, ast.FormattedValue, ast.Tuple, ast.List, ast.NamedExpr, ast.Slice, ast.Starred)):  # fmt: skip
            return any(
                self.depends(child, scope) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)
            )
        if isinstance(
            node, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
        ):  # `[f for i, f in enumerate(files) if i % world == rank]`
            chosen = (part for loop in node.generators for part in (loop.iter, *loop.ifs))
            return any(self.depends(part, scope) for part in chosen)
        return False

    def _call(self, node: ast.Call, scope: Scope) -> bool:
        name = self.inference.dotted(node.func, scope)
        if name in GLOBAL_CALLS or name in LOCAL_CALLS or name in OTHER_CALLS:
            return not any(keyword.arg == "group" for keyword in node.keywords)
        if environment_key(node, name, self.inference, scope) in RANK_VARIABLES | LOCAL_VARIABLES:
            return True
        words = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
        if any(isinstance(word, str) and word in RANK_VARIABLES | LOCAL_VARIABLES for word in words):
            return True  # a helper of the project that reads the environment
        if name == "builtins.len" and node.args:
            return self._length(node.args[0], scope, 4)
        if name is not None and (
            (name.rpartition(".")[2] in _PURE and name.startswith("builtins.")) or name.startswith(_VALUES)
        ):
            return any(self.depends(argument, scope) for argument in node.args)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS and self.depends(node.func.value, scope):
            return True
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("get_rank", "get_local_rank", "is_main_process", "is_master", "is_rank_0"):  # fmt: skip
            return not node.args
        symbol = self.inference.symbol(node.func, scope)
        if symbol is not None and symbol.is_function:
            return not any(self._is_counted(item, scope) for item in node.args) and self._returns(symbol)
        last = name.rpartition(".")[2] if name else ""
        return symbol is None and last in ("get_rank", "get_local_rank", "get_global_rank", "is_main_process", "is_rank_zero", "is_master", "is_chief", "is_rank_0", "is_local_main_process")  # fmt: skip

    def _length(self, node: ast.expr, scope: Scope, depth: int) -> bool:
        """Shares of equal size are no difference: `data[rank::world]` is as long everywhere, give or take one."""
        if isinstance(node, (ast.Subscript, ast.ListComp)):
            return False
        found = self.inference.reaching(node.id, node, scope) if isinstance(node, ast.Name) and depth else []
        values = [(b.value, at) for b, at in found if b.kind == "assign" and b.value is not None and not b.path]
        if values and len(values) == len(found):
            return any(self._length(value, at, depth - 1) for value, at in values)
        return self.depends(node, scope)

    def _returns(self, function: Scope) -> bool:
        """A helper such as `is_main_process()`: its result, or the branch it returns in, depends on the rank."""
        for result in returns(function):
            if self.depends(result, function):
                return True
            tests = [
                parent.test
                for parent, field in function.module.ancestors(result)
                if isinstance(parent, ast.If) and field != "test"
            ]
            if isinstance(result, ast.Constant) and any(self.depends(test, function) for test in tests):
                return True
        return False

    def _name(self, node: ast.Name, scope: Scope) -> bool:
        found = self.inference.reaching(node.id, node, scope)
        if not found:
            return False
        for binding, where in found:
            if binding.kind == "param":
                handed = self.inference.handed(where, node.id)
                if any(self.depends(given, at) for given, at in handed):
                    return True
                if self._is_process_number(where, node.id):
                    return True
                if node.id in _NAMES and not self._is_other_number(where, node.id, handed):
                    return True
            elif binding.kind in ("assign", "augment") and binding.value is not None:
                if self._element(binding.value, binding.path, where):
                    return True
            elif binding.kind == "import":
                variable = self.inference.project.variable(binding.target, where.module)
                values = [(b, at) for b, at in variable if b.kind == "assign" and b.value is not None]
                if (node.id in _NAMES and not variable) or any(
                    b.value is not None and self._element(b.value, b.path, at) for b, at in values
                ):
                    return True
        return self._is_set_by_some(found, node)

    def _is_set_by_some(self, found: list[tuple[Binding, Scope]], use: ast.AST) -> bool:
        """`stop = False`, then `if rank == 0: stop = True`: only some ranks change what all had set to a literal."""
        made = [element(b.value, b.path) for b, _ in found if b.kind in ("assign", "augment")]
        values = {ast.dump(value) for value in made if value is not None}
        if len(made) < len(found) or None in made or len(values) < 2:
            return False
        if not any(isinstance(value, ast.Constant) for value in made):
            return False
        if any(self.agrees(value, at) for value, (_, at) in zip(made, found, strict=True) if value is not None):
            return False
        guards = [self._branch_of(b.node, at, use) for b, at in found]
        return any(guard is not None for guard in guards) and not all(guards)

    def _is_agreed(self, node: ast.expr, scope: Scope) -> bool:
        """A list that a collective has filled: `dist.broadcast_object_list(flags)` above `flags[0]`."""
        calls = (call for call, at in scope.module.calls if at is scope and position(call) < position(node))
        return isinstance(node, ast.Name) and any(
            any(getattr(item, "id", "") == node.id for item in call.args) and self.agrees(call, scope) for call in calls
        )

    def _branch_of(self, node: ast.AST, scope: Scope, use: ast.AST) -> ast.If | None:
        """The branch on the rank that a statement is in, and a later use is not."""
        around = {parent for parent, _ in scope.module.ancestors(use)}
        for parent, field in scope.module.ancestors(node):
            if parent in scope.module.scopes or parent in around:
                return None
            if isinstance(parent, ast.If) and field != "test" and self.depends(parent.test, scope):
                return parent
        return None

    def _is_other_number(self, function: Scope, name: str, handed: list[tuple[ast.expr, Scope]]) -> bool:
        """A parameter `rank` that is not this process's: counted by a loop, or of a matrix (`rank=8` in LoRA)."""
        if handed:
            numbers = [self.inference.constant(given, at) for given, at in handed]
            return all(self._is_counted(given, at) for given, at in handed) or all(type(n) is int for n in numbers)
        default = default_of(function, name)
        number = self.inference.constant(default, function)
        return type(number) is int and number > 0

    def _is_counted(self, node: ast.AST, scope: Scope, depth: int = 2) -> bool:
        """`for rank in range(world)`: some rank, not this one."""
        found = self.inference.reaching(node.id, node, scope) if isinstance(node, ast.Name) else []
        made = [(b.value, at) for b, at in found if b.kind == "assign" and b.value is not None and depth]
        if made and len(made) == len(found):  # computed from such a number
            return all(any(self._is_counted(n, at, depth - 1) for n in ast.walk(v)) for v, at in made)
        return bool(found) and all(binding.kind == "for" for binding, _ in found)

    def _element(self, value: ast.expr, path: tuple[int, ...], scope: Scope) -> bool:
        for index in path:
            if not isinstance(value, (ast.Tuple, ast.List)):
                return self._returned_element(value, path, scope)
            if index >= len(value.elts):
                return False
            value = value.elts[index]
        return self.depends(value, scope)

    def _returned_element(self, value: ast.expr, path: tuple[int, ...], scope: Scope) -> bool:
        symbol = self.inference.symbol(value.func, scope) if isinstance(value, ast.Call) else None
        if symbol is None or not symbol.is_function:
            return False
        return any(
            isinstance(result, ast.Tuple) and self._element(result, path[-1:], symbol) for result in returns(symbol)
        )

    def _is_process_number(self, function: Scope, name: str) -> bool:
        return parameters(function)[:1] == [name] and self.inference.is_spawned(function)

    def _field(self, node: ast.Attribute, scope: Scope) -> bool:
        fields = self.inference.fields(node, scope)
        if any(b.value is not None and self._element(b.value, b.path, where) for b, where in fields):
            return True
        is_plain = all(isinstance(element(b.value, b.path), (ast.Constant, ast.Compare)) for b, _ in fields)
        return is_plain and self._is_set_by_some(fields, node)

    def _subscript(self, node: ast.Subscript, scope: Scope) -> bool:
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if self.inference.dotted(node.value, scope) == "os.environ":
            return key in RANK_VARIABLES | LOCAL_VARIABLES
        if key == "index" and isinstance(node.value, (ast.Subscript, ast.Name)):
            inner = node.value.slice if isinstance(node.value, ast.Subscript) else None
            return (isinstance(inner, ast.Constant) and inner.value == "task") or getattr(
                node.value, "id", ""
            ) == "task"
        if key in ("rank", "local_rank", "global_rank"):
            return True
        if self._is_agreed(node.value, scope):
            return False
        if any(
            b.value is not None and self._element(b.value, b.path, at) for b, at in self.inference.items(node, scope)
        ):
            return True
        is_column = isinstance(key, str) and isinstance(self.inference.origin(node.value, scope)[0], ast.Subscript)
        return self.depends(node.slice, scope) or ((key is None or is_column) and self.depends(node.value, scope))

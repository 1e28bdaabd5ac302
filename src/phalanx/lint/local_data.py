"""Is a value this rank's own? Losses, gradients, its share of the data, its clock and its dice, unless reduced."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.collectives import Collectives, calls_in
from phalanx.lint.fields import PROPERTIES
from phalanx.lint.infer import Inference
from phalanx.lint.ranks import Ranks
from phalanx.lint.syntax import decorated, position, returns
from phalanx.lint.tree import Binding, Module, Scope

_DEPTH = 8
_IN_PLACE = frozenset({"all_reduce", "broadcast", "allreduce_", "broadcast_", "all_gather", "reduce"})
_AGREES = frozenset({"broadcast", "all_reduce", "allreduce", "reduce", "all_gather", "gather", "reduce_boolean_decision", "broadcast_object_list", "gather_for_metrics"})  # fmt: skip
_LOADER, _SAMPLER = "torch.utils.data.DataLoader", "torch.utils.data.DistributedSampler"
_PASSES = frozenset({"builtins.enumerate", "builtins.iter", "tqdm.tqdm", "tqdm.auto.tqdm", "builtins.zip"})
_CLOCKS = frozenset({"time.time", "time.monotonic", "time.perf_counter", "datetime.datetime.now"})
_DICE = ("random.", "numpy.random.", "torch.rand", "torch.bernoulli")
_SEEDERS = {
    "random": frozenset({"random.seed"}),
    "numpy": frozenset({"numpy.random.seed"}),
    "torch": frozenset({"torch.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all"}),
}
_SEEDS = ("seed(", "seed_everything(", "set_seed(", "Generator(", "default_rng(", "RandomState(", "fix_random")
_FILES = frozenset({"os.path.exists", "os.path.isfile", "os.path.isdir"})
_WRITES = ("save(", "dump(", "savez(", "to_csv(", "save_to_disk(", "makedirs(", "mkdir(", "download", "'w'", "'wb'", "write_text(", "write_bytes(", "extractall(")  # fmt: skip
_SIZES = frozenset(
    {
        "requires_grad",
        "is_leaf",
        "grad_fn",
        "training",
        "is_cuda",
        "shape",
        "ndim",
        "device",
        "dtype",
        "size",
        "numel",
        "dim",
    }
)  # equal on all ranks, as a rule
_ASKS = frozenset({"len", "isinstance", "hasattr", "type", "id", "callable"})


class LocalData:
    """Answers for one project. What every rank agrees on (results of collectives) is not local."""

    def __init__(self, inference: Inference, collectives: Collectives, ranks: Ranks) -> None:
        self.inference, self.collectives, self.ranks = inference, collectives, ranks
        self._seeded: dict[tuple[Module, str], str] = {}
        self._busy: set[object] = set()
        self._known: dict[object, bool] = {}
        self._training: dict[Scope, bool] = {}
        self._targets: dict[Scope, set[str]] = {}
        self._reduced: dict[Scope, dict[str, list[ast.Call]]] = {}

    def depends(self, node: ast.AST, scope: Scope) -> bool:
        """Whether an expression holds a value of this rank's own; whether there is one at all is no such value."""
        if isinstance(node, ast.BoolOp):
            return any(self.depends(part, scope) for part in node.values)
        if isinstance(node, ast.Compare) and all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            return False
        if self._reduces(node, scope):
            return False
        for item in self._read(node, scope):
            if isinstance(item, ast.Name):
                found = self._local(item, scope)
            elif isinstance(item, ast.Call):
                found = bool(self.source(item, scope)) or self._returns(item, scope)
            else:
                found = item.attr == "grad" or self._field(item, scope)
            if found:
                return True
        return False

    def describe(self, node: ast.AST, scope: Scope) -> str:
        """What the value is, for a message."""
        calls = [item for item in ast.walk(node) if isinstance(item, ast.Call)]
        found = next((kind for call in calls if (kind := self.source(call, scope))), "")
        return found or "a value of this rank's own data"

    def source(self, call: ast.Call, scope: Scope) -> str:
        """Whether a call itself gives every rank another answer."""
        name = self.inference.dotted(call.func, scope) or ""
        if name in _CLOCKS:
            return "the time, which differs between ranks"
        if name.startswith(_DICE) and not name.startswith(("random.seed", "numpy.random.seed")):
            return self._draw(name, scope.module) if not any(k.arg == "generator" for k in call.keywords) else ""
        if name.endswith("clip_grad_norm_") and not self.collectives.synchronises(scope.module):
            return "the norm of this rank's own gradients"
        is_file = name in _FILES or getattr(call.func, "attr", "") in ("exists", "is_file", "is_dir")
        return "a file that another rank may just have written" if is_file and self._is_written(call, scope) else ""

    def _draw(self, name: str, module: Module) -> str:
        """What a draw of a library's own generator is: equal on all ranks only if all have the same seed."""
        library = name.partition(".")[0]
        if (module, library) not in self._seeded:
            program = self.inference.project.program(module)
            seeds = [
                (c, s) for m in program for c, s in m.calls if self.inference.dotted(c.func, s) in _SEEDERS[library]
            ]
            by_rank = any(self.ranks.depends(item, s) for c, s in seeds for item in c.args)
            is_seeded = any(word in m.code for m in program for word in _SEEDS)
            text = "" if is_seeded else "a random number that every rank draws for itself"
            self._seeded[module, library] = "a random number, of which each rank has its own seed," if by_rank else text
        return self._seeded[module, library]

    def _is_written(self, call: ast.Call, scope: Scope) -> bool:
        """Whether the branch that asks for a file makes one: ranks that ask a moment later see it."""
        parents = scope.module.ancestors(call)
        branch = next((p for p, field in parents if isinstance(p, ast.If) and field == "test"), None)
        return branch is not None and any(
            word in ast.unparse(statement) for statement in branch.body for word in _WRITES
        )

    def _read(self, node: ast.AST, scope: Scope) -> Iterator[ast.Name | ast.Attribute | ast.Call]:
        """Names, fields and calls of an expression, without those whose size or type alone is asked for."""
        if isinstance(node, ast.Attribute) and node.attr in _SIZES:
            yield from self._filtered(node.value, scope)
            return
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in _ASKS:
            yield from (
                self._filtered(node.args[0], scope) if node.args and getattr(node.func, "id", "") == "len" else ()
            )
            return
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            return
        if isinstance(node, (ast.GeneratorExp, ast.ListComp, ast.SetComp)):
            asked = [node.elt, *(test for part in node.generators for test in part.ifs)]
            if not any(True for item in asked for _ in self._read(item, scope)):
                return  # only how many there are, or of what kind
        if isinstance(node, (ast.Name, ast.Attribute, ast.Call)):
            yield node
        for child in ast.iter_child_nodes(node):
            yield from self._read(child, scope)

    def _filtered(self, node: ast.expr, scope: Scope) -> Iterator[ast.Name]:
        """A variable whose length is the number of its elements that pass a test: `x = x[x > 0]`."""
        found = self.inference.reaching(node.id, node, scope) if isinstance(node, ast.Name) else []
        value = found[0][0].value if found else None
        is_masked = isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Compare)
        is_chosen = isinstance(value, ast.ListComp) and any(loop.ifs for loop in value.generators)
        if isinstance(node, ast.Name) and (is_masked or is_chosen):
            yield node

    def _local(self, name: ast.Name, scope: Scope) -> bool:
        key = (name.id, position(name), scope)
        known = self._known.get(key)
        if known is None:
            if key in self._busy or len(self._busy) > _DEPTH or self._is_reduced(name, scope):
                return False
            known = self._known[key] = self._look(name, scope, key)
        return known

    def _look(self, name: ast.Name, scope: Scope, key: object) -> bool:
        self._busy.add(key)
        try:
            found = self.inference.reaching(name.id, name, scope)
            last = found[0] if found else None
            if last is not None and last[0].value is not None and self._reduces(last[0].value, last[1]):
                return False  # what was local before has been agreed on
            return any(self._bound(name.id, b, where) for b, where in found)
        finally:
            self._busy.discard(key)

    def _bound(self, name: str, binding: Binding, scope: Scope) -> bool:
        value = binding.value
        if binding.kind == "param" and isinstance(binding.node, ast.arg):
            handed = self.inference.handed(scope, binding.node.arg)
            return any(self.depends(given, at) for given, at in handed)
        if value is None or binding.kind not in ("assign", "augment", "for") or self._reduces(value, scope):
            return False
        if isinstance(value, ast.Constant):
            return self._is_decided_here(binding.node, scope)
        if binding.kind == "for":
            return self._is_share(value, binding.path, scope)
        return name in self._losses(scope) or self._returns(value, scope) or self.depends(value, scope)

    def _is_decided_here(self, node: ast.AST, scope: Scope) -> bool:
        """A literal that is set, or a counter that counts, under a condition on local data: `if loss > best: bad += 1`."""
        for parent, field in scope.module.ancestors(node):
            if parent in scope.module.scopes:
                return False
            if isinstance(parent, ast.If) and field != "test" and self.depends(parent.test, scope):
                return True
        return False

    def _is_share(self, node: ast.expr, path: tuple[int, ...], scope: Scope) -> bool:
        """An element of a loader with a DistributedSampler; not the number that `enumerate` adds."""
        while isinstance(node, ast.Call) and node.args and self.inference.dotted(node.func, scope) in _PASSES:
            if self.inference.dotted(node.func, scope) == "builtins.enumerate" and path[:1] == (0,):
                return False
            is_zip = self.inference.dotted(node.func, scope) == "builtins.zip" and path[:1] and path[0] < len(node.args)
            node, path = (node.args[path[0]], path[1:]) if is_zip else (node.args[0], path[1:])
        if not isinstance(node, ast.Name) and self.depends(node, scope):
            return True
        for value in self.inference.values(node, scope):
            given = {k.arg: k.value for k in value.node.keywords} if isinstance(value.node, ast.Call) else {}
            sampler = given.get("sampler") if value.type == _LOADER else None
            if sampler is not None and any(v.type == _SAMPLER for v in self.inference.values(sampler, value.scope)):
                return True
        return False

    def _field(self, node: ast.Attribute, scope: Scope) -> bool:
        """`self.loss`, or `stopper.should_stop` of an object of the project that was given a local value."""
        key = ("field", node.attr, position(node), scope)
        if key in self._busy or len(self._busy) > _DEPTH:
            return False
        self._busy.add(key)
        try:
            is_own = getattr(node.value, "id", "") == "self"
            fields = self.inference.fields(node, scope)
            if not is_own:  # of another object what its properties compute
                fields = [(b, at) for b, at in fields if at.is_function and decorated(at.node, PROPERTIES)]
            local = any(self._bound("", b, where) for b, where in fields)
            return (local and not self._is_reduced_field(node.attr, scope)) or self._was_told(node, scope)
        finally:
            self._busy.discard(key)

    def _is_reduced_field(self, name: str, scope: Scope) -> bool:
        """Whether a method of the class hands the field to a collective."""
        owner = self.inference.owner_of(scope)
        return any(
            where.function is not None
            and where.function.owner is owner
            and any(isinstance(item, ast.Attribute) and item.attr == name for item in ast.walk(call))
            and any(o.name != "backward" for o in self.collectives.reached([call], where))
            for call, where in scope.module.calls
        )

    def _was_told(self, node: ast.Attribute, scope: Scope) -> bool:
        """Whether a call before handed a local value to the object, of a class of the project that reduces nothing."""
        base = node.value
        if not isinstance(base, ast.Name) or base.id == "self":
            return False
        owners = [
            owner
            for value in self.inference.values(base, scope)
            if isinstance(value.node, ast.Call)
            and (owner := self.inference.symbol(value.node.func, value.scope)) is not None
            and isinstance(owner.node, ast.ClassDef)
        ]
        if not owners or any(self.collectives.reached(f.body, f) for f in scope.module.functions if f.owner in owners):
            return False
        for call, where in scope.module.calls:
            func = call.func
            target = func.value if isinstance(func, ast.Attribute) else func
            is_before = where is scope and getattr(target, "id", "") == base.id and position(call) < position(node)
            if is_before and any(self.depends(item, scope) for item in call.args):
                return True
        return False

    def _losses(self, scope: Scope) -> set[str]:
        """Names on which `.backward()` is called."""
        found = self._targets.get(scope)
        if found is None:
            found = self._targets[scope] = set()
            for call, where in scope.module.calls:
                if where is scope and isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
                    target = call.args[0] if call.args else call.func.value  # `engine.backward(loss)`
                    found |= {target.id} if isinstance(target, ast.Name) else set()
        return found

    def _returns(self, value: ast.expr, scope: Scope) -> bool:
        """A call of a function of the project that returns what it saw: in a backward pass, or in its share of data."""
        function = self.inference.symbol(value.func, scope) if isinstance(value, ast.Call) else None
        if function is None or not function.is_function:
            return False
        known = self._training.get(function)
        if known is None:
            self._training[function] = False  # recursion adds nothing
            calls = [call for node in function.body for call in calls_in(node)]
            if any(getattr(call.func, "attr", "") in _AGREES for call in calls):
                return False
            known = any(getattr(call.func, "attr", "") == "backward" for call in calls) or any(
                self.depends(result, function) for result in returns(function)
            )
            self._training[function] = known
        return known

    def _reduces(self, node: ast.AST, scope: Scope) -> bool:
        """Whether an expression holds a call that reaches a collective: its result is agreed on."""
        if any(isinstance(item, ast.Call) and getattr(item.func, "attr", "") in _AGREES for item in ast.walk(node)):
            return True
        return any(
            o.name != "backward" and not o.name.startswith("forward of")
            for o in self.collectives.reached([node], scope)
        )

    def _is_reduced(self, name: ast.Name, scope: Scope) -> bool:
        """Whether a collective changed the variable in place before this use."""
        here = position(name)
        return any(position(call) < here for call in self._reducers(scope).get(name.id, ()))

    def _reducers(self, scope: Scope) -> dict[str, list[ast.Call]]:
        """Calls of a scope that reduce their first argument in place, by the argument's name."""
        found = self._reduced.get(scope)
        if found is None:
            found = self._reduced[scope] = {}
            for call, where in scope.module.calls:
                root = _root(call.args[0]) if where is scope and call.args else ""
                if root and any(o.name in _IN_PLACE for o in self.collectives.reached([call], where)):
                    found.setdefault(root, []).append(call)
        return found


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""

"""What a rule may ask about the file under analysis."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cached_property

from phalanx.lint.collectives import Collectives, calls_in
from phalanx.lint.divergence import Divergence, divergences
from phalanx.lint.infer import DDP, FSDP, FULLY_SHARD, SPAWN, Inference
from phalanx.lint.local_data import LocalData
from phalanx.lint.names import FRAMEWORKS
from phalanx.lint.options import spread_options
from phalanx.lint.origins import Origin
from phalanx.lint.project import Project
from phalanx.lint.ranks import Ranks
from phalanx.lint.resolve import Value
from phalanx.lint.tree import Loop, Module, Scope

_HARMLESS = frozenset({*sys.stdlib_module_names, *FRAMEWORKS, "numpy", "torchvision", "torchaudio", "PIL", "tqdm", "scipy", "pandas", "matplotlib", "wandb", "yaml", "sklearn", "tensorboardX", "h5py", "datasets"})  # fmt: skip
Calls = list[tuple[ast.Call, Scope]]
INIT = "torch.distributed.init_process_group"
_TORCH_SETUP = frozenset({INIT, DDP, FSDP, FULLY_SHARD, "torch.distributed.device_mesh.init_device_mesh"})
_MANAGED = ("accelerate.", "lightning.", "deepspeed.", "transformers.Trainer", "ignite.", "composer.", "ray.train.", "fairscale.", "colossalai.")  # fmt: skip


class Workspace:
    """What the files of one run share: loaded modules and everything that was inferred."""

    def __init__(self) -> None:
        self.project = Project()
        self.inference = Inference(self.project)
        self.ranks = Ranks(self.inference)
        self.collectives = Collectives(self.inference)
        self.local = LocalData(self.inference, self.collectives, self.ranks)
        self.ranks.agrees = lambda node, scope: bool(self.collectives.reached([node], scope))
        self._named: dict[Module, dict[str, Calls]] = {}
        self._contexts: dict[Module, Context] = {}

    def context(self, module: Module) -> Context:
        """The context of a file; a rule that follows a value into another file asks there."""
        found = self._contexts.get(module)
        if found is None:
            found = self._contexts[module] = Context(module, self)
            spread_options(module, self.inference)
        return found

    def named(self, module: Module) -> dict[str, Calls]:
        """A file's calls by canonical name."""
        found = self._named.get(module)
        if found is None:
            found = self._named[module] = {}
            for call, scope in module.calls:
                name = self.inference.dotted(call.func, scope)
                if name is not None:
                    found.setdefault(name, []).append((call, scope))
        return found


class Context:
    """One file, and the project around it."""

    def __init__(self, module: Module, space: Workspace) -> None:
        self.module, self.space = module, space
        self.inference, self.ranks, self.collectives, self.local = (
            space.inference,
            space.ranks,
            space.collectives,
            space.local,
        )

    # Calls

    def calls(self, *names: str) -> Calls:
        """Calls in this file of any of these canonical names, in the order of the text."""
        named = self.space.named(self.module)
        found = [item for name in names for item in named.get(name, ())]
        return sorted(found, key=lambda item: (item[0].lineno, item[0].col_offset)) if len(names) > 1 else found

    def calls_in_program(self, *names: str) -> Calls:
        """The same in this file and in what it imports of the project."""
        return [i for m in self.program for name in names for i in self.space.named(m).get(name, ())]

    def methods(self, *names: str) -> Calls:
        """Calls of any attribute of these names, whatever it belongs to."""
        return [item for name in names for item in self._by_attribute.get(name, ())]

    @cached_property
    def _by_attribute(self) -> dict[str, Calls]:
        found: dict[str, Calls] = {}
        for call, scope in self.module.calls:
            if isinstance(call.func, ast.Attribute):
                found.setdefault(call.func.attr, []).append((call, scope))
        return found

    def methods_in_program(self, *names: str) -> Calls:
        """The same in this file and in what it imports of the project."""
        return [
            (call, scope)
            for module in self.program
            for call, scope in module.calls
            if isinstance(call.func, ast.Attribute) and call.func.attr in names
        ]

    @cached_property
    def program(self) -> tuple[Module, ...]:
        """This file, the files that it imports within the project, and those of the scripts that use it."""
        return self.space.project.program(self.module)

    @cached_property
    def contexts(self) -> tuple[Context, ...]:
        """The contexts of the whole program."""
        return tuple(self.space.context(module) for module in self.program)

    def mentions(self, *words: str) -> bool:
        """Whether the text of the program holds any of these words: for what a rule must not overlook."""
        return any(word in module.code for module in self.program for word in words)

    # Inference, shortly

    def name(self, node: ast.AST, scope: Scope) -> str:
        """Canonical name, empty if unknown."""
        return self.inference.dotted(node, scope) or ""

    def values(self, node: ast.expr | None, scope: Scope) -> tuple[Value, ...]:
        """What an expression may be."""
        return self.inference.values(node, scope) if node is not None else ()

    def is_a(self, node: ast.expr | None, scope: Scope, *types: str) -> bool:
        """Whether an expression may be of one of these classes."""
        return any(value.type in types for value in self.values(node, scope))

    def origins(self, node: ast.expr | None, scope: Scope) -> tuple[Origin, ...]:
        """The expressions behind a name, field, item, parameter or call; see `Origins`."""
        return self.inference.origins(node, scope) if node is not None else ()

    def origin(self, node: ast.expr, scope: Scope) -> Origin:
        """The only expression behind another, or that one itself."""
        return self.inference.origin(node, scope)

    def constant(self, node: ast.AST | None, scope: Scope) -> object:
        """A literal, None if unknown."""
        return self.inference.constant(node, scope)

    def guard(self, node: ast.AST, scope: Scope) -> ast.expr | None:
        """The rank condition under which a node runs."""
        return self.ranks.guard(node, scope)

    # The program

    @cached_property
    def is_torch_job(self) -> bool:
        """Whether this program sets up torch.distributed itself."""
        return bool(self.calls_in_program(*_TORCH_SETUP))

    @cached_property
    def sets_up_torch(self) -> bool:
        """Whether this very file makes the group or wraps a model."""
        return bool(self.calls(*_TORCH_SETUP))

    @cached_property
    def is_managed(self) -> bool:
        """Whether a library on top of PyTorch cares for devices, sampling and wrapping."""
        return any(name.startswith(_MANAGED) for module in self.program for name in self.space.named(module))

    @cached_property
    def is_horovod_job(self) -> bool:
        """Whether this program uses Horovod."""
        return any(name.startswith("horovod.") for module in self.program for name in self.space.named(module))

    @cached_property
    def is_script(self) -> bool:
        """Whether this file is started itself: it has a main guard, or calls at its top level that train."""
        top = [
            node.value
            for node in self.module.tree.body
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        ]
        if "__main__" in self.module.source.text or any(self.inference.symbol(c.func, self.module.scope) for c in top):
            return True
        return any(scope is self.module.scope for _, scope in self.methods("backward", "fit", "init"))

    @cached_property
    def has_unknown_imports(self) -> bool:
        """Whether the program imports something that is neither a known framework nor a file of the project."""
        found = {
            binding.target.partition(".")[0]
            for module in self.program
            for scope in module.scopes.values()
            for bindings in scope.bindings.values()
            for binding in bindings
            if binding.kind == "import"
        }
        own = {module.name.partition(".")[0] for module in self.program}
        return bool(found - _HARMLESS - own)

    @cached_property
    def backends(self) -> set[object]:
        """Backends given to init_process_group; None stands for one that is not a literal."""
        found: set[object] = set()
        for call, scope in self.calls_in_program(INIT):
            given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "backend"), None)
            found.add(self.constant(given, scope) if given is not None else "")
        return found

    @cached_property
    def divergences(self) -> list[Divergence]:
        """Branches of this file on which ranks call different collectives."""
        return divergences(self.module, self.ranks, self.collectives)

    # Loops

    def loops_around(self, node: ast.AST) -> list[Loop]:
        """The loops that a node is in, innermost first, within its own function."""
        found: list[Loop] = []
        for parent, field in self.module.ancestors(node):
            if parent in self.module.scopes:
                break
            if isinstance(parent, (ast.For, ast.AsyncFor, ast.While)) and field == "body":
                found.append(parent)
        return found

    @cached_property
    def training_loops(self) -> list[tuple[Loop, Scope]]:
        """Loops whose body, or a function that it calls, runs a backward pass."""
        return [(loop, scope) for loop, scope in self.module.loops if self.trains(loop.body, scope)]

    @cached_property
    def synchronised_loops(self) -> list[tuple[Loop, Scope]]:
        """Loops whose body reaches a collective."""
        if not self.collectives.present(self.module):
            return []
        return [(loop, scope) for loop, scope in self.module.loops if self.collectives.reached(loop.body, scope)]

    def is_main_of_spawn(self, scope: Scope) -> bool:
        """Whether code runs in the process that starts the ranks by `mp.spawn`, and so on no rank."""
        return any(where is scope for _, where in self.calls(SPAWN))

    def trains(self, nodes: list[ast.stmt], scope: Scope, depth: int = 3) -> bool:
        """Whether statements reach a backward pass."""
        for node in nodes:
            for call in calls_in(node):
                if isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
                    return True
                function = self.inference.symbol(call.func, scope) if depth else None
                if function is not None and function.is_function and self.trains(function.body, function, depth - 1):
                    return True
        return False

    def within(self, node: ast.AST, kind: type[ast.AST]) -> Iterator[ast.AST]:
        """Ancestors of a kind, innermost first, within the same function."""
        for parent, _ in self.module.ancestors(node):
            if parent in self.module.scopes:
                return
            if isinstance(parent, kind):
                yield parent

    def text(self, node: ast.AST) -> str:
        """The source of a node, for messages; shortened."""
        found = ast.unparse(node)
        return found if len(found) <= 60 else found[:57] + "…"

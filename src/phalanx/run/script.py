"""Which framework a training script uses, by its imports and those of the local modules that it imports.

The script is parsed, never run.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from phalanx.frameworks import load_frameworks
from phalanx.frameworks.launching import load_launchable

_LARGEST = 4 << 20
_BACKEND = "KERAS_BACKEND"
_MOST_MODULES = 200
# Calls that change a model's weights, whatever the framework.
_TRAINING = frozenset(
    (
        "backward",
        "fit",
        "fit_generator",
        "train_on_batch",
        "apply_gradients",
        "minimize",
        "GradientTape",
        "grad",
        "value_and_grad",
    )
)
_TRAINERS = re.compile(r"train", re.I)  # of `trainer.train()`; a model's own `train()` only sets a mode
_OWN_CHOICE = re.compile(r"lr|rate|seed|fold|trial|config|cfg|setting|param|hyper|option", re.I)
# Names by which a script that imports several frameworks shows which of them carries the ranks.
_DISTRIBUTED = {
    "torch": ("torch.distributed", "DistributedDataParallel", "init_process_group", "fully_shard", "Fabric"),
    "tensorflow": ("tf.distribute", "tensorflow.distribute", "TF_CONFIG", "MultiWorkerMirroredStrategy"),
    "keras": ("keras.distribution",),
    "jax": ("jax.distributed",),
    "horovod": ("horovod",),
}


@dataclass(frozen=True, slots=True)
class Recognised:
    """The framework of a script, and what told it."""

    framework: str | None
    told_by: str = ""
    speaks_mpi: bool = False
    keras_backend: str = ""  # that the script sets itself
    joins_jax: bool = False  # it calls what lets JAX's processes work together
    uses_tf_data: bool = False


def recognise_script(script: Path, keras_backend: str = "") -> Recognised:
    """The framework that the script's ranks speak by; none if it imports none, or cannot be parsed. `keras_backend` is what the user chose."""
    trees = list(_modules(script))
    imported: Counter[str] = Counter()
    where: dict[str, str] = {}
    names = {top: name for name, framework in load_launchable().items() for top in framework.IMPORTS}
    speaks_mpi = False
    for path, _, tree in trees:
        for module in _imports(tree):
            top = module.split(".")[0]
            speaks_mpi = speaks_mpi or top == "mpi4py"
            if top == "tensorflow" and module.startswith("tensorflow.keras"):
                top = "keras"
            if framework := names.get(top):
                imported[framework] += 1
                where.setdefault(framework, f"{path.name} imports {module}")
    texts = [text for _, text, _ in trees]
    backends = [found for _, _, tree in trees if (found := _keras_backend(tree))]
    backend = backends[0] if backends else ""
    if "keras" in imported and (keras_backend or backend or "torch") != "torch":
        del imported["torch"]  # what Keras does not compute with is used for something else
    chosen = _choose(imported, texts)
    joins = any(word in text for text in texts for word in ("distributed.initialize", "distribution.initialize"))
    uses_tf_data = any(
        word in text for text in texts for word in ("tf.data", "tensorflow.data", "_dataset_from_directory")
    )
    return Recognised(chosen, where.get(chosen or "", ""), speaks_mpi, backend, joins, uses_tf_data)


def trains_one_model(script: Path) -> bool:
    """Whether the script trains, and gives no rank a setting of its own: ranks that only evaluate, or try one setting each, need not talk."""
    trees = [tree for _, _, tree in _modules(script)]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    return any(map(_is_training, nodes)) and not any(map(_is_own_setting, nodes))


def _is_training(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        is_trainer = node.func.attr == "train" and bool(_TRAINERS.search(ast.unparse(node.func.value)))
        return node.func.attr in _TRAINING or is_trainer
    return isinstance(node.func, ast.Name) and node.func.id in _TRAINING


def _is_own_setting(node: ast.AST) -> bool:
    """`rate = RATES[rank]`: each rank tries one."""
    if not isinstance(node, ast.Assign):
        return False
    chosen = [one.slice for one in ast.walk(node.value) if isinstance(one, ast.Subscript)]
    by_rank = any("rank" in ast.unparse(one).lower() and not isinstance(one, ast.Slice) for one in chosen)
    return by_rank and any(_OWN_CHOICE.search(ast.unparse(one)) for one in node.targets)


def _keras_backend(tree: ast.Module) -> str:
    """`jax` where the script says `os.environ["KERAS_BACKEND"] = "jax"`, or sets or defaults it by a call."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            targets = [one.slice for one in node.targets if isinstance(one, ast.Subscript)]
            if any(isinstance(one, ast.Constant) and one.value == _BACKEND for one in targets):
                return str(node.value.value)
        if isinstance(node, ast.Call):
            given = [one.value for one in node.args if isinstance(one, ast.Constant)]
            if len(given) == 2 and given[0] == _BACKEND:  # os.environ.setdefault, os.putenv
                return str(given[1])
    return ""


def _choose(imported: Counter[str], texts: list[str]) -> str | None:
    """A framework that wraps another wins over it; of unrelated ones the one whose distributed part is used."""
    if len(imported) < 2:
        return next(iter(imported), None)
    logs = load_frameworks()
    wrapped = {other for name in imported if name in ("horovod", "keras") for other in logs[name].OUTRANKS}
    left = [name for name in imported if name not in wrapped] or list(imported)
    used = {name: sum(text.count(word) for text in texts for word in _DISTRIBUTED.get(name, ())) for name in left}
    return max(left, key=lambda name: (used[name], imported[name], name))


def _modules(script: Path) -> Iterator[tuple[Path, str, ast.Module]]:
    """The script, then the local modules that it imports: one level."""
    first = _parse(script)
    if first is None:
        return
    yield script, *first
    seen = {script.resolve()}
    for module in list(_imports(first[1]))[:_MOST_MODULES]:
        for path in _local_files(script.parent, module):
            if path.resolve() in seen:
                continue
            seen.add(path.resolve())
            if (parsed := _parse(path)) is not None:
                yield path, *parsed


def _local_files(folder: Path, module: str) -> Iterator[Path]:
    target = folder.joinpath(*module.lstrip(".").split("."))
    for path in (target.with_suffix(".py"), target / "__init__.py"):
        if path.is_file():
            yield path


def _parse(path: Path) -> tuple[str, ast.Module] | None:
    try:
        if path.stat().st_size > _LARGEST:
            return None
        text = path.read_bytes().decode("utf-8", "replace")
        return text, ast.parse(text)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None  # the interpreter will say what is wrong with it


def _imports(tree: ast.Module) -> Iterator[str]:
    """Full names of what is imported anywhere in the module; `from . import x` as `x`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.module:
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names if node.module != "__future__")
            else:
                yield from (alias.name for alias in node.names)


def script_of_command(command: Sequence[str], folder: Path) -> Path | None:
    """The script in what a rank runs, `python train.py` or `python -m package.train`; None for another program."""
    given = [one for one in command[1:] if one == "-m" or not one.startswith("-")]
    if not given:
        return None
    if given[0] == "-m":
        return module_file(given[1], folder) if len(given) > 1 else None
    return folder / given[0] if given[0].endswith(".py") and (folder / given[0]).is_file() else None


def module_file(module: str, folder: Path) -> Path | None:
    """The file that `python -m module` would run, if it lies below the folder."""
    target = folder.joinpath(*module.split("."))
    candidates = (target.with_suffix(".py"), target / "__main__.py", target / "__init__.py")
    return next((path for path in candidates if path.is_file()), None)

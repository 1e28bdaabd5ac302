"""What a saved dictionary is made of: the model's tensors, and which of the states that a resumed run needs are there.

People name the entries as they like; what is recognised is the usual words and the shapes that PyTorch's own
`state_dict()` of optimizers, schedulers and scalers have.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from phalanx.checkpoint_files.model import Kind, Part, Tensor
from phalanx.checkpoint_files.pickled import Global, Node
from phalanx.checkpoint_files.torch_file import TorchFile
from phalanx.checkpoint_files.torch_tensors import Found

_STATE_WORDS = {
    "optimizer": re.compile(r"optim|^opt$|^opt_|_opt$|^fp32_flat_groups$|^base_optimizer_state", re.I),
    "scheduler": re.compile(r"sched(?!ule_free)", re.I),
    "scaler": re.compile(r"scaler|loss_?scale|^amp$|^MixedPrecision", re.I),
    "random": re.compile(r"rng|random|generator_state|(?:torch|numpy|cuda|python|cpu|np)_?(?:rand|state)", re.I),
    "sampler": re.compile(
        r"sampler|data_?loader|^dl_state|^loops$|consumed_(?:train_)?samples|batch_progress|(?:iter|step|batch)_in_epoch"
        r"|samples_seen|seen_samples|batch_idx|data_state|data_position",
        re.I,
    ),
}
_STAMP = re.compile(
    r"^(?:global_?|current_?|train_?|total_?|last_?)?(steps?|iter(?:ation)?s?|epochs?|(?:num_)?updates|it|batches_seen)$",
    re.I,
)
# A container whose name is not part of the parameters' names.
_CONTAINER = re.compile(
    r"^(?:model|state_?dict|module|net|network|weights|params|app|state|model_?state(?:_?dict)?|model_?weights)$", re.I
)
_COPIES = re.compile(r"ema|shadow|swa|average|best", re.I)
_MOMENTS = re.compile(r"exp_avg|momentum_buffer|exp_inf|square_avg|acc_delta|max_exp_avg")
_OF_MODULES = frozenset({"_modules", "_parameters", "_buffers"})
_NOT_STATES = frozenset({"args", "config", "cfg", "hparams", "hyper_parameters", "callbacks", "opt_args"})
_DANGEROUS = re.compile(
    r"^(?:os|posix|nt|subprocess|sys|socket|shutil|pty|commands|importlib|runpy|ctypes|webbrowser|urllib|requests|httpx"
    r"|pip|code|codeop|pdb|bdb|timeit|cProfile|profile|marshal|signal|tempfile|pathlib\.os|multiprocessing|threading"
    r"|asyncio|http|ftplib|telnetlib|smtplib|platform|builtins\.(?:eval|exec|compile|open|__import__|breakpoint|input|execfile|globals|vars)"
    r"|__builtin__\.(?:eval|exec|compile|open|__import__|execfile|file|apply|input)|operator\.(?:attrgetter|methodcaller)"
    r"|torch\.hub|torch\.utils\.cpp_extension|numpy\.testing|numpy\.f2py|types\.(?:CodeType|FunctionType))(?:\.|$)"
)
_USUAL = ("torch", "numpy", "collections", "builtins", "__builtin__", "_codecs", "copyreg", "copy_reg")


def part_of(read: TorchFile, name: str, rank: int | None = None) -> Part:
    """One file of torch.save as a part of a checkpoint."""
    part = Part(name, rank, read.bytes)
    part.tensors = [_tensor(path, found, read) for path, found in read.tensors]
    states_in(read.tree, part)
    if any(tensor.kind is Kind.MODEL for tensor in part.tensors):
        part.states.setdefault("model", _whole_object(read.tree) or "parameters")
    outside = {str(one) for one in read.globals if one.module.partition(".")[0] not in _USUAL}
    part.needs = tuple(sorted(outside - set(harmful(read.globals))))
    return part


def harmful(names: Sequence[Global] | frozenset[Global]) -> list[str]:
    """Names that no checkpoint needs, and that run programs or code."""
    return sorted(str(one) for one in names if _DANGEROUS.match(str(one)))


def _whole_object(tree: Any) -> str:
    if isinstance(tree, Node) and isinstance(tree.state, dict) and "_modules" in tree.state:
        return f"a pickled {tree.name}"
    return ""


def _tensor(path: tuple[str, ...], found: Found, read: TorchFile) -> Tensor:
    kind, name = kind_and_name(path)
    span = read.storages.get(found.key)
    size = found.bytes
    start = found.offset * (size // max(1, _count(found)))
    plain = found.is_plain and span is not None and start + size <= span.length
    return Tensor(
        name, found.dtype, found.shape, kind, span, start if plain else 0, size, plain, found.sharding, found.whole
    )


def _count(found: Found) -> int:
    count = 1
    for side in found.shape:
        count *= side
    return count


def kind_and_name(path: Sequence[str]) -> tuple[Kind, str]:
    """What a tensor is for by the keys that lead to it, and its name within its model."""
    words = [word for word in path if word not in _OF_MODULES]
    for place, word in enumerate(words[:-1]):
        if _STATE_WORDS["optimizer"].search(word):
            return Kind.OPTIMIZER, ".".join(words)
        if _COPIES.search(word) or any(_STATE_WORDS[name].search(word) for name in ("random", "scaler", "sampler")):
            return Kind.OTHER, ".".join(words)
        if not _CONTAINER.match(word):
            return (Kind.OPTIMIZER if _MOMENTS.search(words[-1]) else Kind.MODEL), ".".join(words[place:])
    last = words[-1] if words else ""
    if _MOMENTS.search(last):
        return Kind.OPTIMIZER, ".".join(words)
    is_state = "." not in last and any(_STATE_WORDS[name].search(last) for name in ("random", "sampler", "scaler"))
    return (Kind.OTHER if is_state else Kind.MODEL), last


def states_in(tree: Any, part: Part) -> None:
    """Note which states and stamps a saved dictionary holds."""
    for path, value in _entries(tree):
        word = path[-1]
        for name, pattern in _STATE_WORDS.items():
            if name not in part.states and pattern.search(word) and not _is_nothing(value):
                part.states[name] = _in_a_word(name, value)
        shape = _shape_of(value)
        if shape and shape not in part.states:
            part.states[shape] = _in_a_word(shape, value)
        stamp = _STAMP.match(word)
        if stamp and isinstance(value, int | float) and not isinstance(value, bool) and len(path) <= 2:
            part.stamps.setdefault(word, value)


def _entries(tree: Any, path: tuple[str, ...] = (), depth: int = 3) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Entries of dictionaries near the top; what belongs to optimizers and the like is not looked into."""
    if not isinstance(tree, dict) or depth == 0 or len(tree) > 4096:
        return
    for key, value in tree.items():
        if not isinstance(key, str) or (key in _NOT_STATES and key != "args"):
            continue
        yield (*path, key), value
        is_state = any(pattern.search(key) for pattern in _STATE_WORDS.values())
        if isinstance(value, dict) and not is_state and not _shape_of(value) and "." not in key:
            yield from _entries(value, (*path, key), depth - 1)


def _shape_of(value: Any) -> str:
    """Which state a dictionary is by its own keys."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        value = value[0]
    if not isinstance(value, dict):
        return ""
    if "param_groups" in value and "state" in value:
        return "optimizer"
    if "last_epoch" in value and ("_step_count" in value or "base_lrs" in value):
        return "scheduler"
    if "growth_factor" in value and "scale" in value:
        return "scaler"
    return ""


def _is_nothing(value: Any) -> bool:
    return value is None or value is False or (isinstance(value, dict | list | tuple) and not value)


def _in_a_word(name: str, value: Any) -> str:
    if name == "optimizer":
        first = value[0] if isinstance(value, list) and value else value
        if isinstance(first, dict) and isinstance(first.get("state"), dict):
            return f"{len(first['state'])} parameters" if first["state"] else "no moments"
    return "there"

"""Names of parameters: prefixes that wrappers leave in them, and the one line that takes such a prefix off."""

from __future__ import annotations

import re
from collections.abc import Collection

WRAPPERS = {
    "module.": "DistributedDataParallel or DataParallel",
    "_orig_mod.": "torch.compile",
    "_fsdp_wrapped_module.": "FullyShardedDataParallel",
    "_checkpoint_wrapped_module.": "activation checkpointing",
    "_forward_module.": "Lightning's Fabric or a strategy",
}
_ANYWHERE = re.compile(
    r"(?:(?<=^)|(?<=\.))(_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module|_forward_module)\."
)


def wrappers_in(name: str) -> list[str]:
    """Prefixes of wrappers in a name: `module.` only at its start, since people name their own layers so, too."""
    found = ["module."] if name.startswith("module.") else []
    return found + [f"{one}." for one in _ANYWHERE.findall(name)]


def unwrapped(name: str) -> str:
    """A name without what wrappers added."""
    bare = _ANYWHERE.sub("", name)
    while bare.startswith("module."):
        bare = bare.removeprefix("module.")
    return bare


def stripping_line(prefixes: Collection[str]) -> str:
    """The line that takes prefixes off the keys of `state_dict`."""
    if len(prefixes) == 1 and (prefix := next(iter(prefixes))) == "module.":
        return f'torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state_dict, "{prefix}")'
    changes = "".join(
        f'.removeprefix("{prefix}")' if prefix == "module." else f'.replace("{prefix}", "")'
        for prefix in sorted(prefixes)
    )
    return f"state_dict = {{name{changes}: tensor for name, tensor in state_dict.items()}}"


def common_prefix(longer: Collection[str], shorter: Collection[str]) -> str:
    """The text before all names of one side that makes them those of the other; empty if there is none."""
    if not longer or len(longer) != len(shorter):
        return ""
    first, other = min(longer, key=len), min(shorter, key=len)
    prefix = first.removesuffix(other)
    if prefix == first or not prefix.endswith("."):
        return ""
    return prefix if {f"{prefix}{name}" for name in shorter} == set(longer) else ""

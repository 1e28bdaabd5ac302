"""Classes that a trainer library calls back."""

from __future__ import annotations

from phalanx.lint.context import Context
from phalanx.lint.tree import Scope

_BASES = frozenset({"lightning.LightningModule", "lightning.LightningDataModule"})


def module_classes(context: Context) -> list[Scope]:
    """Lightning's modules and data modules of this file."""
    if "ightning" not in context.module.source.text:
        return []
    return [owner for owner in context.module.classes if context.inference.bases(owner) & _BASES]


def trains_on_many(context: Context) -> bool:
    """Whether the program makes a Trainer for several processes, as far as its arguments say so."""
    for call, scope in context.calls_in_program("lightning.Trainer", "lightning.Fabric"):
        given = {item.arg: context.constant(item.value, scope) for item in call.keywords}
        counts = [given.get(name) for name in ("devices", "num_nodes", "gpus")]
        if any(isinstance(count, int) and not isinstance(count, bool) and count > 1 for count in counts):
            return True
        if str(given.get("strategy", "")).startswith(("ddp", "fsdp", "deepspeed")) and given.get("devices") != 1:
            return True
    return False

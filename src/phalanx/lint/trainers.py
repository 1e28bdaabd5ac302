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

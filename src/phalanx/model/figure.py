"""A picture for a page: lines over a common axis."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """One line of it."""

    label: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """Lines; `is_log` draws values by their magnitude, with those that are zero at the bottom."""

    title: str
    caption: str
    across: str
    up: str
    lines: tuple[Line, ...]
    is_log: bool = False

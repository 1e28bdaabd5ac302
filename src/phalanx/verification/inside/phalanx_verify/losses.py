"""How a loss is composed, read from its graph: by what it is multiplied or divided, and whether its core is a mean or a sum."""

from __future__ import annotations

from typing import Any

_DEEPEST = 16
_THROUGH = (
    "ToCopyBackward0",
    "AliasBackward0",
    "ViewBackward0",
    "SqueezeBackward0",
    "UnsqueezeBackward0",
    "CloneBackward0",
)


def composition(loss: Any) -> tuple[float | None, str]:
    """`(factor, kind)`: the loss is factor times a `mean` or a `sum`; `(None, "")` where its graph does not tell."""
    node = getattr(loss, "grad_fn", None)
    return _walk(node, 1.0, 0) if node is not None else (None, "")


def _walk(node: Any, factor: float, depth: int) -> tuple[float | None, str]:
    while node is not None and depth < _DEEPEST:
        depth += 1
        name = type(node).__name__
        following = [one for one, _ in node.next_functions]
        if name in _THROUGH:
            node = following[0]
        elif name == "DivBackward0" and len(following) > 1 and following[1] is None:
            by = _value(getattr(node, "_saved_other", None))
            if not by:
                return None, ""
            factor, node = factor / by, following[0]
        elif name == "MulBackward0":
            by, node = _factor_of(node, following)
            if by is None:
                return None, ""
            factor *= by
        elif name == "AddBackward0":
            return _heaviest([_walk(one, factor, depth) for one in following if one is not None])
        else:
            return _core(node, name, factor)
    return None, ""


def _heaviest(parts: list[tuple[float | None, str]]) -> tuple[float | None, str]:
    """Of a sum of terms the one with the largest factor: the others are penalties beside it."""
    known = [(factor, kind) for factor, kind in parts if factor is not None]
    return max(known, key=lambda part: abs(part[0])) if known else (None, "")


def _factor_of(node: Any, following: list[Any]) -> tuple[float | None, Any]:
    """Of a product with a constant: the constant, and the other side."""
    if len(following) > 1 and following[1] is None:
        return _value(getattr(node, "_saved_other", None)), following[0]
    if len(following) > 1 and following[0] is None:
        return _value(getattr(node, "_saved_self", None)), following[1]
    return None, None


def _core(node: Any, name: str, factor: float) -> tuple[float | None, str]:
    reduction = getattr(node, "_saved_reduction", None)
    if isinstance(reduction, int):
        return factor, {1: "mean", 2: "sum"}.get(reduction, "")
    if name.startswith("MeanBackward"):
        return factor, "mean"
    return (factor, "sum") if name.startswith("SumBackward") else (None, "")


def _value(saved: Any) -> float | None:
    """A constant of one number."""
    if isinstance(saved, (int, float)):
        return float(saved)
    return float(saved.detach()) if hasattr(saved, "numel") and saved.numel() == 1 else None

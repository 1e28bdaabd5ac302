"""Fingerprints that can be added: two random projections of a tensor, and its norm.

A projection is linear. So whoever knows the projections of all ranks' own gradients knows that of their sum or mean without
having seen a tensor, and the difference of two projections tells how far apart the tensors are.
"""

from __future__ import annotations

from typing import Any

LENGTH = 4096  # the projection repeats with other signs after so many elements
_made: dict[str, tuple[Any, Any]] = {}


def _vectors(device: Any) -> tuple[Any, Any]:
    import torch

    key = str(device)
    if key not in _made:
        source = torch.Generator().manual_seed(0x5EED)  # of its own: the script's random numbers stay as they are
        directions = torch.randn(LENGTH, 2, generator=source)
        signs = torch.randint(0, 2, (LENGTH,), generator=source).float() * 2 - 1
        _made[key] = directions.to(device), signs.to(device)
    return _made[key]


def local(tensor: Any) -> Any:
    """The rank's own part of a distributed tensor, else the tensor itself."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def sketch(tensor: Any) -> list[float] | None:
    """`[first projection, second projection, norm]`; None for what has no numbers."""
    import torch

    with torch.no_grad(), torch.autocast(tensor.device.type, enabled=False):
        flat = _flat(torch, tensor)
        if flat is None:
            return None
        directions, signs = _vectors(flat.device)
        rows, rest = divmod(flat.numel(), LENGTH)
        total = flat[rows * LENGTH :] @ directions[:rest]
        if rows:
            parts = flat[: rows * LENGTH].view(rows, LENGTH) @ directions
            total = total + (parts * _signs_for(signs, rows)).sum(0)
        found: list[float] = torch.cat((total, torch.linalg.vector_norm(flat).reshape(1))).tolist()
        return found


def _signs_for(signs: Any, rows: int) -> Any:
    """A sign for each row; of very long tensors they repeat."""
    return (signs if rows <= LENGTH else signs.repeat(rows // LENGTH + 1))[:rows, None]


def _flat(torch: Any, tensor: Any) -> Any:
    tensor = local(tensor.detach())
    if tensor.layout is not torch.strided:
        tensor = tensor.coalesce().values() if tensor.layout is torch.sparse_coo else None
    if tensor is None or tensor.numel() == 0 or tensor.is_meta:
        return None
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    return tensor.reshape(-1).float()

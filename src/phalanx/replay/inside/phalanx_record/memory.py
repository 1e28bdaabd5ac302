"""Where tensors lie: the bytes of PyTorch's and NumPy's, without a copy where these mean what is there."""

from __future__ import annotations

import ctypes
from typing import Any

_tells_keys: dict[type, Any] = {}  # a function that gives a tensor's keys, by its class; see `lies_plainly`
_known: dict[int, bool] = {}  # by keys


class UnsupportedError(Exception):
    """What cannot be recorded; the message says why."""


def lies_plainly(tensor: Any) -> bool:
    """Whether a tensor of PyTorch's is in this processor's memory, dense, and means the bytes that are there.

    PyTorch has all of this in one number, the keys of its dispatcher; asking for each by itself takes longer than a fingerprint.
    """
    if not _tells_keys:
        _tells_keys.update(_who_tells_keys())
    keys_of = _tells_keys.get(type(tensor))
    if keys_of is None:  # other classes may say what they like of themselves
        return _is_plain(tensor)
    keys = keys_of(tensor).raw_repr()
    known = _known.get(keys)
    if known is None:
        known = _known[keys] = _is_plain(tensor)
    return known


def _is_plain(tensor: Any) -> bool:
    is_dense = tensor.is_cpu and not tensor.is_meta and str(tensor.layout) == "torch.strided"
    return bool(is_dense and not tensor.is_conj() and not tensor.is_neg())


def check_supported(tensor: Any) -> None:
    """Raise UnsupportedError where there are no bytes that could be looked at."""
    if tensor.is_meta or str(tensor.layout) != "torch.strided":
        raise UnsupportedError(f"a tensor that is {tensor.layout} on {tensor.device}")


def _who_tells_keys() -> dict[type, Any]:
    import torch

    keys_of = getattr(torch._C, "_dispatch_keys", None)
    return {torch.Tensor: keys_of, torch.nn.Parameter: keys_of}


class Bytes:
    """The bytes of a tensor without a copy where it lies in memory as it should; holds the tensor as long as it lives."""

    __slots__ = ("_held", "address", "is_view", "size")

    def __init__(self, tensor: Any) -> None:
        if hasattr(tensor, "data_ptr"):
            held = tensor
            self.is_view = lies_plainly(held) and held.is_contiguous()
            if not self.is_view:
                check_supported(held)
                held = held.detach().cpu().contiguous().resolve_conj().resolve_neg()
            self.address, self.size = held.data_ptr(), held.nbytes
        else:
            import numpy

            self.is_view = bool(tensor.flags.c_contiguous)
            held = tensor if self.is_view else numpy.ascontiguousarray(tensor)  # would copy a single number too
            self.address, self.size = held.ctypes.data, held.nbytes
        self._held: Any = held

    @property
    def array(self) -> Any:
        """As NumPy sees them."""
        import numpy

        if not self.size:
            return numpy.empty(0, numpy.uint8)
        return numpy.frombuffer((ctypes.c_uint8 * self.size).from_address(self.address), numpy.uint8)


def width_of(tensor: Any) -> int:
    """Bytes of one element, of PyTorch's tensors and NumPy's arrays."""
    return int(tensor.element_size() if hasattr(tensor, "element_size") else tensor.itemsize)


def size_of(tensor: Any) -> int:
    """Bytes of all elements."""
    return int(tensor.nbytes)

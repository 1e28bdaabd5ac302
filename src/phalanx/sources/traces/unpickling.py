"""Unpickles nothing but plain containers, numbers and strings: what asks for more is refused, and nothing of it is run."""

from __future__ import annotations

import io
import pickle
from types import SimpleNamespace
from typing import Any, NoReturn, cast

from phalanx.sources.traces.protocol import UnreadableError

_NEEDS = "a flight-recorder dump as PyTorch writes it; do not open this file with pickle yourself"
DAMAGED = (EOFError, pickle.UnpicklingError, ValueError, IndexError, KeyError)  # what loading a damaged pickle raises
_MEMO = frozenset({"LONG_BINPUT", "PUT", "BINPUT"})


class _RefusedError(Exception):
    """The pickle asks for something that is not plain data."""


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise _RefusedError(f"it asks for {module[:60]}.{name[:60]}")

    def persistent_load(self, reference: object) -> NoReturn:
        raise _RefusedError("it refers to objects outside of itself")


def load_plain(data: bytes) -> Any:
    """The plain data of a pickle. Raises UnreadableError for one that is hostile, EOFError or UnpicklingError for a damaged one.

    The unpickler's table of remembered objects grows to the largest number that a pickle names, whatever its length; a caller
    that reads foreign pickles checks that by `check_memo` or bounds its process' memory.
    """
    try:
        # A stream that can be peeked at is read in large pieces, others byte by byte: a third of the time. Without `readinto`:
        # Python complains on standard error of a bytearray that is cut off within it.
        stream = io.BufferedReader(cast(io.RawIOBase, io.BytesIO(data)), 1 << 20)
        return _PlainUnpickler(SimpleNamespace(read=stream.read, readline=stream.readline, peek=stream.peek)).load()
    except _RefusedError as error:
        raise UnreadableError(
            f"refused, nothing of it was run: {error}; a trace holds plain data only", _NEEDS
        ) from error
    except MemoryError as error:
        raise UnreadableError("refused: it asks for more memory than its size can need", _NEEDS) from error


def check_memo(data: bytes) -> None:
    """Raises UnreadableError for a pickle that numbers its objects higher than its length. Slow: for small pickles."""
    import pickletools

    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name in _MEMO and isinstance(argument, int) and argument > len(data):
                raise UnreadableError("refused: it asks for more memory than its size can need", _NEEDS)
    except (ValueError, IndexError, EOFError):
        return  # cut short or damaged: loading it will say so

"""Random states: what is left unseeded gets a recorded seed, and at every step it is noted where the generators stand."""

from __future__ import annotations

import base64
import random
import sys
import zlib
from typing import Any

from .arrival import when_imported


def seed_at_start(seed: int, rank: int) -> None:
    """Python's and NumPy's generators would begin by chance; they begin by a chance that is written down.

    PyTorch's begins with a fixed number anyway. What asks the operating system (`default_rng()`, `SystemRandom`) stays by
    chance, and a replay says so.
    """
    seed = (seed + rank * 0x9E3779B1) % 2**32  # unseeded ranks differ from each other, and must go on to do so
    random.seed(seed)

    def seed_numpy(module: Any) -> None:
        module.seed(seed)

    when_imported("numpy.random", seed_numpy)


def states() -> dict[str, str]:
    """The generators' whole states, as text."""
    found = {"python": _text(repr(random.getstate()).encode())}
    torch = sys.modules.get("torch")
    if torch is not None:
        found["torch"] = _text(bytes(torch.get_rng_state().numpy()))
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "random"):
        kind, keys, position, has_gauss, cached = numpy.random.get_state()
        found["numpy"] = _text(repr((kind, keys.tolist(), int(position), int(has_gauss), float(cached))).encode())
    return found


def restore(kept: dict[str, str]) -> None:
    """Set the generators back. Only numbers are read: text that is anything else is refused."""
    import ast

    if "python" in kept:
        version, numbers, gauss = ast.literal_eval(_data(kept["python"]).decode())
        random.setstate((version, tuple(numbers), gauss))
    torch = sys.modules.get("torch")
    if torch is not None and "torch" in kept:
        torch.set_rng_state(torch.frombuffer(bytearray(_data(kept["torch"])), dtype=torch.uint8))
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy" in kept:
        kind, keys, position, has_gauss, cached = ast.literal_eval(_data(kept["numpy"]).decode())
        numpy.random.set_state((kind, numpy.array(keys, dtype=numpy.uint32), position, has_gauss, cached))


def marks() -> dict[str, int]:
    """Short marks of where the generators stand, to be compared."""
    found = {"python": hash(random.getstate()[1]) & 0xFFFFFFFF}  # numbers are not salted
    torch = sys.modules.get("torch")
    if torch is not None:
        found["torch"] = zlib.crc32(torch.get_rng_state().numpy())
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy.random" in sys.modules:
        state = numpy.random.get_state(legacy=False)["state"]
        key = state.get("key")
        if key is not None:
            found["numpy"] = zlib.crc32(key, int(state["pos"]))
    return found


def _text(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 1)).decode()


def _data(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))

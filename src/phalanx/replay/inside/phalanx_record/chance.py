"""Random states: what is left unseeded gets a recorded seed, and at every step it is noted where the generators stand."""

from __future__ import annotations

import _random
import base64
import ctypes
import random
import sys
import zlib
from array import array
from typing import Any

from .arrival import when_imported


def seed_at_start(seed: int, rank: int) -> None:
    """Python's, NumPy's and PyTorch's generators would begin by chance; they begin by a chance that is written down.

    What asks the operating system (`default_rng()`, `SystemRandom`) stays by chance, and a replay says so.
    """
    seed = (seed + rank * 0x9E3779B1) % 2**32  # unseeded ranks differ from each other, and must go on to do so
    random.seed(seed)

    def seed_numpy(module: Any) -> None:
        module.seed(seed)

    def seed_torch(module: Any) -> None:
        module.manual_seed(seed)

    when_imported("numpy.random", seed_numpy)
    when_imported("torch", seed_torch)


def states() -> dict[str, str]:
    """The generators' whole states, as text."""
    version, numbers, gauss = random.getstate()
    found = {"python": f"{version} {gauss!r} {_text(array('I', numbers))}"}
    torch = sys.modules.get("torch")
    if torch is not None:
        found["torch"] = _text(torch.get_rng_state().numpy())
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy.random" in sys.modules:
        kind, keys, position, has_gauss, cached = numpy.random.get_state()
        found["numpy"] = f"{kind} {int(position)} {int(has_gauss)} {float(cached)!r} {_text(keys)}"
    return found


def restore(kept: dict[str, str]) -> None:
    """Set the generators back. Only numbers are read."""
    if "python" in kept:
        version, gauss, numbers = kept["python"].split(" ")
        held = None if gauss == "None" else float(gauss)
        random.setstate((int(version), tuple(array("I", _data(numbers))), held))
    torch = sys.modules.get("torch")
    if torch is not None and "torch" in kept:
        torch.set_rng_state(torch.frombuffer(bytearray(_data(kept["torch"])), dtype=torch.uint8))
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy" in kept:
        kind, position, has_gauss, cached, keys = kept["numpy"].split(" ")
        if not 0 <= int(position) <= 624:  # NumPy would read there
            raise ValueError(f"NumPy's random state stands at {position}")
        state = (kind, numpy.frombuffer(_data(keys), numpy.uint32), int(position), int(has_gauss), float(cached))
        numpy.random.set_state(state)


def marks() -> dict[str, int]:
    """Short marks of where the generators stand, to be compared."""
    found = {"python": _mark("python", _python_memory() or array("I", random.getstate()[1]))}
    torch = sys.modules.get("torch")
    if torch is not None:
        found["torch"] = _mark("torch", torch.get_rng_state().numpy())
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy.random" in sys.modules:
        generator = numpy.random.mtrand._rand._bit_generator
        if type(generator).__name__ == "MT19937":
            # NumPy itself takes the state apart number by number, a quarter of a millisecond at every step.
            state = (ctypes.c_uint32 * 625).from_address(generator.ctypes.state_address)
            found["numpy"] = _mark("numpy", state)
    return found


def _mark(name: str, state: Any) -> int:
    """Most generators stand still at most steps, and comparing is much quicker than summing up."""
    data = bytes(state)
    if name not in _marks or _marks[name][0] != data:
        _marks[name] = data, zlib.crc32(data)
    return _marks[name][1]


_marks: dict[str, tuple[bytes, int]] = {}


def _python_memory() -> Any:
    """Where Python's generator holds its numbers, followed by its place in them; None where that is not as we know it.

    `random.getstate()` makes 625 objects of them, which is too much for every step.
    """
    if "python" not in _memory:
        _memory["python"] = None
        generator = getattr(random, "_inst", None)
        if generator is not None and sys.implementation.name == "cpython":
            class_size, numbers = _random.Random.__basicsize__, random.getstate()[1]
            head = object.__basicsize__
            if class_size >= head + 4 * 625:
                raw = (ctypes.c_uint32 * 625).from_address(id(generator) + head)
                if (*raw[1:], raw[0]) == numbers:  # its place stands first there
                    _memory["python"] = raw
    return _memory["python"]


_memory: dict[str, Any] = {}


def _text(data: Any) -> str:
    return base64.b64encode(data).decode()


def _data(text: str) -> bytes:
    return base64.b64decode(text)

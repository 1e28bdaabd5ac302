"""Whether a rank's main thread turns in a circle: looks at the loop it is in, many times within a second, from a thread beside it.

From outside one line that never ends may be a loop or one long call of native code, and the variables of a module are not seen.
Here the interpreter itself tells where it stands. Called only when the job seems to stand still. Works with Python 3.8 and later.
"""

from __future__ import annotations

import sys
import time

TYPE_CHECKING = False  # as typing has it, without the time that importing it costs
if TYPE_CHECKING:
    from collections.abc import Hashable
    from types import CodeType, FrameType

UNKNOWN, TURNS, CHANGES = 0, 1, 2
LOOKS, BETWEEN_S = 60, 0.015
FEWEST_LOOKS = 20  # after which it is known where the loop begins and ends
SMALL = 20  # what a list may hold so that all of it is compared
DEEP = 3  # a.b.c
SIMPLE = (int, float, complex, bool, type(None))
FIXED = ("module", "function", "type", "method")
LIBRARIES = ("site-packages", "dist-packages", "/lib/python", "<frozen")
OF_PYTHON = 1 << 9  # a flag of classes that are not made in C


class OpaqueError(Exception):
    """Something that may change without being seen to."""


def turning_of(main: int) -> int:
    """TURNS if the thread goes through the same states of one loop of the script again and again, CHANGES if its variables go on
    to new values, UNKNOWN if it is elsewhere, in one call, or uses what cannot be compared."""
    first = sys._current_frames().get(main)
    if first is None or any(part in first.f_code.co_filename.replace("\\", "/") for part in LIBRARIES):
        return UNKNOWN
    offsets: list[int] = []
    states: list[Hashable] = []
    loop: Loop | None = None
    for number in range(LOOKS):
        if number:
            time.sleep(BETWEEN_S)
        frame = sys._current_frames().get(main)
        if frame is not first:
            return UNKNOWN  # it calls functions: there is more to see than one frame shows
        offsets.append(frame.f_lasti)
        try:
            if loop is not None:
                states.append(loop.state_of(frame))
            elif len(offsets) >= FEWEST_LOOKS:
                loop = Loop(names_within(first.f_code, offsets))
        except Exception:  # what cannot be compared; and a property of the user's may raise anything
            return UNKNOWN
    half = len(states) // 2
    known = set(states[:half])
    return TURNS if known.issuperset(states[half:]) and len(known) <= half // 2 else CHANGES


def names_within(code: CodeType, offsets: list[int]) -> frozenset[str]:
    """The names that the loop uses. Raises OpaqueError if it is not seen to be one: at no jump, and always at one place, as in a long call."""
    import dis

    begins, ends = min(offsets), max(offsets)
    found = list(dis.get_instructions(code))
    jumps = [one.argval for one in found if one.offset in offsets and "JUMP" in one.opname]
    if not jumps and len(set(offsets)) < 2:
        raise OpaqueError
    targets = [target for target in jumps if isinstance(target, int)]
    begins, ends = min([begins, *targets]), max([ends, *targets])
    return frozenset(one.argval for one in found if begins <= one.offset <= ends and isinstance(one.argval, str))


class Loop:
    """The variables and attributes that a loop uses, as far as they can be compared."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._known: dict[tuple[str, ...], int] = {}  # which object stands under a name

    def state_of(self, frame: FrameType) -> Hashable:
        """Equal for what is equal as far as the loop can see. Raises OpaqueError where that is not known."""
        told: list[Hashable] = []
        for name in sorted(self._names):
            for scope in (frame.f_locals, frame.f_globals):
                if name in scope:
                    told.append((name, self._mark(scope[name], (name,))))
                    break
        return tuple(told)

    def _mark(self, value: object, way: tuple[str, ...]) -> Hashable:
        kind = type(value)
        if kind in SIMPLE:
            return (kind.__name__, repr(value))
        if isinstance(value, (str, bytes)) and kind in (str, bytes) and len(value) <= 1000:
            return value
        if kind.__name__ in FIXED or isinstance(value, type) or _is_builtin(value):
            return id(value)
        if len(way) > DEEP:
            raise OpaqueError
        if isinstance(value, (list, tuple)) and kind in (list, tuple) and len(value) <= SMALL:
            return (kind.__name__, *(self._mark(one, (*way, str(place))) for place, one in enumerate(value)))
        if isinstance(value, dict) and kind is dict and len(value) <= SMALL:
            return tuple((repr(key)[:64], self._mark(one, (*way, repr(key)[:64]))) for key, one in value.items())
        # another object at an address that was free again would look the same: it must be one and the same all the time
        if self._known.setdefault(way, id(value)) != id(value):
            raise OpaqueError
        # asked of PyTorch's alone: an attribute of the user's may be computed, and must not be because somebody looks
        version = getattr(value, "_version", None) if kind.__module__.split(".")[0] == "torch" else None
        if isinstance(version, int):
            return version  # PyTorch counts what is done to a tensor in place
        own = object.__getattribute__(value, "__dict__") if kind.__flags__ & OF_PYTHON else None
        if isinstance(own, dict):
            used = sorted(self._names & own.keys())
            return tuple((name, self._mark(own[name], (*way, name))) for name in used)
        raise OpaqueError


def _is_builtin(value: object) -> bool:
    if type(value).__name__ != "builtin_function_or_method":
        return False
    return type(getattr(value, "__self__", None)).__name__ == "module"

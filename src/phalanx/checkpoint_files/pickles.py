"""Reads a pickle as data: classes become names, calls become nodes. Nothing is imported, built or called.

Python's own unpickler resolves names and calls what it finds. This one keeps `os.system("…")` as `Node(Global("os",
"system"), ("…",))`, so a checkpoint from anywhere can be looked at.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from phalanx.checkpoint_files.pickled import Global, Node, Pickled, PickleError, as_key

MOST_OPERATIONS = 20_000_000
_DICTS = frozenset({("collections", "OrderedDict"), ("collections", "defaultdict"), ("builtins", "dict")})


_MARK = object()
_PLAIN: dict[int, Any] = {ord("N"): None, 0x88: True, 0x89: False}
_FIXED: dict[int, str] = {ord("K"): "<B", ord("M"): "<H", ord("J"): "<i", ord("G"): ">d"}
# The length's form, and whether the bytes behind it are text.
_SIZED: dict[int, tuple[str, str]] = {
    ord("X"): ("<I", "utf-8"),
    0x8C: ("<B", "utf-8"),
    0x8D: ("<Q", "utf-8"),
    ord("U"): ("<B", "latin-1"),
    ord("T"): ("<i", "latin-1"),
    ord("B"): ("<I", ""),
    ord("C"): ("<B", ""),
    0x8E: ("<Q", ""),
    0x96: ("<Q", ""),
}
_LONGS = {0x8A: "<B", 0x8B: "<i"}
_GETS = {ord("h"): "<B", ord("j"): "<I"}
_PUTS = {ord("q"): "<B", ord("r"): "<I"}
_SKIPPED = {0x80: 1, 0x95: 8}  # PROTO, FRAME
_TUPLES = {0x85: 1, 0x86: 2, 0x87: 3}
_EXTENSIONS = {0x82: "<B", 0x83: "<H", 0x84: "<i"}


def read_pickle(data: bytes, start: int = 0) -> Pickled:
    """The pickle that begins at a place. Raises PickleError for one that is damaged or too large."""
    machine = _Machine(data, start)
    try:
        return machine.run()
    except (IndexError, struct.error) as error:
        raise PickleError(f"the pickle is cut short or damaged at byte {machine.at:,}") from error
    except (KeyError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise PickleError(f"the pickle is damaged at byte {machine.at:,}: {str(error)[:80]}") from error


class _Machine:
    """The stack machine of pickle, with nodes in the place of objects."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.globals: set[Global] = set()
        self.called: set[Global] = set()
        self.copied = 0

    def run(self) -> Pickled:
        data, stack = self.data, self.stack
        for _ in range(MOST_OPERATIONS):
            code = data[self.at]
            self.at += 1
            if code == 0x2E:  # STOP
                return Pickled(stack.pop(), frozenset(self.globals), frozenset(self.called), self.at)
            if code in _SIZED:
                stack.append(self._sized(*_SIZED[code]))
            elif code in _FIXED:
                stack.append(self._number(_FIXED[code]))
            elif code in _GETS:
                stack.append(self.memo[self._number(_GETS[code])])
            elif code in _PUTS:
                self.memo[self._number(_PUTS[code])] = stack[-1]
            elif code in _PLAIN:
                stack.append(_PLAIN[code])
            elif code in _TUPLES:
                count = _TUPLES[code]
                stack[-count:] = [tuple(stack[-count:])]
            elif code in _SKIPPED:
                self.at += _SKIPPED[code]
            else:
                self._seldom(code)
        raise ValueError(f"more than {MOST_OPERATIONS:,} operations")

    def _seldom(self, code: int) -> None:
        if code in _LONGS:
            raw = self._raw(self._number(_LONGS[code]))
            self.stack.append(int.from_bytes(raw, "little", signed=True))
        elif code in _EXTENSIONS:
            made = Global("copyreg", f"extension {self._number(_EXTENSIONS[code])}")
            self.globals.add(made)
            self.stack.append(made)
        elif code in _HANDLERS:
            _HANDLERS[code](self)
        else:
            raise ValueError(f"unknown operation {code:#04x}")

    def _number(self, form: str) -> Any:
        value = struct.unpack_from(form, self.data, self.at)[0]
        self.at += struct.calcsize(form)
        return value

    def _raw(self, length: int) -> bytes:
        if length < 0 or self.at + length > len(self.data):
            raise IndexError
        self.at += length
        return self.data[self.at - length : self.at]

    def _sized(self, form: str, encoding: str) -> str | bytes:
        raw = self._raw(self._number(form))
        return raw.decode(encoding, "replace") if encoding else raw

    def _line(self) -> str:
        stop = self.data.index(b"\n", self.at)
        text = self.data[self.at : stop].decode("utf-8", "replace")
        self.at = stop + 1
        return text

    def _marked(self) -> list[Any]:
        """What lies above the last mark."""
        stack = self.stack
        place = len(stack) - 1
        while stack[place] is not _MARK:
            place -= 1
            if place < 0:
                raise IndexError
        found = stack[place + 1 :]
        del stack[place:]
        return found

    def _name(self, module: str, name: str) -> Global:
        made = Global(module[:200], name[:200])
        self.globals.add(made)
        return made

    def _make(self, made_by: Any, args: Any) -> Any:
        if isinstance(made_by, Global):
            self.called.add(made_by)
            if (made_by.module, made_by.name) in _DICTS:
                return self._dict_of(args)
        return Node(made_by, args)

    def _dict_of(self, args: Any) -> dict[Any, Any]:
        """An ordered or defaulting dictionary, with the pairs it may have been given."""
        given = args[-1] if isinstance(args, tuple) and args else None
        if isinstance(given, dict):
            return given  # no copy: a pickle could ask for any number of them
        if not isinstance(given, list) or not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in given):
            return {}
        self.copied += len(given)
        if self.copied > len(self.data):
            raise ValueError("it multiplies its own contents")
        return {as_key(key): value for key, value in given}

    def push_line(self, convert: Callable[[str], Any]) -> None:
        self.stack.append(convert(self._line()))

    def push_marked(self, convert: Callable[[list[Any]], Any]) -> None:
        self.stack.append(convert(self._marked()))

    def reduce(self) -> None:
        args = self.stack.pop()
        self.stack[-1] = self._make(self.stack[-1], args)

    def new_with_keywords(self) -> None:
        keywords, args = self.stack.pop(), self.stack.pop()
        self.stack[-1] = self._make(self.stack[-1], (args, keywords))

    def build(self) -> None:
        state = self.stack.pop()
        if isinstance(self.stack[-1], Node):
            self.stack[-1].state = state

    def instance(self) -> None:
        made_by = self._name(self._line(), self._line())
        self.stack.append(self._make(made_by, tuple(self._marked())))

    def object(self) -> None:
        parts = self._marked()
        self.stack.append(self._make(parts[0], tuple(parts[1:])))

    def named(self) -> None:
        self.stack.append(self._name(self._line(), self._line()))

    def named_by_stack(self) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise ValueError("a name that is no text")
        self.stack.append(self._name(module, name))

    def extend(self, values: list[Any]) -> None:
        top = self.stack[-1]
        target = top.items if isinstance(top, Node) else top
        if not isinstance(target, list):
            raise ValueError("items for what is no list")
        target.extend(values)

    def update(self, values: list[Any]) -> None:
        top = self.stack[-1]
        pairs = list(zip(values[::2], values[1::2], strict=True))
        if isinstance(top, dict):
            top.update((as_key(key), value) for key, value in pairs)
        elif isinstance(top, Node):
            top.items.extend(pairs)
        else:
            raise ValueError("pairs for what is no dictionary")

    def put_next(self) -> None:
        self.memo[len(self.memo)] = self.stack[-1]

    def persistent(self, reference: Any) -> None:
        self.stack.append(Node("persistent", reference))

    def set_one(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.update([key, value])

    def drop_marked(self) -> None:
        self._marked()


def _text_number(text: str) -> Any:
    if text in ("00", "01"):  # booleans of protocol 0
        return text == "01"
    return int(text.removesuffix("L"))


_HANDLERS: dict[int, Callable[[_Machine], None]] = {
    ord("("): lambda one: one.stack.append(_MARK),
    ord("0"): lambda one: one.stack.pop() and None,
    ord("1"): _Machine.drop_marked,
    ord("2"): lambda one: one.stack.append(one.stack[-1]),
    ord("}"): lambda one: one.stack.append({}),
    ord("]"): lambda one: one.stack.append([]),
    ord(")"): lambda one: one.stack.append(()),
    0x8F: lambda one: one.stack.append([]),
    ord("t"): lambda one: one.push_marked(tuple),
    ord("l"): lambda one: one.push_marked(list),
    0x91: lambda one: one.push_marked(list),
    ord("d"): lambda one: one.push_marked(lambda values: dict(_pairs(values))),
    ord("u"): lambda one: one.update(one._marked()),
    ord("e"): lambda one: one.extend(one._marked()),
    0x90: lambda one: one.extend(one._marked()),
    ord("a"): lambda one: one.extend([one.stack.pop()]),
    ord("s"): _Machine.set_one,
    ord("R"): _Machine.reduce,
    0x81: _Machine.reduce,
    0x92: _Machine.new_with_keywords,
    ord("b"): _Machine.build,
    ord("i"): _Machine.instance,
    ord("o"): _Machine.object,
    ord("c"): _Machine.named,
    0x93: _Machine.named_by_stack,
    0x94: _Machine.put_next,
    ord("Q"): lambda one: one.persistent(one.stack.pop()),
    ord("P"): lambda one: one.persistent(one._line()),
    ord("I"): lambda one: one.push_line(_text_number),
    ord("L"): lambda one: one.push_line(_text_number),
    ord("F"): lambda one: one.push_line(float),
    ord("S"): lambda one: one.push_line(lambda text: text.strip("\"'")),
    ord("V"): lambda one: one.push_line(str),
    ord("p"): lambda one: one.memo.__setitem__(int(one._line()), one.stack[-1]),
    ord("g"): lambda one: one.stack.append(one.memo[int(one._line())]),
    0x97: lambda one: one.stack.append(None),
    0x98: lambda one: None,
}


def _pairs(values: list[Any]) -> Iterator[tuple[Hashable, Any]]:
    for key, value in zip(values[::2], values[1::2], strict=True):
        yield as_key(key), value

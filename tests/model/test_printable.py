"""What a terminal would obey is shown instead, in every text of every object."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from phalanx.model.printable import printable, printable_tree, safe, safe_bytes

HOSTILE = ["\x1b]0;title\x07", "\x1b[2J", "\x1b]8;;http://x\x1b\\link", "a\rb", "\x9b31m", "\u202eevil", "\u2066x\u2069", "\x7f", "\x00", "\ud800", "\U000e0041", "\u2028"]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_is_left_that_a_terminal_obeys(text: str) -> None:
    for shown in (printable(text), safe(text).replace("\r", ""), safe_bytes(text.encode("utf-8", "replace")).decode()):
        assert shown.isprintable(), ascii(shown)
    assert json.loads(safe(json.dumps([text], ensure_ascii=False)).replace("\r", "")) is not None


def test_plain_text_and_our_colours_stay() -> None:
    assert printable("loss 0.5\tü 漢字 ✗\n") == "loss 0.5\tü 漢字 ✗\n"
    assert safe("\x1b[1;31mred\x1b[0m") == "\x1b[1;31mred\x1b[0m"
    assert safe("\r\x1b[2K\x1b[1Aname\x1b[1A\x1b[Kfine\r") == "\r\x1b[2K\x1b[1Aname\\u001b[1A\\u001b[Kfine\\u000d"
    assert printable("\x1b[31m") == "\\u001b[31m"
    assert safe_bytes("\x1b[31mü\x1b[0m".encode()) == "\x1b[31mü\x1b[0m".encode()


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    inner: tuple[object, ...] = ()
    facts: dict[str, object] = field(default_factory=dict)


def test_every_text_of_an_object_is_cleaned_and_clean_objects_stay_the_same() -> None:
    hostile = "\x1b]0;x\x07"
    tree = Node(hostile, (Node("ok", ([hostile, 3],)), hostile), {hostile: {"a": hostile}})
    assert "\x1b" not in repr(printable_tree(tree)).replace("\\x1b", "\x1b")
    clean = Node("a", (Node("b"), 3))
    assert printable_tree(clean) is clean or printable_tree(clean) == clean

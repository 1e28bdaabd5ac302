"""How far a secret goes: quotes, brackets and separators within it, and what is no secret at all."""

from __future__ import annotations

import pytest

from phalanx.sources.secret_reach import looks_random, run_of, value


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("abcdef rest", "abcdef"),
        ("'ab cd ef' rest", "ab cd ef"),
        ('"ab\\"cdef" rest', 'ab\\"cdef'),
        ("ab&cd;ef&x=1", "ab&cd;ef"),
        ("abcdef; ls", "abcdef"),
        ("Secret('a1b2c3d4') x", "a1b2c3d4"),
        ("q1w2e3r4(zz, y", "q1w2e3r4(zz"),
        ("$a1b2C3 x", "$a1b2C3"),
        ("abcdef\x1b[0m", "abcdef"),
    ],
)
def test_a_value_ends_where_it_ends(text: str, hidden: str) -> None:
    data = text.encode()
    at = 1 if text[0] in "\"'" else 0
    stop = value(4)(data, at)
    assert data[:stop].decode().endswith(hidden)


@pytest.mark.parametrize(
    "text",
    [
        "None",
        "get_key()",
        "os.environ['A']",
        "self.password",
        "$HOME",
        "${X}",
        "%s",
        "{name}",
        "<pad>",
        "abc",
        "1234567",
    ],
)
def test_what_is_no_value(text: str) -> None:
    assert value(4)(text.encode(), 0) == -1


def test_random_words_and_runs() -> None:
    assert looks_random(b"a1b2c3d4")
    assert not looks_random(b"embedding12")
    assert run_of("ab", 3)(b"xabab!", 1) == 5
    assert run_of("ab", 3)(b"ab", 0) == -1

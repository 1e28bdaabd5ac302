"""The scanner finds every line that holds a needle, wherever the pieces are cut."""

from __future__ import annotations

import io

from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.sources.scanner import EDGE, LOOK_AHEAD, Needle, NeedleSet, hits, pieces, refused_expressions

NEEDLES = NeedleSet(
    [Needle("boom town"), Needle("WARNED", ignores_case=True), Needle(r"loss\W{0,4}nan\b", is_expression=True)]
)


def lines_found(data: bytes, size: int) -> list[tuple[int, bytes]]:
    return [
        (piece.line_at(hit.start), piece.data[hit.start : hit.stop])
        for piece in pieces(io.BytesIO(data), size)
        for hit in hits(piece, NEEDLES)
    ]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from([b"quiet", b"boom town here", b"x warned y", b"loss: nan", b"loss: 0.1", b"", b"a" * 300]),
        max_size=80,
    ),
    st.integers(min_value=1, max_value=400),
)
def test_every_line_once_whatever_the_piece(lines: list[bytes], size: int) -> None:
    data = b"\n".join(lines)
    expected = [
        (number, line)
        for number, line in enumerate(lines, 1)
        if b"boom town" in line or b"warned" in line.lower() or b"loss: nan" in line
    ]
    assert lines_found(data, size) == expected


def test_a_message_is_never_cut_at_the_end_of_a_piece() -> None:
    filler = b"quiet line\n" * 20_000
    data = filler + b"boom town\n" + b"what follows\n" * 10 + filler
    for piece in pieces(io.BytesIO(data), 64 << 10):
        for hit in hits(piece, NEEDLES):
            assert piece.data[hit.stop :].count(b"what follows") == 10


def test_one_endless_line() -> None:
    data = b"x" * (3 * LOOK_AHEAD) + b" boom town " + b"y" * (3 * LOOK_AHEAD)
    found = lines_found(data, 64 << 10)
    assert found
    assert all(number == 1 and b"boom town" in text and len(text) < 20_000 for number, text in found)


def test_progress_bars_are_lines_of_their_own() -> None:
    assert lines_found(b"10%\r20%\rboom town\r30%\n", 1 << 20) == [(1, b"boom town")]


def test_what_the_engine_cannot_take_is_said() -> None:
    good, bad = [rf"word{number}(?P<x>a+)(?=b)" for number in range(9)], r"(\w+) again \1 (?<=(x|yy))(unclosed"
    assert refused_expressions(good) == set()
    assert refused_expressions([*good, bad, *good]) == {bad}


def test_the_last_piece_holds_the_whole_tail() -> None:
    lines = [b"%07d boom town" % number if number % 1000 == 0 else b"%07d quiet" % number for number in range(120_000)]
    data = b"\n".join(lines) + b"\n"
    last = [piece for piece in pieces(io.BytesIO(data), 300_000) if piece.is_last]
    assert len(last) == 1
    assert len(last[0].data) >= EDGE
    assert data.endswith(bytes(last[0].data))


def test_numbers_of_lines_over_many_pieces() -> None:
    lines = [b"boom town" if number % 997 == 0 else b"x" * (number % 200) for number in range(60_000)]
    found = lines_found(b"\n".join(lines), 100_000)
    assert [number for number, _ in found] == [number + 1 for number in range(60_000) if number % 997 == 0]


def test_needles_that_are_done_count_only_in_the_tail() -> None:
    data = b"boom town\n" + b"quiet\n" * 100_000 + b"boom town\n"
    (piece,) = pieces(io.BytesIO(data))
    assert [piece.line_at(hit.start) for hit in hits(piece, NEEDLES, {0})] == [100_002]

"""From broken connections and silent agents to the host that is lost: by hand, without a network."""

from __future__ import annotations

import socket

import pytest

from phalanx.remote.lines import Line
from phalanx.remote.paths import Paths, reached

NOW = 100.0


def nodes(count: int, silent: tuple[int, ...] = ()) -> dict[int, Line]:
    found = {}
    for number in range(count):
        line = Line(None, number, (number,), f"h{number}", f"10.0.0.{number}")  # type: ignore[arg-type]
        line.heard = NOW - (12 if number in silent else 0.5)
        found[number] = line
    return found


def concluded(
    count: int,
    broken: dict[int, tuple[int, ...]],
    silent: tuple[int, ...] = (),
    seen: dict[int, tuple[int, ...]] | None = None,
) -> list[tuple[list[int], str]]:
    by_node = nodes(count, silent)
    paths = Paths()
    for node, others in (seen or {}).items():
        paths.reached(node, [f"10.0.0.{other}" for other in others])
    for node, ends in broken.items():
        paths.told(by_node[node], [f"10.0.0.{other}" for other in ends])
    return [(one["ranks"], one["text"]) for one in paths.conclude(by_node, silent, NOW)]


def test_the_silent_one_is_lost() -> None:
    ((ranks, text),) = concluded(3, {0: (1,)}, silent=(1,))
    assert ranks == [1]
    assert text.startswith("The host h1 (rank 1) is off or cut off: its agent, which speaks every second")
    assert "12 s" in text
    assert "data between it and h0 is not acknowledged" in text


def test_if_one_alone_speaks_among_several_it_is_that_one() -> None:
    ((ranks, text),) = concluded(3, {0: (1,)}, silent=(1, 2))
    assert ranks == [0]
    assert "the agents of all others have fallen silent" in text


def test_of_two_hosts_the_silent_one_is_lost() -> None:
    assert [ranks for ranks, _ in concluded(2, {0: (1,)}, silent=(1,))] == [[1]]


def test_where_all_broken_paths_meet_a_host_is_cut_off() -> None:
    ((ranks, text),) = concluded(4, {0: (2,), 2: (3,)})
    assert ranks == [2]
    assert "h0, h3" in text


def test_a_silent_host_that_another_reaches_is_not_lost() -> None:
    ((ranks, text),) = concluded(3, {0: (1,)}, silent=(1,), seen={0: (2,), 2: (0, 1)})
    assert ranks == [0, 1]
    assert text.startswith("The path between h0 (rank 0) and h1 (rank 1) is broken")
    assert [ranks for ranks, _ in concluded(3, {}, silent=(1,), seen={0: (2,), 2: (0,)})] == [[1]]


def test_who_answers_in_any_way_is_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)):
        assert reached(["127.0.0.1", "192.0.2.250", "no-such-host.invalid"], 0.3) == ["127.0.0.1"]


@pytest.mark.parametrize("broken", [{0: (1,)}, {0: (1,), 1: (0,)}])
def test_one_path_accuses_neither_end(broken: dict[int, tuple[int, ...]]) -> None:
    ((ranks, text),) = concluded(3, broken)
    assert ranks == [0, 1]
    assert text.startswith("The path between h0 (rank 0) and h1 (rank 1) is broken")


def test_addresses_that_are_no_nodes_tell_nothing() -> None:
    assert concluded(3, {0: (9,)}) == []
    assert concluded(3, {}) == []

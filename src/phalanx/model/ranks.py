"""Sets of ranks as people write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import ContextVar

LARGEST_WORLD = 200_000  # a rank or a world beyond that is no number of a rank, or made up to fill the memory
_SHORTEST_SPAN = 4  # in a sentence; shorter ones are read more easily number by number
_MOST_PARTS = 12


_ROLES: ContextVar[Mapping[int, str] | None] = ContextVar("roles of the job that is spoken of", default=None)


def speak_of(roles: Mapping[int, str]) -> None:
    """From now on ranks of these numbers are named with their roles: `ps 0 (rank 3)`. Empty for a job without roles."""
    _ROLES.set(dict(roles))


def spans(ranks: Iterable[int]) -> list[tuple[int, int]]:
    """First and last of each run of ranks without a gap, in order."""
    found: list[tuple[int, int]] = []
    for rank in sorted(set(ranks)):
        if found and rank == found[-1][1] + 1:
            found[-1] = (found[-1][0], rank)
        else:
            found.append((rank, rank))
    return found


def ranges(ranks: Iterable[int]) -> str:
    """`0-2,5`, where room is short."""
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans(ranks))


def name_ranks(ranks: Iterable[int]) -> str:
    """`rank 2`, `ranks 0, 1, 3`, `ranks 0-254`, for a sentence; empty if there are none."""
    numbers = sorted(set(ranks))
    if not numbers:
        return ""
    roles = _ROLES.get() or {}
    if len(numbers) == 1:
        role = roles.get(numbers[0])
        return f"{role} (rank {numbers[0]})" if role else f"rank {numbers[0]}"
    parts: list[str] = []
    for first, last in spans(numbers):
        is_long = last - first + 1 >= _SHORTEST_SPAN
        parts.extend([f"{first}-{last}"] if is_long else map(str, range(first, last + 1)))
    shown = parts if len(parts) <= _MOST_PARTS else [*parts[:_MOST_PARTS], f"… ({len(numbers)} in all)"]
    told = [roles[number] for number in numbers if number in roles]
    are = f" ({name_all(told)})" if len(told) == len(numbers) else ""
    return "ranks " + ", ".join(shown) + are


def name_all(names: Iterable[str]) -> str:
    """`node0`, `node0 and node1`, `node0, node1, node2, node3 and 3 more`."""
    unique = list(dict.fromkeys(names))
    if len(unique) > 5:
        return f"{', '.join(unique[:4])} and {len(unique) - 4} more"
    return " and ".join([", ".join(unique[:-1]), unique[-1]]) if len(unique) > 1 else "".join(unique)


def all_of(count: int, what: str) -> str:
    """`both ranks`, `all 4 ranks`."""
    return f"both {what}" if count == 2 else f"all {count} {what}"

"""Which pairs are measured at the same time. A host is in one pair a round, so that measurements do not disturb each other."""

from __future__ import annotations

from collections.abc import Iterator

FEW = 8  # hosts of which all pairs are measured


def rounds(count: int) -> list[list[tuple[int, int]]]:
    """All pairs for few hosts; for many, partners at distances 1, 2, 4, …: each host meets log2(n) others in 2·log2(n) rounds."""
    return list(tournament(count)) if count <= FEW else list(doubling(count))


def tournament(count: int) -> Iterator[list[tuple[int, int]]]:
    """Every pair once: one stays, the others go round."""
    players: list[int | None] = list(range(count))
    if count % 2:
        players.append(None)
    for _ in range(len(players) - 1):
        half = len(players) // 2
        pairs = zip(players[:half], reversed(players[half:]), strict=True)
        yield [(one, other) for one, other in pairs if one is not None and other is not None]
        players = [players[0], players[-1], *players[1:-1]]


def doubling(count: int) -> Iterator[list[tuple[int, int]]]:
    """Two rounds for each distance, so that no host is in two pairs at once; an odd one out sits still."""
    distance = 1
    while distance < count:
        for start in (0, 1):
            pairs, busy = [], set[int]()
            for one in range(count):
                other = (one + distance) % count
                if (one // distance) % 2 == start and one not in busy and other not in busy:
                    pairs.append((one, other))
                    busy |= {one, other}
            if pairs:
                yield pairs
        distance *= 2


def without_collisions(pairs: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Given pairs in as few rounds as a greedy choice finds: for what is looked at a second time."""
    found: list[list[tuple[int, int]]] = []
    busy: list[set[int]] = []
    for one, other in pairs:
        for number, taken in enumerate(busy):
            if one not in taken and other not in taken:
                found[number].append((one, other))
                taken |= {one, other}
                break
        else:
            found.append([(one, other)])
            busy.append({one, other})
    return found

"""What rises: counts of the last weeks against those before, with the probability that it is chance."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_VERSIONS = {
    "torch": re.compile(r"(?:py)?torch(?: version)?[ :=]{1,4}v?(\d+\.\d+)", re.IGNORECASE),
    "tensorflow": re.compile(r"(?:tensorflow|\btf)(?: version)?[ :=]{1,4}v?(\d+\.\d+)", re.IGNORECASE),
    "horovod": re.compile(r"horovod(?: version)?[ :=]{1,4}v?(\d+\.\d+)", re.IGNORECASE),
    "nccl": re.compile(r"nccl(?: version)?[ :=]{1,4}v?(\d+\.\d+)", re.IGNORECASE),
    "deepspeed": re.compile(r"deepspeed(?: version)?[ :=]{1,4}v?(\d+\.\d+)", re.IGNORECASE),
    "cuda": re.compile(r"cuda(?: version| toolkit)?[ :=]{1,4}v?(\d+\.\d+)", re.IGNORECASE),
}


@dataclass(frozen=True, slots=True)
class Rise:
    """How often something was seen before and lately; `chance` is the probability of so many by chance alone."""

    name: str
    before: int
    recent: int
    expected: float
    chance: float


@dataclass(frozen=True, slots=True)
class Introduced:
    """A message that is seen with a release and later ones only, although earlier ones are in the collection."""

    name: str
    library: str
    release: str
    seen: int
    earlier_posts: int
    chance: float


def find_rises(
    counts: Mapping[str, tuple[int, int]], posts_before: int, posts_recent: int, error_rate: float = 0.05
) -> list[Rise]:
    """What rises beyond chance. Many things are asked at once: false alarms are held at `error_rate` (Benjamini, Hochberg)."""
    share = posts_recent / max(posts_before + posts_recent, 1)
    asked = []
    for name, (before, recent) in counts.items():
        total = before + recent
        asked.append(Rise(name, before, recent, total * share, at_least(recent, total, share)))
    return sorted(_significant(asked, error_rate), key=lambda rise: (rise.chance, -rise.recent, rise.name))


def at_least(successes: int, trials: int, share: float) -> float:
    """The probability of so many successes or more, each trial having this share."""
    if successes <= 0 or share >= 1:
        return 1.0
    if share <= 0:
        return 0.0
    terms = (
        math.exp(
            math.lgamma(trials + 1) - math.lgamma(hits + 1) - math.lgamma(trials - hits + 1) + hits * math.log(share) + (trials - hits) * math.log1p(-share)
        )
        for hits in range(successes, trials + 1)
    )  # fmt: skip
    return min(math.fsum(terms), 1.0)


def _significant(asked: Sequence[Rise], error_rate: float) -> list[Rise]:
    ranked = sorted(asked, key=lambda rise: rise.chance)
    last = 0
    for place, rise in enumerate(ranked, start=1):
        if rise.chance <= error_rate * place / len(ranked):
            last = place
    return ranked[:last]


def versions_in(text: str) -> dict[str, str]:
    """The releases a text names, the first of each library."""
    return {library: match[1] for library, pattern in _VERSIONS.items() if (match := pattern.search(text))}


def find_introduced(
    seen: Mapping[str, Iterable[Mapping[str, str]]],
    everything: Sequence[Mapping[str, str]],
    fewest: int = 3,
    chance: float = 0.01,
) -> list[Introduced]:
    """Messages that begin with a release. `seen` holds, of each message, the releases that its posts name."""
    found = []
    for name, mentions in seen.items():
        named = list(mentions)
        for library in _VERSIONS:
            mine = [_order(one[library]) for one in named if library in one]
            others = [_order(one[library]) for one in everything if library in one]
            if len(mine) < fewest or not others:
                continue
            first = min(mine)
            share = sum(version >= first for version in others) / len(others)
            # By chance all of its posts would be so recent with this probability.
            if share < 1 and share ** len(mine) <= chance:
                earlier = sum(version < first for version in others)
                found.append(
                    Introduced(name, library, ".".join(map(str, first)), len(mine), earlier, share ** len(mine))
                )
    return sorted(found, key=lambda one: (one.chance, one.name))


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))

"""Lightning logs a metric of each rank's own share, and nobody reduces it: what is written is that of one rank."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.verification.evidence import Evidence, Record
from phalanx.verification.found import Found

_CLOSE = 1e-6


def check(evidence: Evidence) -> Iterator[Found]:
    """The first name whose values differ between ranks although all log it."""
    each = {rank: _unsynced(one.all("logged")) for rank, one in evidence.ranks.items()}
    names = set.intersection(*(set(found) for found in each.values())) if len(each) > 1 else set()
    first = next(iter(each.values()), {})
    apart = [name for name in first if name in names and _differ([found[name] for found in each.values()])]
    if not apart:
        return
    name = apart[0]
    rank, at = next((rank, found[name][0]) for rank, found in each.items())
    more = f" and {len(apart) - 1} more" if len(apart) > 1 else ""
    shown = ", ".join(f"{found[name][0]['value']:.6g} on rank {number}" for number, found in sorted(each.items())[:4])
    yield Found(
        cause="metric-of-one-share",
        headline=f"`{name}`{more} is logged without `sync_dist=True` ({at['line']}): each rank has a value of its own ({shown}), and the logged one is rank {rank}'s, of its share of the data.",
        line=str(at["line"]),
        pattern="fix-distributed-api-usage",
        do=f'Log it reduced over the ranks: `self.log("{name}", value, sync_dist=True)`, or log a torchmetrics metric, which is reduced by itself.',
        why="Lightning gives every rank a share of the validation data; without sync_dist a logger or checkpoint callback sees one share.",
        title="A metric covers one rank's samples only",
        quotes=tuple((number, str(found[name][0]["line"]), f"{name} = {found[name][0]['value']:.6g}") for number, found in sorted(each.items())[:4]),
    )  # fmt: skip


def _unsynced(records: list[Record]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for one in records:
        if not one["synced"] and one["value"] is not None:
            found.setdefault(str(one["name"]), []).append(one)
    return found


def _differ(values: list[list[Record]]) -> bool:
    """At some of the times that it was logged: one batch may look alike by chance."""
    for at in zip(*values, strict=False):
        numbers = [float(one["value"]) for one in at]
        if max(numbers) - min(numbers) > _CLOSE * max(map(abs, numbers)):
            return True
    return False

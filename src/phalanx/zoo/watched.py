"""How `phalanx run` fared on the zoo: whom it accused, how long after the fault, and when the framework alone would speak."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from phalanx.model import bundle as layout
from phalanx.zoo.bundled import can_be_watched
from phalanx.zoo.fault import Fault
from phalanx.zoo.schedule import Result, remembered
from phalanx.zoo.tables import TextTable

FOLDER = "bundles-faulty"
_BEGIN, _END = "<!-- made by `phalanx faults score --runs --write` -->", "<!-- end of runs -->"
SUMMARY_HEADINGS = (
    "set",
    "faults with a culprit",
    "culprit exact",
    "innocent accused",
    "healthy jobs",
    "accused in them",
    "seconds from fault to verdict, median",
    "longest",
    "until the framework alone spoke, median",
    "never spoke",
)
ROW_HEADINGS = ("fault", "to blame", "accused", "seconds from fault to verdict", "until the framework alone spoke")


@dataclass(frozen=True, slots=True)
class Watched:
    """One job under `phalanx run`, and the same job by its own launcher if that was run too. Times are seconds after the fault."""

    fault: Fault
    accused: frozenset[int]  # by the verdict; in a healthy job also by what was said while it ran
    verdict_s: float | None
    framework_s: float | None  # None where it said nothing as long as it was let run
    framework_ran: bool

    @property
    def exact(self) -> bool:
        return self.accused == frozenset(self.fault.culprit_ranks)

    @property
    def accuses_innocent(self) -> bool:
        return bool(self.accused - frozenset(self.fault.culprit_ranks))


def read_runs(faults: Iterable[Fault], keep: Path) -> list[Watched]:
    """What `faults run --with phalanx-run --keep DIR` left of these faults; those that were not run are left out."""
    results = {(one.name, one.watched): one for one in remembered(keep) if not one.cured}
    found = []
    for fault in faults:
        run = results.get((fault.name, True))
        alone = results.get((fault.name, False))
        if run is not None and run.files == fault.fingerprint() and can_be_watched(fault):
            same = alone is not None and alone.files == run.files
            found.append(_watched(fault, run, alone if same else None, keep / FOLDER / fault.name))
    return found


def _watched(fault: Fault, run: Result, alone: Result | None, folder: Path) -> Watched:
    verdict = (_json(folder / layout.REPORT).get("verdict")) or {}
    accused = set(verdict.get("culprit_ranks") or ())
    if fault.healthy:
        accused |= {rank for seen in _seen(folder) if seen.get("kind") == "stall" for rank in seen.get("ranks") or ()}
    started = run.began or _json(folder / layout.MANIFEST).get("started")
    began = _onset(folder, float(started)) if started else None
    return Watched(
        fault,
        frozenset(accused),
        _after(run.spoke_s, began),
        _after(_spoke(alone), _shifted(began, run, alone)) if alone is not None else None,
        alone is not None,
    )


def _spoke(alone: Result) -> float | None:
    """When the framework first said that something is wrong: in words, or by the job's end with a status that says so."""
    failed = not alone.timed_out and any(alone.exit_codes.values())
    return alone.spoke_s if alone.spoke_s is not None or not failed else alone.seconds


def _shifted(onset: float | None, run: Result, alone: Result) -> float | None:
    """When the fault came in the other run of the same job: as long after the job's first word as in the watched one."""
    if onset is None or run.first_s is None or alone.first_s is None:
        return onset
    return max(0.0, onset + alone.first_s - run.first_s)


def _after(spoke: float | None, onset: float | None) -> float | None:
    return None if spoke is None or onset is None else max(0.0, spoke - onset)


def _onset(folder: Path, began: float) -> float | None:
    """Seconds from the start to the fault: the first rank to end by itself, or the last that moved before a stall."""
    moments = [
        float(record["at"]) - began
        for file in folder.glob("attempt*/rank*/exit.json")
        if (record := _json(file)).get("by") is None and "at" in record
    ]
    moments += [
        float(seen["at"]) - began - float(data.get("told_after_s", data.get("quiet_s")) or 0.0)
        for seen in _seen(folder)
        if seen.get("kind") == "stall" and isinstance(data := seen.get("data"), dict)
    ]
    return max(0.0, min(moments)) if moments else None


def _seen(folder: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(folder.glob(f"attempt*/{layout.WATCH}")):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                yield json.loads(line)
            except ValueError:  # cut off by a kill
                continue


def _json(file: Path) -> Mapping[str, Any]:
    try:
        loaded = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return loaded if isinstance(loaded, dict) else {}


def summary_table(runs: Sequence[Watched]) -> TextTable:
    """Whole, by split and by framework."""
    sets = {"all": list(runs)}
    for one in runs:
        for name in (f"split {one.fault.split}", f"framework {one.fault.framework}"):
            sets.setdefault(name, []).append(one)
    order = sorted(sets, key=lambda name: (name != "all", not name.startswith("split"), name))
    rows = tuple(row for name in order if (row := _summary(name, sets[name])) is not None)
    return TextTable("Faults run by `phalanx run`", SUMMARY_HEADINGS, rows)


def _summary(name: str, runs: Sequence[Watched]) -> tuple[str, ...] | None:
    blamed = [one for one in runs if one.fault.culprit_ranks and not one.fault.healthy]
    healthy = [one for one in runs if one.fault.healthy]
    if not blamed and not healthy:
        return None
    shares = ("", "")
    if blamed:
        exact = sum(one.exact for one in blamed)
        shares = (f"{exact} ({exact / len(blamed):.1%})", str(sum(one.accuses_innocent for one in blamed)))
    times = [one.verdict_s for one in blamed if one.verdict_s is not None]
    alone = [one for one in blamed if one.framework_ran]
    return (
        name,
        str(len(blamed)),
        *shares,
        str(len(healthy)),
        str(sum(bool(one.accused) for one in healthy)) if healthy else "",
        f"{median(times):.1f}" if times else "",
        f"{max(times):.1f}" if times else "",
        _median_with_silence([one.framework_s for one in alone]),
        f"{sum(one.framework_s is None for one in alone)} of {len(alone)}" if alone else "",
    )


def _median_with_silence(times: Sequence[float | None]) -> str:
    """Silence counts as longer than everything that was waited for."""
    if not times:
        return "not run"
    middle = sorted(float("inf") if one is None else one for one in times)[(len(times) - 1) // 2]
    return "never" if middle == float("inf") else f"{middle:.1f}"


def rows_table(runs: Sequence[Watched]) -> TextTable:
    """Fault by fault, those of the held-back split left out: nobody is to tune for them."""
    rows = []
    for one in sorted(runs, key=lambda one: one.fault.name):
        if one.fault.split == "train" and (one.fault.culprit_ranks or one.accused):
            blame = ", ".join(map(str, sorted(one.fault.culprit_ranks))) or "healthy"
            accused = ", ".join(map(str, sorted(one.accused))) or "nobody"
            alone = _seconds(one.framework_s, "never") if one.framework_ran else "not run"
            rows.append((one.fault.name, blame, accused, _seconds(one.verdict_s, "none"), alone))
    return TextTable("Fault by fault (split train)", ROW_HEADINGS, tuple(rows))


def _seconds(value: float | None, otherwise: str) -> str:
    return otherwise if value is None else f"{value:.1f}"


def fill_page(page: str, runs: Sequence[Watched]) -> str:
    """The page with the tables of these runs between its two marker lines. Raises ValueError where a marker is missing."""
    head, begin, rest = page.partition(_BEGIN)
    _, end, tail = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"the page needs the lines {_BEGIN!r} and {_END!r}, between which the tables are put")
    tables = (summary_table(runs), rows_table(runs))
    body = "\n\n".join(f"**{table.title}**\n\n{table.markdown()}" for table in tables)
    return f"{head}{begin}\n\n{body}\n\n{end}{tail}"

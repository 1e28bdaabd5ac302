"""The score as tables: rows of text for the terminal and for Markdown, so that both say the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from phalanx.zoo.coverage import Item
from phalanx.zoo.schedule import Result
from phalanx.zoo.score import Mark, Score, groups, total

_KINDS = {"all": "all", "split": "split", "framework": "framework", "symptom": "symptom"}
HEADINGS = (
    "set",
    "faults",
    "healthy",
    "symptom first",
    "in three",
    "cause",
    "culprit exact",
    "innocent accused",
    "fix first",
    "fix in three",
    "false alarms",
)
TIME = "seconds to verdict"
NAMED_HEADINGS = (
    "set",
    "faults with a culprit",
    "verdict exact",
    "verdict accuses an innocent",
    "framework exact",
    "framework accuses an innocent",
    "framework names nobody",
)


@dataclass(frozen=True, slots=True)
class TextTable:
    """A heading and rows of cells; the first column is text, the others are figures."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        lines = [self.headings, ("---", *("---:" for _ in self.headings[1:])), *self.rows]
        return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def score_table(marks: Sequence[Mark], *, times: bool) -> TextTable:
    """Hits, accusations and alarms: whole, by split, by framework, by symptom."""
    rows = []
    for name, some in _sets(marks):
        score = total(some)
        cells = (
            name,
            str(score.faults),
            str(score.healthy) if score.healthy or "symptom" not in name else "",
            *_shares(score),
            str(score.false_alarms) if score.healthy else "",
        )
        if times:
            cells += ("" if score.seconds is None else f"{score.seconds:.2f}",)
        rows.append(cells)
    headings = (*HEADINGS, TIME) if times else HEADINGS
    return TextTable("Verdicts on the logs of real faults", headings, tuple(rows))


def _shares(score: Score) -> tuple[str, ...]:
    if not score.faults:
        return ("",) * 7
    shares = (
        score.symptom_first,
        score.symptom_in_three,
        score.cause,
        score.culprit_exact,
        score.innocent_accused,
        score.fix_first,
        score.fix_in_three,
    )
    return tuple(f"{share:.1%}" for share in shares)


def named_table(marks: Sequence[Mark]) -> TextTable:
    """Beside the verdict what the framework itself named, on faults in which single ranks are to blame."""
    rows = []
    for name, some in _sets(marks):
        score = total(some)
        if score.with_culprit and not name.startswith("symptom"):
            silent = sum(one.named is None for one in some if one.culprits and not one.healthy) / score.with_culprit
            shares = (score.ours_exact, score.ours_innocent, score.named_exact, score.named_innocent, silent)
            rows.append((name, str(score.with_culprit), *(f"{share:.1%}" for share in shares)))
    return TextTable("Who is named, by the verdict and by the framework itself", NAMED_HEADINGS, tuple(rows))


def misses(marks: Sequence[Mark]) -> Iterator[str]:
    """One line for each job in which something was missed."""
    for one in marks:
        wrong = []
        if one.false_alarm:
            wrong.append(f"false alarm: {one.got} ({one.rule})")
        elif not one.healthy:
            wrong += [] if one.symptom_first else [f"symptom {one.got} ({one.rule}) instead of {one.wanted}"]
            wrong += [] if one.cause else ["cause"]
            wrong += [] if one.fix_in_three else ["fix not in three"]
            wrong += [] if one.culprit_exact else ["culprit not exact"]
        if one.innocent_accused:
            wrong.append("INNOCENT ACCUSED")
        if wrong:
            yield f"{one.name}: {'; '.join(wrong)}"


def _sets(marks: Sequence[Mark]) -> Iterator[tuple[str, list[Mark]]]:
    for kind, parts in groups(marks).items():
        for name, some in parts.items():
            yield (name if kind == "all" else f"{_KINDS[kind]} {name}"), some


def heavier_than_set_aside(results: Sequence[Result]) -> Iterator[str]:
    """One line for each job that took more memory than the scheduler had set aside for it."""
    for one in sorted(results, key=lambda one: one.name):
        if one.peak_mb > one.set_aside_mb:
            yield f"{one.name} took {one.peak_mb} MB, {one.set_aside_mb} were set aside: say memory_mb in its [needs]"


def coverage_table(items: Sequence[Item]) -> TextTable:
    """Which jobs cover what; long lists are told by their number."""
    rows = []
    for item in items:
        shown = ", ".join(item.jobs[:_SHOWN]) + (", …" if item.found > _SHOWN else "")
        rows.append((f"{item.group}: {item.name}", str(item.found), shown))
    return TextTable("What is covered, and by which jobs", ("what", "jobs", "which"), tuple(rows))


# how many names of jobs stand in one cell
_SHOWN = 10
SCORE, COVERAGE = "phalanx faults score --write", "phalanx faults list --coverage --write"


def fill_score(page: str, marks: Sequence[Mark]) -> str:
    """The page with the score's tables made anew; times are left out, as they differ by machine."""
    return fill_page(page, SCORE, score_table(marks, times=False), named_table(marks))


def fill_page(page: str, command: str, *tables: TextTable) -> str:
    """The page with the tables between the marker lines of a command made anew. Raises ValueError where a marker is missing."""
    begins, ends = f"<!-- made by `{command}` -->", "<!-- end -->"
    head, begin, rest = page.partition(begins)
    _, end, tail = rest.partition(ends)
    if not begin or not end:
        raise ValueError(f"the page needs the lines {begins!r} and {ends!r}, between which the tables are put")
    body = "\n\n".join(f"**{table.title}**\n\n{table.markdown()}" for table in tables)
    return f"{head}{begin}\n\n{body}\n\n{end}{tail}"

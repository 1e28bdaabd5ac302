"""Goes through a collection and finds out what is new in it."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from phalanx.knowledge import SYMPTOMS, Rule
from phalanx.study.classify.labelled import text_of
from phalanx.study.drift.drafts import Draft, Unknown, write_drafts
from phalanx.study.drift.messages import find_messages
from phalanx.study.drift.trends import Introduced, Rise, find_introduced, find_rises, versions_in
from phalanx.study.errors import StudyError
from phalanx.study.table import Table

Known = Callable[[str], str | None]  # a log line -> the rule that explains it


@dataclass(frozen=True, slots=True)
class Drift:
    """What is new, and what could not be looked at."""

    posts: int
    recent: int
    since: str
    undated: int
    duplicates: int
    rising_symptoms: tuple[Rise, ...]
    rising_messages: tuple[Rise, ...]
    unknown: tuple[Unknown, ...]
    introduced: tuple[Introduced, ...]
    drafts: tuple[Draft, ...]
    refused: tuple[tuple[str, str], ...]

    def tables(self) -> list[Table]:
        """The findings as tables."""
        rise = ("what", "before", "recent", "expected", "chance")
        rows = [
            tuple((one.name, one.before, one.recent, one.expected, one.chance) for one in rises)
            for rises in (self.rising_symptoms, self.rising_messages)
        ]
        note = f"Recent: since {self.since}. `expected`: how many there would be if nothing had changed. `chance`: the probability of so many by chance."
        return [
            Table("rising-symptoms", "Symptoms that rise", rise, rows[0], note),
            Table("rising-messages", "Messages that rise", rise, rows[1], note),
            Table("introduced", "Messages that a release introduced", ("message", "library", "release", "issues", "earlier issues", "chance"),
                  tuple((one.name, one.library, one.release, one.seen, one.earlier_posts, one.chance) for one in self.introduced)),
            Table("unknown", "Frequent messages that no rule knows", ("message", "issues", "symptom", "example"),
                  tuple((one.template, len(one.issues), one.symptom, one.issues[0]) for one in self.unknown)),
            Table("drafts", "Drafts of rules", ("code", "file"), tuple((one.code, str(one.path)) for one in self.drafts)),
            Table("refused", "Messages of which no draft could be made", ("message", "why"), self.refused),
        ]  # fmt: skip


def survey(
    posts: Iterable[Mapping[str, Any]],
    labels: Mapping[str, Mapping[str, Any]],
    known: Known,
    rules: Sequence[Rule],
    days: int = 90,
    fewest: int = 3,
) -> Drift:
    """Survey posts; `labels` are those of `phalanx study classify`, by key."""
    rows = [dict(row) for row in posts]
    kept = [row for row in rows if not row.get("duplicate_of")]
    dated = [(moment, row) for row in kept if (moment := _moment(row.get("created"))) is not None]
    if not dated:
        raise StudyError(
            "no issue has a time of creation: nothing can be compared. Give a collection of `phalanx study collect`."
        )
    since = max(moment for moment, _ in dated) - timedelta(days=days)
    recent_posts = sum(moment > since for moment, _ in dated)
    symptoms: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    messages: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    seen: dict[str, list[tuple[str, str]]] = defaultdict(list)
    releases: dict[str, list[dict[str, str]]] = defaultdict(list)
    everything = []
    for moment, row in dated:
        text, key = text_of(row), str(row.get("key") or row.get("url") or "")
        versions = versions_in(text)
        everything.append(versions)
        symptom = labels.get(key, {}).get("symptom")
        if symptom:
            symptoms[str(symptom)][moment > since] += 1
        for message in find_messages(text):
            messages[message.template][moment > since] += 1
            seen[message.template].append((key, message.line))
            releases[message.template].append(versions)
    frequent = {template: mentions for template, mentions in seen.items() if len(mentions) >= fewest}
    unknown = _unknown(frequent, labels, known)
    drafts, refused = write_drafts(unknown, rules)
    return Drift(
        posts=len(rows),
        recent=recent_posts,
        since=since.date().isoformat(),
        undated=len(kept) - len(dated),
        duplicates=len(rows) - len(kept),
        rising_symptoms=tuple(find_rises(_pairs(symptoms), len(dated) - recent_posts, recent_posts)),
        rising_messages=tuple(find_rises({name: pair for name, pair in _pairs(messages).items() if name in frequent}, len(dated) - recent_posts, recent_posts)),
        unknown=tuple(unknown),
        introduced=tuple(find_introduced({name: releases[name] for name in frequent}, everything, fewest)),
        drafts=tuple(drafts),
        refused=tuple(refused),
    )  # fmt: skip


def _unknown(
    frequent: Mapping[str, list[tuple[str, str]]], labels: Mapping[str, Mapping[str, Any]], known: Known
) -> list[Unknown]:
    found = []
    for template, mentions in sorted(frequent.items(), key=lambda item: (-len(item[1]), item[0])):
        line = mentions[0][1]
        if known(line) is not None:
            continue
        said = [labels.get(key, {}) for key, _ in mentions]
        symptom = _most(label.get("symptom") for label in said)
        fix = _most(label.get("fix") for label in said)
        found.append(
            Unknown(
                template, line, tuple(key for key, _ in mentions), symptom if symptom in SYMPTOMS else "fail.other", fix
            )
        )
    return found


def _most(values: Iterable[object]) -> str:
    counts = Counter(str(value) for value in values if value)
    return counts.most_common(1)[0][0] if counts else ""


def _pairs(counts: Mapping[str, list[int]]) -> dict[str, tuple[int, int]]:
    return {name: (before, recent) for name, (before, recent) in counts.items()}


def _moment(text: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

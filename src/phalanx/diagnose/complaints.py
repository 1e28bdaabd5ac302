"""What a person's report is about, by the person's own words: it weighs claims, and speaks where no rule does."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from phalanx.diagnose.asking import (
    ENDS_IN_QUESTION,
    FEWEST_POINTS,
    NO_TROUBLE,
    QUESTION,
    YES_OR_NO,
    hands_in_change,
    only_wants,
)
from phalanx.diagnose.claim import SPECIFIC, Claim, Proof
from phalanx.diagnose.cues import CUES, ERROR, FAILURE, FAMILIES, HANG, HANG_AT, HANG_POINTS, MENTION, TOPICS
from phalanx.diagnose.guess import guess, told_by_words
from phalanx.diagnose.history import History
from phalanx.diagnose.told_stages import OPENING, stage_shares, told_stages
from phalanx.knowledge.figures import expected_share
from phalanx.knowledge.rule import Blame, Claims
from phalanx.knowledge.taxonomy import SYMPTOMS
from phalanx.model import Confidence, Event, EventKind, Role, Stage
from phalanx.sources.people import split_title
from phalanx.sources.text import fold

_IN_TITLE = 1.6  # a title says what the trouble is; the text below also tells what went well
_FEWEST_IN_QUESTION = 2.5  # of a post whose title asks, not complains
_PLAINLY = 5.0  # with as many no question is only one
_LESS_SURE = 0.35
_ALIKE = 0.6
_BESIDE = 0.5  # a hang that the text mentions where the title tells of an error: mostly the others that wait for the failed one
# Of a job that ended with an exception the text may also say how fast it was, or where it ran.
_SIDE_REMARKS = frozenset(("perf.low-efficiency", "perf.unexpected-parallelization-or-device"))
_PASTED = 0.5  # words of programs count less here: the rules read them
_SHORTEST_MESSAGE = 20  # characters
_RAREST = 0.005  # the share below which a symptom is as good as never seen
_TOLD_ERROR = re.compile(r"error\b|exception\b|\bfail(?:s|ed|ure|ures)?\b|\bcrash(?:es|ed)?\b", re.IGNORECASE)
# Failures that people have no words of their own for: a hang, a crash or a lack of memory they would name.
_WORDLESS = (
    "comm.setup-failure",
    "prep.model-loading-failure",
    "prep.other",
    "fail.communication-error",
    "fail.device-error",
    "fail.graph-execution-error",
    "fail.tensor-mismatch",
)
_CLEARLY = 1.0  # points by which words for another stage must be ahead
_KILLED = "killed-by-signal"  # the cause that a rule gives which knows nothing but the signal
_ONE_STAGE = 0.7  # the share of the words that leaves no doubt of it
_EXCHANGE_AT = {Stage.PREP: "prep.communication-error", Stage.TRAIN: "fail.communication-error"}
_ANY_STAGE = 0.25  # what a stage counts of which the words do not speak
_EXCEPTION = re.compile(r"(?P<type>\b[A-Za-z_][\w.]{0,120}(?:Error|Exception)):(?: .*|$)")
_EXCEPTION_NAME = re.compile(r"\b[A-Z][A-Za-z]+(?:Error|Exception)\b")
_TAG = re.compile(r"(?i)^\W*\[(?:bug|question|help|issue|q)\b[^\]]{0,20}\][\s:]*")  # sorts a post: says nothing of it
_NAMED_IN_TITLE = 5.0  # points of what an exception is whose name stands in the title


@dataclass(frozen=True, slots=True)
class Complaint:
    """The points each symptom has by the words of one report, and the words that spoke for it."""

    file: str
    title: str
    points: dict[str, float]
    quotes: dict[str, str]
    failure: str
    exception: Event | None
    stages: dict[Stage, float]  # how much the words speak for each, as shares of one; empty where they say nothing
    only_asks: bool  # how something is done, not what went wrong
    is_change: bool  # a change that is handed in, with what it mends
    fewest: float  # points without which its words say nothing
    said: str  # the words, without what they only mention
    tells_of_error: bool  # in their own words, with a program's beside them

    @property
    def names_exception(self) -> bool:
        """An exception stands in the title."""
        return self.exception is not None and str(self.exception.data["type"]) in self.title

    @property
    def tells_of_wait(self) -> bool:
        """The person says that something stands still."""
        return any(self.points.get(symptom, 0.0) > 0 for symptom in HANG_AT.values())


def read_complaint(file: str, prose: str, messages: Sequence[str] = (), framework: str | None = None) -> Complaint:
    """Weigh the words of a report."""
    prose = MENTION.sub(" ", prose)
    title, body = split_title(prose)
    untagged = _TAG.sub("", title)
    if _said(untagged, prose, framework):
        title = untagged
    points: defaultdict[str, float] = defaultdict(float)
    quotes: dict[str, str] = {}
    beside = _BESIDE if _TOLD_ERROR.search(title) and not HANG.search(title) else 1.0
    exception = _exception_in(file, messages) or _exception_named(file, title)
    aside = _BESIDE if _TOLD_ERROR.search(title if exception is None else prose) else 1.0
    for text, factor in ((title, _IN_TITLE), (body[:OPENING], 1.0), (body[OPENING:], _LESS_SURE)):
        for symptom, gained, quote in _said(text, prose, framework, is_pasted=exception is not None):
            points[symptom] += gained * factor * (beside if symptom in HANG_AT.values() else 1.0)
            if symptom in _SIDE_REMARKS and text is not title:
                points[symptom] -= gained * factor * (1 - aside)
            quotes.setdefault(symptom, quote)
    for symptom, gained, quote in _said("\n".join(messages), prose, framework):
        if symptom not in HANG_AT.values():
            points[symptom] += gained * _PASTED
            quotes.setdefault(symptom, quote)
    if exception is not None and str(exception.data["type"]) in title and (told_by := told_by_words(exception)):
        points[told_by] += _NAMED_IN_TITLE
        quotes.setdefault(told_by, exception.text)
    is_question = QUESTION.search(title) is not None and not FAILURE.search(title)
    is_told_in_title = bool(_said(title, prose, framework))
    is_named = bool(_said(NO_TROUBLE.sub(" ", title), prose, framework) or _said(body, prose, framework))
    if YES_OR_NO.search(title) and max(points.values(), default=0.0) < FEWEST_POINTS:
        is_question = True
    if (
        ENDS_IN_QUESTION.search(title)
        and max(points.values(), default=0.0) < _FEWEST_IN_QUESTION
        and not is_told_in_title
        and not FAILURE.search(title)
    ):
        is_question = True
    tells_little = is_question or ("?" in body and not ERROR.search(prose))
    failure = None if tells_little else FAILURE.search(prose)
    is_told_plainly = max(points.values(), default=0.0) >= _PLAINLY
    is_change = hands_in_change(title, body, is_told=is_told_in_title)
    only_asks = (
        is_change
        or (is_question and not is_told_plainly and not ERROR.search(prose) and not HANG.search(prose))
        or (exception is None and only_wants(title, body, points, is_told=is_told_in_title, is_named=is_named))
    )
    fewest = _FEWEST_IN_QUESTION if is_question else FEWEST_POINTS
    told = failure[0] if failure else ""
    return Complaint(
        file,
        title,
        dict(points),
        quotes,
        told,
        exception,
        told_stages(prose),
        only_asks,
        is_change,
        fewest,
        prose,
        bool(messages) and _TOLD_ERROR.search(prose) is not None,
    )


def _exception_in(file: str, messages: Sequence[str]) -> Event | None:
    """The first exception that is named among the messages, as it would stand at the end of a traceback."""
    for message in messages:
        if match := _EXCEPTION.search(message):
            kind = match["type"].rsplit(".", 1)[-1]
            return Event(EventKind.EXCEPTION, match[0], file, 0, source="prose", data={"type": kind})
    return None


def _exception_named(file: str, title: str) -> Event | None:
    """An exception of which the title has no more than the name: "fails at startup due to FileExistsError"."""
    match = _EXCEPTION_NAME.search(title)
    return match and Event(EventKind.EXCEPTION, match[0], file, 0, source="prose", data={"type": match[0]})


def _said(text: str, whole: str, framework: str | None, *, is_pasted: bool = False) -> list[tuple[str, float, str]]:
    said: dict[str, tuple[float, str]] = {}
    # How it trains is told by people: exceptions speak of other values that are the same.
    own = _EXCEPTION.sub(" ", text)
    for cue in CUES:
        match = cue.pattern.search(own if cue.symptom.startswith("perf.") else text)
        gained = cue.points * (_BESIDE if cue.is_vague and is_pasted else 1.0)
        if match is not None and gained > said.get(cue.symptom, (0.0, ""))[0]:
            said[cue.symptom] = (gained, match[0])
    match = HANG.search(text)
    found = [(symptom, gained, quote) for symptom, (gained, quote) in said.items()]
    if match is not None:
        shares = stage_shares(whole, framework)
        # That it hangs is certain, where it does is not: the likeliest stage has all the points.
        most = max(shares.values())
        found += [(HANG_AT[stage], HANG_POINTS * share / most, match[0]) for stage, share in shares.items() if share]
    return found


class Complaints:
    """The complaints of all reports among the files."""

    def __init__(self, history: History) -> None:
        self._framework = history.world.framework
        self.all = [
            read_complaint(file.name, file.prose, file.messages, self._framework)
            for file in history.seen.files
            if file.prose
        ]

    @property
    def name_nothing(self) -> bool:
        """Nobody says more than that it does not work."""
        return all(max(complaint.points.values(), default=0.0) < complaint.fewest for complaint in self.all)

    @property
    def only_ask(self) -> bool:
        """Nobody tells of trouble: what the words may mean otherwise is no evidence."""
        return bool(self.all) and all(complaint.only_asks for complaint in self.all)

    @property
    def only_mend(self) -> bool:
        """Nothing but changes that are handed in."""
        return bool(self.all) and all(complaint.is_change for complaint in self.all)

    def points(self, symptom: str, *, with_alike: bool) -> float:
        """What the words speak for a symptom, or for one like it, with how often it occurs as the tie-break."""
        said = [self._points(complaint, symptom) for complaint in self.all]
        if with_alike:
            alike = {one for family in FAMILIES if symptom in family for one in family}
            said += [_ALIKE * self._points(complaint, one) for complaint in self.all for one in alike]
        return max(said, default=0.0)

    def _points(self, complaint: Complaint, symptom: str) -> float:
        return complaint.points.get(symptom, 0.0) + prior(symptom, self._framework)

    def is_meant(self, claim: Claim) -> bool:
        """Whether the words a claim rests on tell of the person's own job, and what was pasted of a wait is a wait to the person.

        A program that had begun something and told no end of it is no evidence in a report: what came then was not pasted.
        """
        if not claim.from_prose:
            is_general = claim.rule is not None and claim.priority < SPECIFIC and claim.depth is Claims.SYMPTOM
            is_wait = is_general and claim.symptom in HANG_AT.values()
            return not is_wait or any(complaint.tells_of_wait for complaint in self.all)
        if claim.rule is None:
            return True
        told = [spec.prose for spec in claim.rule.evidence if spec.role is Role.ROOT and spec.prose is not None]
        return any(pattern.search(complaint.said) for pattern in told for complaint in self.all)

    def is_side_remark(self, claim: Claim) -> bool:
        """Slowness, or where it runs: a warning in a post that tells of an error and shows it, or words below a title that names an exception."""
        if claim.fatal or claim.symptom not in _SIDE_REMARKS:
            return False
        if claim.from_prose:
            return any(complaint.names_exception for complaint in self.all)
        return any(complaint.tells_of_error for complaint in self.all)

    def place(self, claim: Claim) -> None:
        """Choose the symptom that a rule has at an earlier stage, where the evidence tells none and the person says that it happened there."""
        if claim.rule is not None and claim.rule.cause == _KILLED:
            claim.symptom = "fail.out-of-memory"  # who had ended the job would not ask why it was killed
        if claim.from_prose and claim.symptom in _EXCHANGE_AT.values():
            self._place_exchange(claim)
        if claim.rule is None or claim.from_prose or claim.stage is not None or not claim.rule.by_stage:
            return
        if Stage.of_symptom(claim.symptom) is not Stage.TRAIN:
            return  # what is known of the start stays there: people tell of training who never came so far
        likely = max(claim.rule.by_stage.values(), key=lambda symptom: self.points(symptom, with_alike=False))
        told, known = (self.points(symptom, with_alike=False) for symptom in (likely, claim.symptom))
        if told >= known + _CLEARLY:
            claim.symptom = likely

    def _place_exchange(self, claim: Claim) -> None:
        """A failing exchange of which only words tell is the symptom of the stage that they clearly speak of."""
        for complaint in self.all:
            stage = max(_EXCHANGE_AT, key=lambda one: complaint.stages.get(one, 0.0))
            if complaint.stages.get(stage, 0.0) >= _ONE_STAGE and claim.symptom == "fail.communication-error":
                claim.symptom = _EXCHANGE_AT[stage]

    def is_in_title(self, claim: Claim) -> bool:
        """A program's message that the claim rests on is the title of a report: that is what the person asks about."""
        titles = {complaint.file: complaint.title for complaint in self.all}
        for proof in claim.roots:
            title = titles.get(proof.event.file, "")
            text = fold(proof.event.text).strip("#>*` ")
            if (
                proof.event.source != "prose"
                and min(len(text), len(title)) >= _SHORTEST_MESSAGE
                and (text in title or title in text)
            ):
                return True
        return False

    def as_claims(self) -> list[Claim]:
        """One claim for the symptom that each report's words speak for most; if they only say that it fails, for the
        one that is most frequent with this framework."""
        claims = []
        for complaint in self.all:
            best = max(SYMPTOMS, key=lambda symptom: self._points(complaint, symptom))
            if complaint.points.get(best, 0.0) >= complaint.fewest:
                claims.append(_claim(complaint, best, complaint.quotes[best]))
            elif complaint.exception is not None:
                symptom = guess(complaint.exception, None).symptom
                claims.append(_claim(complaint, symptom, complaint.exception.text))
            elif complaint.failure:
                claims.append(_claim(complaint, self._likeliest(complaint, best), complaint.failure))
        return claims

    def _likeliest(self, complaint: Complaint, most_frequent: str) -> str:
        """What a failure is of which no more is said than when it comes and what it is about: the most frequent one of that."""
        topics = {symptom: _told_of(pattern, complaint) for symptom, pattern in TOPICS}
        if not complaint.stages and not any(topics.values()):
            return most_frequent

        def weight(symptom: str) -> float:
            stage = Stage.of_symptom(symptom)
            share = expected_share(symptom, self._framework) * (1 + topics.get(symptom, 0.0))
            return share * (_ANY_STAGE + complaint.stages.get(stage, 0.0))

        return max(_WORDLESS, key=weight)


def _told_of(pattern: re.Pattern[str], complaint: Complaint) -> float:
    """How much is spoken of a topic, in the title above all."""
    body = complaint.said[:OPENING]
    different = {match[0].lower() for match in pattern.finditer(body)}
    return math.sqrt(len(different)) + (_IN_TITLE if pattern.search(complaint.title) else 0.0)


def prior(symptom: str, framework: str | None) -> float:
    """A little more for what occurs more often with this framework, in the study's counts: from 0 to 1."""
    return max(0.0, 1 - math.log(expected_share(symptom, framework) / 0.3) / math.log(_RAREST / 0.3))


def _claim(complaint: Complaint, symptom: str, words: str) -> Claim:
    quote = re.sub(r"[{}]", "", words)[:200]
    event = Event(EventKind.LINE, words[:300], complaint.file, 0, source="prose")
    known = SYMPTOMS[symptom]
    return Claim(
        rule=None,
        symptom=symptom,
        cause="as-the-report-says",
        title=known.title,
        summary=f"The report's own words (“{quote}”) speak for this: {known.looks_like}. No program's message in it tells the cause.",
        depth=Claims.SYMPTOM,
        blame=Blame.NOBODY,
        fatal=False,
        priority=10,
        confidence=Confidence.POSSIBLE,
        proofs=[Proof(event, Role.ROOT)],
        stage=Stage.of_symptom(symptom),
        from_prose=True,
    )

"""At which stage a person's trouble comes, by their words: what the sentence that tells of the trouble says counts most."""

from __future__ import annotations

import math
import re
from collections import defaultdict

from phalanx.diagnose.cues import FAILURE, HANG, HANG_AT, STAGES
from phalanx.knowledge.figures import expected_share
from phalanx.model import Stage
from phalanx.sources.people import split_title

OPENING = 1500  # characters: what is wrong is said first, what was tried and found later
_IN_TITLE = 2.0
_IN_TROUBLE = 2.0  # "it hangs after two epochs" tells more than an epoch that is spoken of elsewhere
_SENTENCE_END = re.compile(r"(?<=[.!?;。！？；])\s+|¶|\s#{1,4} |\*\*")


def told_stages(text: str) -> dict[Stage, float]:
    """How much the words speak for each stage, as shares of one; empty where they speak for none."""
    title, body = split_title(text)
    body = body[:OPENING]
    troubled = " ".join(one for one in _SENTENCE_END.split(body) if HANG.search(one) or FAILURE.search(one))
    weights: defaultdict[Stage, float] = defaultdict(float)
    for stage, weight, pattern in STAGES:
        for part, factor in ((title, _IN_TITLE), (body, 1.0), (troubled, _IN_TROUBLE)):
            different = {match[0].lower() for match in pattern.finditer(part)}
            weights[stage] += weight * factor * math.sqrt(len(different))
    total = sum(weights.values())
    return {stage: weights[stage] / total for stage in HANG_AT} if total else {}


def stage_shares(text: str, framework: str | None) -> dict[Stage, float]:
    """The same; where the words say nothing, how often jobs hang at each stage."""
    if told := told_stages(text):
        return told
    weights = {stage: expected_share(symptom, framework) for stage, symptom in HANG_AT.items()}
    return {stage: weight / sum(weights.values()) for stage, weight in weights.items()}

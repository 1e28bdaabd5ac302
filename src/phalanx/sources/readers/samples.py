"""What scripts print to show how the data are split: lists of a rank's samples, the size of the data set, how many an epoch took.

rank 1: epoch 0 first samples [25, 128, 135, 213, 75, 400]
[rank2] indices: [4, 8, 12, 16]
train set: 6000 samples
epoch 0: 12000 samples processed over all ranks
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from phalanx.model import Event, EventKind
from phalanx.sources.progress import position_of
from phalanx.sources.window import Window

TRIGGERS = (
    "samples [", "samples: [", "samples=[", "samples = [", "indices [", "indices: [", "indices=[", "indices = [", "sample ids", "sample_ids",
    "batch ids", "batch_ids", "ids: [", "ids=[", "ids = [", "idx: [", "idx=[", "idx = [", '_ids": [', 'indices": [', 'samples": [',
    "samples processed", "samples seen", "samples in total", "samples over all", "samples across", "dataset has", "dataset size", "dataset: ",
    "train set: ", "training set: ", "training samples: ", "train samples: ", "images seen", "examples seen", "dataset ",
)  # fmt: skip

_LIST = re.compile(
    r"\b(?P<what>(?:(?:first|train\w*|batch|sample|data)[ _])*(?:samples?|indices|idxs?|ids))\b(?: \w+){0,3}?[\W]{1,4}?\[(?P<values>-?\d+(?:,? +-?\d+){3,})"
)
# Every rank may well see the same samples of these, and the same tokens of a vocabulary.
_OTHERS = re.compile(r"\b(?:val\w*|eval\w*|test\w*|dev|token\w*|input_ids|device\w*|gpu\w*|core|cpu|rank|label|class)s?[ _](?:\w+ )?(?:samples?|ind|id)|input_ids|device_ids", re.I)  # fmt: skip

_SIZE = re.compile(r"\b(?:data ?set|train(?:ing)?[ _](?:set|samples|data))\b(?: has| size| of| with| contains)?\W{1,4}(?P<size>\d{2,12})\b(?! (?:batch|shard|file|class))", re.I)  # fmt: skip
_TOTAL = re.compile(
    r"\b(?P<total>\d{2,12}) (?:\w+ )?(?:samples|examples|images|records) (?:processed |seen |trained )?(?:in total|(?:over|across|on|by) (?:all )?(?:ranks|workers|processes|gpus))",
    re.I,
)

_OWN = re.compile(
    r"\b(?:samples|examples|images)(?: seen| processed| trained)?[ :=]{1,2}(?P<after>\d{2,12})\b|\b(?P<before>\d{2,12}) (?:samples|examples|images) (?:seen|processed)\b(?! (?:in total|over|across|on|by))"
)


def read(window: Window) -> Iterator[Event]:
    """Progress events with the samples or their number, and the epoch and step they were printed for."""
    at = position_of(window.text)
    for source, name, pattern in (("data size", "size", _SIZE), ("data total", "total", _TOTAL)):
        if (told := pattern.search(window.text)) is not None:
            yield window.event(EventKind.PROGRESS, source, data={"value": int(told[name]), "at": at})
    own = _OWN.search(window.text) if at is not None and window.speaker.rank is not None else None
    if own is not None and not _OTHERS.search(window.text):
        yield window.event(EventKind.PROGRESS, "data own", data={"value": int(own["after"] or own["before"]), "at": at})
    found = _LIST.search(window.text)
    if found is None or window.speaker.rank is None or _OTHERS.search(window.text):
        return
    data: dict[str, object] = {
        "what": found["what"].lower(),
        "value": found["values"],
        "at": at,
    }
    yield window.event(EventKind.PROGRESS, "samples", data=data)

"""What scripts print to show how the data are split: lists of a rank's samples.

rank 1: epoch 0 first samples [25, 128, 135, 213, 75, 400]
[rank2] indices: [4, 8, 12, 16]
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
)  # fmt: skip

_LIST = re.compile(
    r"\b(?P<what>(?:(?:first|train\w*|batch|sample|data)[ _])*(?:samples?|indices|idxs?|ids))\b(?: \w+){0,3}?[\W]{1,4}?\[(?P<values>-?\d+(?:,? +-?\d+){3,})"
)
# Every rank may well see the same samples of these, and the same tokens of a vocabulary.
_OTHERS = re.compile(r"\b(?:val\w*|eval\w*|test\w*|dev|token\w*|input_ids|device\w*|gpu\w*|core|cpu|rank|label|class)s?[ _](?:\w+ )?(?:samples?|ind|id)|input_ids|device_ids", re.I)  # fmt: skip


def read(window: Window) -> Iterator[Event]:
    """A progress event with the samples, and the epoch and step they were printed for."""
    found = _LIST.search(window.text)
    if found is None or window.speaker.rank is None or _OTHERS.search(window.text):
        return
    data: dict[str, object] = {
        "what": found["what"].lower(),
        "value": found["values"],
        "at": position_of(window.text),
    }
    yield window.event(EventKind.PROGRESS, "samples", data=data)

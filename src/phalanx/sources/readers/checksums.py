"""Quantities of the model that ranks print and that must be equal on all of them: norms, sums, checksums of weights.

rank 1 epoch 0 loss 12.7524 weight norm 6.34328
[rank2]: step 10 param checksum: 91ab03
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from phalanx.model import Event, EventKind
from phalanx.sources.progress import position_of
from phalanx.sources.window import Window

TRIGGERS = (
    "weight norm", "weights norm", "weight_norm", "param norm", "params norm", "param_norm", "parameter norm",
    "weight sum", "weights sum", "weight_sum", "param sum", "params sum", "param_sum", "parameter sum", "model sum",
    "model norm", "model_norm", "model_sha", "weights_sha", "params_sha", "model_md5", "weights_md5", "model_hash",
    "weights_hash", "params_hash", "model sha", "weights sha", "params sha", "fingerprint", "digest", "checksum", "weight hash", "weights hash", "param hash", "params hash", "parameter hash", "model hash",
)  # fmt: skip

_QUANTITY = re.compile(
    r"\b(?P<what>(?:weights?|param(?:eter)?s?|model)[ _](?:l2[ _])?(?:norm|sum|mean|checksum|hash|sha\d*|md5|digest|fingerprint|crc32))\b\W{1,4}(?P<value>[\w.+-]{3,40})",
    re.I,
)


def read(window: Window) -> Iterator[Event]:
    """A progress event with the quantity, its value, and the epoch and step it was printed at."""
    found = _QUANTITY.search(window.text)
    if found is not None and window.speaker.rank is not None:
        data: dict[str, object] = {
            "what": found["what"].lower(),
            "value": found["value"],
            "at": position_of(window.text),
        }
        yield window.event(EventKind.PROGRESS, "checksum", data=data)

"""Exceptions of the user's own that TensorFlow carries out of a graph: raised in a `tf.py_function`, a `numpy_function` or a generator.

    InvalidArgumentError: {{function_node …}} ValueError: record 37 has no label
    Traceback (most recent call last):
      File "…/tensorflow/python/ops/script_ops.py", line 267, in __call__
      File "train.py", line 10, in parse

The outer exception names a node of the graph, the inner one the line.
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.diagnosis.detectors.protocol import Job
from phalanx.model import Event, EventKind
from phalanx.model.facts import make_fact
from phalanx.sources.facts import fact_event

_CARRIED = "tensorflow/python/ops/script_ops.py"
_PIPELINES = ("data/ops/iterator_ops.py", "data/ops/from_generator_op.py")
_LONGEST = 160


def detect(job: Job) -> Iterator[Event]:
    """One fact for each rank whose own line raised within a graph."""
    outer: dict[tuple[int | None, str], Event] = {}
    told: set[int | None] = set()
    for event in job.events:
        if event.kind is not EventKind.EXCEPTION:
            continue
        own = event.user_frame
        if own is None or not any(_CARRIED in frame.path for frame in event.frames) or event.frames[-1] != own:
            outer[event.rank, event.file] = event
            continue
        if event.rank in told:
            continue
        told.add(event.rank)
        around = outer.get((event.rank, event.file))
        paths = [frame.path for one in (around, event) if one is not None for frame in one.frames]
        fields = {
            "error": event.text[:_LONGEST],
            "place": own.place,
            "function": own.function if not own.function.startswith("<") else None,
            "source": own.source or None,
            "data": any(path.endswith(_PIPELINES) for path in paths) or None,
        }
        ranks = () if event.rank is None else (event.rank,)
        fact = make_fact("source.raised-inside", fields, ranks=ranks, source="source")
        yield fact_event(fact, event.file, event.line, event.rank, event.frames)

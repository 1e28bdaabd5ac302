"""The user's own exception within a graph of TensorFlow is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.diagnosis import diagnose_paths

OUTER = """\
Traceback (most recent call last):
  File "/home/me/train.py", line 21, in <module>
    for batch in data:
  File "/venv/lib/python3.11/site-packages/tensorflow/python/{outer}", line 826, in __next__
    return self._next_internal()
tensorflow.python.framework.errors_impl.InvalidArgumentError: {{{{function_node __wrapped__X}}}} ValueError: record 37 has no label
Traceback (most recent call last):

  File "/venv/lib/python3.11/site-packages/tensorflow/python/ops/script_ops.py", line 267, in __call__
    return func(device, token, args)

  File "/home/me/train.py", line 10, in parse
    raise ValueError("record 37 has no label")

ValueError: record 37 has no label


\t [[{{{{node EagerPyFunc}}}}]] [Op:IteratorGetNext] name:
"""


@pytest.mark.parametrize(
    ("outer", "symptom"),
    [("data/ops/iterator_ops.py", "prep.data-loading-failure"), ("eager/execute.py", "fail.other")],
)
def test_the_line_that_raised_is_named(tmp_path: Path, outer: str, symptom: str) -> None:
    (tmp_path / "rank0.log").write_text("step 1 loss 0.5\nstep 2 loss 0.4\n")
    (tmp_path / "rank1.log").write_text("step 1 loss 0.5\n" + OUTER.format(outer=outer))
    verdict = diagnose_paths([str(tmp_path)]).findings[0]
    assert verdict.headline == "Rank 1 raised ValueError: record 37 has no label (train.py:10, in parse())."
    assert verdict.symptom == symptom
    assert tuple(verdict.culprit_ranks) == (1,)

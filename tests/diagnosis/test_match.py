"""Evidence of rules is joined with the exception that it belongs to."""

from tests.conftest import Diagnose

WORKER = """\
[rank2]: Traceback (most recent call last):
[rank2]:   File "/home/u/train.py", line 34, in <module>
[rank2]:     for x, y in loader:
[rank2]:   File "/usr/lib/python3.11/site-packages/torch/_utils.py", line 733, in reraise
[rank2]:     raise exception
[rank2]: ValueError: Caught ValueError in DataLoader worker process 0.
[rank2]: Original Traceback (most recent call last):
[rank2]:   File "/usr/lib/python3.11/site-packages/torch/utils/data/_utils/worker.py", line 374, in _worker_loop
[rank2]:     data = fetcher.fetch(index)
[rank2]:   File "/home/u/train.py", line 22, in __getitem__
[rank2]:     return float(row[0])
[rank2]: ValueError: could not convert string to float: 'n/a'
"""


def test_what_a_loaders_worker_raised_is_told_with_its_own_line(diagnose: Diagnose) -> None:
    others = "".join(f"[rank{rank}]: step 3 loss 0.5\n" for rank in (0, 1, 3))
    verdict = diagnose(others + WORKER).verdict
    assert verdict is not None
    assert "could not convert string to float: 'n/a'" in verdict.headline
    assert "train.py:22" in verdict.headline
    assert "Caught" not in verdict.headline

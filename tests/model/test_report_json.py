"""A report read back from its JSON is the report that was written."""

from __future__ import annotations

import json
from pathlib import Path

from phalanx.diagnosis import diagnose_paths
from phalanx.model.report_json import read_report

CRASH = """\
[rank0]: step 10 loss 0.5
[rank1]: Traceback (most recent call last):
[rank1]:   File "train.py", line 31, in collate
[rank1]:     return batch["labels"]
[rank1]: KeyError: 'labels'
"""


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text(CRASH)
    written = diagnose_paths([str(log)]).to_json()
    assert written["verdict"]["fixes"] is not None
    assert read_report(json.loads(json.dumps(written))).to_json() == written


def test_a_document_of_an_earlier_release_lacks_fields(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text(CRASH)
    document = diagnose_paths([str(log)]).to_json()
    for name in ("culprit_confidence", "headline", "detail", "place", "accused_by", "severity"):
        for finding in document["findings"]:
            del finding[name]
    del document["restarts"]
    read = read_report(document)
    assert read.verdict is not None
    assert read.verdict.severity == "error"
    assert read.verdict.culprit_ranks == (1,)

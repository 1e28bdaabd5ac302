"""Metrics in Prometheus' own form: read back by its rules, served, and written to a file that goes with the job."""

from __future__ import annotations

import re
import urllib.request
from pathlib import Path

import pytest

from phalanx.notify.metrics import Metrics, MetricsError, RankFigures

_LINE = re.compile(r'[a-z_]+\{(?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*\} [0-9.e+-]+')


def full() -> Metrics:
    metrics = Metrics('tr"ain\\x\n')
    metrics.note({0: RankFigures("training", 12, 3.5, 0.4, 1 << 30, 0), 1: RankFigures()})
    metrics.stalled(True)
    metrics.straggler(1, 2.5)
    metrics.verdict({"rule": "HNG071", "symptom": "perf.hang", "culprit_ranks": [1], "confidence": "likely"})
    return metrics


def test_every_line_has_prometheus_form() -> None:
    text = full().text()
    for line in text.splitlines():
        assert line.startswith("# ") or _LINE.fullmatch(line), line
    assert 'phalanx_rank_step{job="tr\\"ain\\\\x\\n",rank="0"} 12\n' in text
    assert 'rank="1",phase=' not in text  # what is not known is not exported
    assert re.search(r'phalanx_verdict\{.*rule="HNG071",symptom="perf.hang",confidence="likely",culprits="1"\} 1', text)
    assert re.search(r'phalanx_straggler_factor\{.*rank="1"\} 2.5', text)
    names = re.findall(r"# TYPE (\w+) gauge", text)
    assert len(names) == len(set(names))


def test_served_at_loopback_until_it_is_closed() -> None:
    metrics = full()
    url = metrics.open("0")
    assert url.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(url, timeout=5) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert answer.read().decode() == metrics.text()
    metrics.close()
    with pytest.raises(OSError, match=r"refused|reset"):
        urllib.request.urlopen(url, timeout=5)


def test_a_file_goes_with_the_job(tmp_path: Path) -> None:
    metrics = Metrics("train")
    file = tmp_path / "phalanx.prom"
    metrics.open(str(file))
    metrics.note({0: RankFigures("training", 1)})
    assert "phalanx_rank_step" in file.read_text()
    metrics.close()
    assert not file.exists()


@pytest.mark.parametrize("where", ["nonsense", "127.0.0.1:x", "203.0.113.1:9000", "127.0.0.1:999999"])
def test_bad_addresses_are_refused_before_the_job_starts(where: str) -> None:
    with pytest.raises(MetricsError, match="--metrics"):
        Metrics("train").open(where)

"""Labelling by two raters: apart from each other, by keyboard, in a real browser, with nothing lost at a kill."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from phalanx.study.errors import StudyError
from phalanx.study.label.server import LabelServer
from phalanx.study.label.store import FINAL, Labels, check_labels

from .browser import CHROMIUM, Browser

FAULT = {"type": "fault", "symptom": "perf.hang", "fix": "fix-behavior-logic", "distributed": "yes"}
QUESTION = {"type": "how-to question"}
HOSTILE = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"


@pytest.fixture
def labels(tmp_path: Path) -> Iterator[Labels]:
    store = Labels(tmp_path / "labels.sqlite")
    store.add_issues(
        [
            {"key": f"k{number}", "title": f"issue {number}", "body": f"body {number} {HOSTILE}"}
            for number in range(1, 5)
        ]
    )
    yield store
    store.close()


@pytest.fixture
def server(labels: Labels) -> Iterator[LabelServer]:
    running = LabelServer(labels)
    threading.Thread(target=running.server.serve_forever, daemon=True).start()
    yield running
    running.server.shutdown()
    running.server.server_close()


def ask(
    server: LabelServer, path: str, token: str = "", body: object = None, host: str | None = None
) -> tuple[int, object]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    headers = {"x-token": token} | ({"host": host} if host else {})
    connection.request(
        "POST" if body is not None else "GET", path, json.dumps(body) if body is not None else None, headers
    )
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer.status, json.loads(data) if answer.headers["content-type"] == "application/json" else data.decode()


def token_of(server: LabelServer, role: str) -> str:
    return urlsplit(server.addresses[role]).query.partition("=")[2]


# The store


def test_agreement_disagreements_and_adjudication(labels: Labels) -> None:
    labels.rate("k1", "1", FAULT)
    labels.rate("k1", "2", FAULT)
    labels.rate("k2", "1", FAULT)
    labels.rate("k2", "2", FAULT | {"symptom": "comm.hang-timeout"})
    labels.rate("k3", "1", QUESTION)
    labels.rate("k3", "2", QUESTION)
    labels.rate("k4", "1", QUESTION)
    assert [one["key"] for one in labels.disagreements()] == ["k2"]
    found = labels.agreement()
    assert {name: one.pairs for name, one in found.items()} == {"type": 3, "symptom": 3, "fix": 3, "distributed": 3}
    assert found["type"].kappa == 1
    assert found["symptom"].kappa == pytest.approx(0.5), "observed 2/3, by chance 1/3"
    assert [one["key"] for one in labels.results()] == ["k1", "k3"]
    labels.rate("k2", FINAL, FAULT | {"symptom": "comm.hang-timeout"})
    assert [(one["key"], one["symptom"]) for one in labels.results()] == [
        ("k1", "perf.hang"),
        ("k2", "comm.hang-timeout"),
        ("k3", None),
    ]
    assert labels.export().count("k2") == 1


def test_a_rater_never_gets_the_others_labels(labels: Labels) -> None:
    labels.rate("k1", "1", FAULT)
    seen = labels.issue("k1", "2")
    assert seen is not None
    assert seen["ratings"] == {}
    assert not any(one["done"] for one in labels.issues("2"))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "type must be"),
        ({"type": "fault"}, "one of the 30"),
        (FAULT | {"fix": "x"}, "fix pattern"),
        (FAULT | {"distributed": None}, "yes or no"),
    ],
)
def test_labels_that_are_not_whole_are_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        check_labels(given)


def test_issues_are_added_once(labels: Labels) -> None:
    assert labels.add_issues([{"key": "k1"}, {"key": "k9", "text": "words"}]) == 1
    assert [one["key"] for one in labels.issues("1")] == ["k1", "k2", "k3", "k4", "k9"]


# The server


def test_only_who_has_the_token_and_comes_from_here_is_answered(server: LabelServer) -> None:
    token = token_of(server, "1")
    assert server.server.server_address[0] == "127.0.0.1"
    assert ask(server, "/api/start")[0] == 403
    assert ask(server, "/?token=wrong")[0] == 403
    assert ask(server, "/api/start", token, host="evil.example")[0] == 403
    assert ask(server, "/api/start", token)[0] == 200
    status, page = ask(server, f"/?token={token}")
    assert status == 200
    assert not re.search(r"https?://", str(page)), "nothing is fetched from elsewhere"
    assert len(set(server.addresses.values())) == 3


def test_bad_requests_get_an_answer_and_raters_see_no_agreement(server: LabelServer) -> None:
    token = token_of(server, "1")
    assert ask(server, "/api/rate", token, {"key": "nothing", **FAULT}) == (
        400,
        {"error": "there is no issue 'nothing'"},
    )
    assert ask(server, "/api/rate", token, [1])[0] == 400
    assert ask(server, "/api/none", token)[0] == 404
    assert ask(server, "/api/agreement", token)[0] == 400
    assert ask(server, "/api/agreement", token_of(server, FINAL)) == (200, {})


# The page


@pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium: apt-get install chromium")
def test_two_raters_and_an_adjudicator_by_keyboard_in_a_real_browser(
    server: LabelServer, labels: Labels, tmp_path: Path
) -> None:
    ready = "document.title.includes('ready')"
    with Browser(tmp_path / "profile") as browser:
        browser.open(server.addresses["1"], ready)
        assert browser.text("title") == "issue 1"
        assert HOSTILE in browser.text("body")
        browser.press("Enter")
        browser.until("document.getElementById('say').textContent.includes('type must be')")
        browser.press("f", "s", *"perf.hang", "Enter", "x", *"behavior", "Enter", "y", "Enter")
        browser.until("document.getElementById('title').textContent === 'issue 2'")
        browser.press("q", "Enter")
        browser.until("document.getElementById('title').textContent === 'issue 3'")
        browser.press("k")
        browser.until("document.getElementById('title').textContent === 'issue 2'")
        assert browser.ask("document.querySelector('#type .on').textContent") == "how-to question"
        browser.open(
            server.addresses["2"],
            "document.getElementById('where') && document.getElementById('where').textContent.startsWith('rater 2')",
        )
        browser.until(ready)
        browser.press("f", "s", *"low-eff", "Enter", "x", *"batch", "Enter", "n", "m", *"slow", "Enter", "Enter")
        browser.until("document.getElementById('title').textContent === 'issue 2'")
        browser.press("q", "Enter")
        browser.until("document.getElementById('title').textContent === 'issue 3'")
        browser.open(
            server.addresses[FINAL],
            "document.getElementById('where') && document.getElementById('where').textContent.startsWith('adjudication')",
        )
        browser.until(ready)
        assert browser.text("where") == "adjudication · 1 of 1 · 0 labelled"
        both = browser.text("both")
        assert "perf.hang" in both
        assert "perf.low-efficiency" in both
        assert "slow" in both
        browser.press("f", "s", *"perf.hang", "Enter", "x", *"behavior", "Enter", "y", "Enter")
        browser.until("document.getElementById('say').textContent === 'saved'")
        browser.until("document.getElementById('agreement').textContent.includes('2 issues')")
        assert browser.ask("document.title") != "owned"
    assert [(one["key"], one["type"], one["symptom"], one["fix"]) for one in labels.results()] == [
        ("k1", "fault", "perf.hang", "fix-behavior-logic"),
        ("k2", "how-to question", None, None),
    ]


def test_what_was_saved_is_there_after_a_kill_and_the_export_trains(tmp_path: Path) -> None:
    issues = tmp_path / "issues.csv"
    issues.write_text("key,title,body\n" + "".join(f"k{number},title,body\n" for number in range(30)))
    base = [
        sys.executable,
        "-c",
        "from phalanx.cli import main; main()",
        "study",
        "label",
        "--into",
        str(tmp_path / "l.sqlite"),
    ]
    child = subprocess.Popen(
        [*base, str(issues)], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    assert child.stdout is not None
    lines = [child.stdout.readline() for _ in range(4)]
    assert lines[0] == "30 issues added\n"
    addresses = [urlsplit(line.split()[-1]) for line in lines[1:]]
    for number in range(20):
        for address in addresses[:2]:
            connection = http.client.HTTPConnection("127.0.0.1", address.port or 0, timeout=30)
            connection.request(
                "POST",
                "/api/rate",
                json.dumps({"key": f"k{number}", **FAULT}),
                {"x-token": address.query.partition("=")[2]},
            )
            assert connection.getresponse().status == 200
            connection.close()
    os.kill(child.pid, signal.SIGKILL)
    child.wait(30)
    out = tmp_path / "labels.csv"
    done = subprocess.run([*base, "--export", str(out)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "wrote 20 labelled issues" in done.stdout
    assert out.read_text().count("perf.hang") == 20

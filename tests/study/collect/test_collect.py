"""Collecting, against a real server that pages, limits, errs and cuts: nothing lost, nothing twice, nothing silent."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import polars
import pytest

from phalanx.study.collect.presets import Preset, load_presets
from phalanx.study.collect.run import Collected, Options, collect_all
from phalanx.study.collect.store import Store
from phalanx.study.errors import StudyError

from .api import TOKEN, Api, issue, question

pytest.importorskip("httpx", reason="collecting needs the extra `study`")

REPO = Preset("own", ("o/r",))


@pytest.fixture
def api() -> Iterator[Api]:
    server = Api()
    yield server
    server.close()


def run(api: Api, folder: Path, *presets: Preset, token: str | None = TOKEN, **options: object) -> Collected:
    environment = {"GITHUB_TOKEN": token} if token else {}
    chosen = Options(github_api=api.address, stackexchange_api=api.address, **options)  # type: ignore[arg-type]
    return collect_all(list(presets), folder, chosen, environment=environment)


def numbers(folder: Path) -> list[int]:
    with Store(folder) as store:
        return sorted(post.number for post in store.posts())


def test_every_page_is_read_and_a_second_run_asks_only_for_what_changed(api: Api, tmp_path: Path) -> None:
    api.issues["o/r"] = [issue(number) for number in range(1, 251)]
    first = run(api, tmp_path, REPO)
    assert (first.counts.new, first.total) == (250, 250)
    api.issues["o/r"][4] |= {"title": "changed", "updated_at": "2024-05-05T00:00:00Z"}
    api.issues["o/r"].append(issue(251))
    before = len(api.asked)
    second = run(api, tmp_path, REPO)
    assert (second.counts.new, second.counts.updated, second.total) == (1, 1, 251)
    assert len(api.asked) - before == 1, "one request is enough for what is new"
    frame = polars.read_parquet(tmp_path / "posts/*.parquet")
    assert frame.height == 251
    assert frame.filter(polars.col("number") == 5)["title"].item() == "changed"
    assert set(api.tokens) == {f"Bearer {TOKEN}"}


def test_limits_errors_and_cut_connections_are_outlasted(api: Api, tmp_path: Path) -> None:
    api.issues["o/r"] = [issue(number) for number in range(1, 231)]
    api.trouble = ["cut", "limit", "", "half", "html", "secondary", "", "500", ""]
    result = run(api, tmp_path, REPO)
    assert result.counts.new == 230
    assert not api.trouble
    assert numbers(tmp_path) == list(range(1, 231))


def test_an_issue_that_moves_while_one_reads_is_not_skipped(api: Api, tmp_path: Path) -> None:
    issues = [issue(number) for number in range(1, 221)]
    api.issues["o/r"] = issues
    # Before the second page, ten issues of the first change: by page numbers 101 to 110 would be skipped.
    api.before_answer[2] = lambda: [one.update(updated_at="2025-01-01T00:00:00Z") for one in issues[:10]]
    run(api, tmp_path, REPO)
    assert numbers(tmp_path) == list(range(1, 221))


def test_a_hundred_changes_within_one_second_are_paged(api: Api, tmp_path: Path) -> None:
    api.issues["o/r"] = [issue(number, updated_at="2024-01-01T00:00:00Z") for number in range(1, 341)]
    assert run(api, tmp_path, REPO).counts.new == 340


def test_a_limit_longer_than_allowed_ends_the_run_and_the_next_goes_on(api: Api, tmp_path: Path) -> None:
    api.issues["o/r"] = [issue(number) for number in range(1, 221)]
    api.trouble = ["", "long limit"]
    with pytest.raises(StudyError, match=r"minutes, longer than --max-wait allows.*100 new posts were kept"):
        run(api, tmp_path, REPO, longest_wait=10)
    assert len(numbers(tmp_path)) == 100
    assert run(api, tmp_path, REPO).total == 220


@pytest.mark.parametrize(
    ("status", "words"),
    [("401", "token is not accepted"), ("410", "gone"), ("422", "not accepted"), ("404", "not found")],
)
def test_what_is_final_is_said_at_once_and_the_token_never(api: Api, tmp_path: Path, status: str, words: str) -> None:
    api.issues["o/r"] = [issue(1)]
    api.trouble = [status]
    with pytest.raises(StudyError, match=words) as raised:
        run(api, tmp_path, REPO)
    assert TOKEN not in str(raised.value)
    assert len(api.asked) == 1


def test_one_failing_repository_does_not_cost_the_others(api: Api, tmp_path: Path) -> None:
    api.issues["o/r"] = [issue(1)]
    with pytest.raises(StudyError, match=r"no/such/issues: status 404.*1 new posts were kept"):
        run(api, tmp_path, Preset("missing", ("no/such",)), REPO)
    assert numbers(tmp_path) == [1]


def test_bad_rows_pull_requests_and_deleted_users(api: Api, tmp_path: Path) -> None:
    api.issues["o/r"] = [
        issue(1, user=None, body=None),
        issue(2, pull_request={}),
        {"number": "x", "title": "broken", "updated_at": "2023-12-01T00:00:00Z"},
        issue(4, title="half a pair \ud83d and \x00", user={"login": "ghost"}),
    ]
    result = run(api, tmp_path, REPO)
    assert (result.counts.new, result.counts.left_out, result.counts.bad) == (2, 1, 1)
    assert result.problems[0][0] == "github:o/r"
    with Store(tmp_path) as store:
        posts = {post.number: post for post in store.posts()}
    assert posts[1].author is None
    assert posts[1].body == ""
    assert posts[4].author is None
    assert posts[4].title == "half a pair � and �"


def test_replies_are_read_on_demand(api: Api, tmp_path: Path) -> None:
    api.issues["o/r"] = [issue(1), issue(2)]
    api.comments[2] = [f"comment {number}" for number in range(130)]
    run(api, tmp_path, REPO, replies=True)
    with Store(tmp_path) as store:
        assert [len(post.replies) for post in store.posts()] == [0, 130]


def test_discussions_are_paged_resumed_and_need_a_token(api: Api, tmp_path: Path) -> None:
    preset = Preset("own", ("o/r",), discussions=True)
    api.issues["o/r"] = []
    api.discussions = [
        {"number": number, "title": "ask", "body": "words", "url": f"https://github.com/o/r/discussions/{number}", "createdAt": "2024-01-01T00:00:00Z",
         "updatedAt": "2024-01-01T00:00:00Z", "closedAt": None, "author": None, "category": {"name": "Q&A"}, "labels": {"nodes": []},
         "comments": {"nodes": [{"body": "an answer"}]}}
        for number in range(1, 121)
    ]  # fmt: skip
    without = run(api, tmp_path, preset, token=None)
    assert without.total == 0
    assert "GraphQL needs GITHUB_TOKEN" in without.problems[0][1]
    assert run(api, tmp_path, preset).counts.new == 120
    api.discussions.append(api.discussions[0] | {"updatedAt": "2024-02-02T00:00:00Z"})
    again = run(api, tmp_path, preset)
    assert (again.counts.new, again.counts.updated) == (0, 1)
    with Store(tmp_path) as store:
        assert {(post.kind, post.author, post.replies) for post in store.posts()} == {
            ("discussion", None, ("an answer",))
        }


def test_stack_exchange_questions_with_answers_throttle_and_deleted_users(api: Api, tmp_path: Path) -> None:
    preset = Preset("so", site="stackoverflow", tags=("pytorch", "keras"), keywords=re.compile("hang", re.I))
    api.questions = [question(number) for number in range(1, 151)]
    api.questions += [
        question(200, title="sorting a list", body="<p>how?</p>"),
        question(
            201, body="<p>a &lt; b</p><pre><code>RuntimeError: hang\n  at x</code></pre>", tags=["keras", "pytorch"]
        ),
        question(202, owner={"user_type": "does_not_exist", "display_name": "user9"}),
        {"title": "no number", "tags": ["keras"]},
    ]
    api.answers = [{"question_id": 201, "body": "<p>Set <code>X</code></p>"}]
    api.trouble = ["throttle", "", "cut"]
    result = run(api, tmp_path, preset, replies=True)
    assert result.counts.new == 152, "a question with two of the tags is kept once"
    assert result.counts.bad == 1
    with Store(tmp_path) as store:
        posts = {post.number: post for post in store.posts()}
    assert len(posts) == 152
    assert 200 not in posts
    assert posts[201].body == "a < b\n\n```\nRuntimeError: hang\n  at x\n```"
    assert posts[201].replies == ("Set X",)
    assert posts[202].author is None


def test_a_cross_post_is_found_and_kept(api: Api, tmp_path: Path) -> None:
    story = " ".join(f"word{number} of the story" for number in range(60))
    other = " ".join(f"thing{number} in another tale" for number in range(60))
    api.issues["o/r"] = [
        issue(1, "DDP hangs", story),
        issue(2, "other", other),
        issue(3, "short", "same words"),
        issue(4, "short", "same words"),
    ]
    api.questions = [question(9, "DDP hangs", f"<p>{story} Any idea?</p>", creation_date=1_800_000_000)]
    result = run(api, tmp_path, REPO, Preset("so", site="stackoverflow"))
    assert (result.total, result.duplicates, result.across_sources) == (5, 1, 1)
    frame = polars.read_parquet(tmp_path / "posts/*.parquet")
    assert frame.filter(polars.col("duplicate_of").is_not_null())["key"].to_list() == ["stackoverflow:9"]


def test_nothing_is_lost_at_a_kill(api: Api, tmp_path: Path) -> None:
    api.issues["o/r"] = [issue(number) for number in range(1, 501)]
    api.before_answer[4] = lambda: time.sleep(60)
    command = [sys.executable, "-c", "from phalanx.cli import main; main()", "study", "collect", "--into", str(tmp_path), "--repo", "o/r", "--github-api", api.address]  # fmt: skip
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "GITHUB_TOKEN": TOKEN}
    )
    deadline = time.monotonic() + 120
    while len(api.asked) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(child.pid, signal.SIGKILL)
    child.wait(30)
    kept = numbers(tmp_path)
    assert kept == list(range(1, len(kept) + 1))
    assert len(kept) >= 290
    api.before_answer.clear()
    before = len(api.asked)
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, "GITHUB_TOKEN": TOKEN}
    )
    assert done.returncode == 0, done.stderr
    assert numbers(tmp_path) == list(range(1, 501))
    assert len(api.asked) - before <= 4, "it goes on where it was, not from the start"
    assert "500 posts" in done.stdout


def test_a_file_that_is_no_collection_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "collection.sqlite").write_bytes(b"not a database at all, but long enough to be read as one" * 30)
    with pytest.raises(StudyError, match=r"cannot be opened.*Give another folder"):
        Store(tmp_path)


def test_an_odd_document_is_no_traceback(api: Api, tmp_path: Path) -> None:
    api.issues["o/r"] = []
    api.trouble = ["odd"]
    assert run(api, tmp_path, REPO).counts.bad == 3
    api.trouble = ["object"]
    with pytest.raises(StudyError, match="are no list"):
        run(api, tmp_path, REPO)


def test_the_query_of_the_study_is_asked_for_and_kept_to(api: Api, tmp_path: Path) -> None:
    closed = {"closed_at": "2024-01-01T00:00:00Z"}
    ddp = {"name": "module: ddp"}
    api.issues["pytorch/pytorch"] = [
        issue(1, labels=[ddp], **closed),
        issue(2, labels=[ddp]),
        issue(3, labels=[{"name": "module: nn"}], **closed),
        issue(4, labels=[ddp, {"name": "Feature"}], **closed),
    ]
    result = run(api, tmp_path, load_presets()["study-pytorch"])
    assert numbers(tmp_path) == [1]
    assert result.counts.left_out == 1, "the server leaves out what is open or has other labels, we the feature request"
    assert "state=closed" in api.asked[0]
    api.questions = [question(1, accepted_answer_id=7), question(2), question(3, title="fine", accepted_answer_id=8)]
    assert run(api, tmp_path / "so", load_presets()["study-stackoverflow"]).counts.new == 0, (
        "`multi gpu` is no word of theirs"
    )
    api.questions[0]["title"] = "Hangs on multiple GPUs"
    run(api, tmp_path / "more", load_presets()["study-stackoverflow"])
    assert numbers(tmp_path / "more") == [1]


def test_other_words_are_asked_of_everything_again(api: Api, tmp_path: Path) -> None:
    api.issues["o/r"] = [issue(1, title="nccl"), issue(2, title="gloo", body="it stops")]
    run(api, tmp_path, Preset("own", ("o/r",), keywords=re.compile("nccl")))
    assert numbers(tmp_path) == [1]
    run(api, tmp_path, Preset("own", ("o/r",), keywords=re.compile("gloo")))
    assert numbers(tmp_path) == [1, 2]


def test_a_server_that_pages_without_end_is_noticed(api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = [issue(number) for number in range(1, 101)]
    monkeypatch.setattr(api, "serve", lambda handler, body: _answer(handler, page))
    with pytest.raises(StudyError, match="without end"):
        run(api, tmp_path, REPO)
    assert len(numbers(tmp_path)) == 100, "what came is kept"


def test_answers_and_redirects_are_bounded(api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("phalanx.study.collect.web._LARGEST_ANSWER", 1000)
    monkeypatch.setattr(api, "serve", lambda handler, body: _answer(handler, "x" * 5000))
    with pytest.raises(StudyError, match="no page of posts"):
        run(api, tmp_path / "a", REPO)
    monkeypatch.setattr(api, "serve", lambda handler, body: _answer(handler, [], status=302, location="/again"))
    with pytest.raises(StudyError, match="redirected"):
        run(api, tmp_path / "b", REPO)


def _answer(handler: BaseHTTPRequestHandler, document: object, status: int = 200, location: str = "") -> None:
    data = json.dumps(document).encode()
    handler.send_response(status)
    if location:
        handler.send_header("location", location)
    handler.send_header("content-length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)

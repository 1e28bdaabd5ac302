"""Notices arrive by webhook, command and mail, carry no marks of the job's own, and fail in one line without the address."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer

import pytest

from phalanx.notify.channels import ChannelError, channel_of, send_all
from phalanx.notify.github import summarise
from phalanx.notify.notice import Notice, notice_of

NOTICE = Notice(
    "verdict",
    "Rank 2 called barrier <!channel>",
    "✗ Rank 2 called barrier & waits",
    "train",
    "/runs/a",
    {"rule": "HNG071", "symptom": "perf.hang", "culprit_ranks": [2], "secret": "x"},
)


@pytest.fixture
def hook() -> Iterator[tuple[str, list[dict[str, object]]]]:
    """A server that keeps what is posted to it."""
    got: list[dict[str, object]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(500 if self.path.startswith("/broken") else 200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", got
    server.shutdown()
    server.server_close()


def test_generic_and_slack(hook: tuple[str, list[dict[str, object]]]) -> None:
    url, got = hook
    said: list[str] = []
    send_all([channel_of(f"{url}/a"), channel_of(f"slack:{url}/b")], NOTICE, said.append)
    assert not said
    plain, slack = got
    assert plain["schema"] == "phalanx.notice/1"
    assert plain["verdict"] == {"rule": "HNG071", "symptom": "perf.hang", "culprit_ranks": [2]}
    assert slack.keys() == {"text"}
    assert "<!channel>" not in str(slack["text"])
    assert "&lt;!channel&gt;" in str(slack["text"])


def test_a_broken_way_is_said_without_its_secret_and_the_rest_go_on(
    hook: tuple[str, list[dict[str, object]]], tmp_path: Path
) -> None:
    url, _ = hook
    said: list[str] = []
    file = tmp_path / "told.json"
    ways = [channel_of(f"{url}/broken?token=s3cret"), channel_of("cmd:exit 3"), channel_of(f"cmd:cat > {file}")]
    send_all(ways, NOTICE, said.append)
    assert len(said) == 2
    assert "webhook at 127.0.0.1" in said[0]
    assert "s3cret" not in said[0]
    assert "status 3" in said[1]
    assert json.loads(file.read_text())["headline"] == NOTICE.headline


def test_what_the_job_said_is_no_code_for_the_shell(tmp_path: Path) -> None:
    evil = Notice("verdict", f"$(touch {tmp_path}/evil)", "x")
    send_all([channel_of(f'cmd:echo "$PHALANX_HEADLINE" > {tmp_path}/out')], evil, pytest.fail)
    assert (tmp_path / "out").read_text() == f"{evil.headline}\n"
    assert not (tmp_path / "evil").exists()


def test_mail_by_a_server() -> None:
    lines: list[str] = []

    class Server(StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 here\r\n")
            is_data = False
            for raw in self.rfile:
                line = raw.decode().rstrip()
                lines.append(line)
                if is_data and line == ".":
                    is_data = False
                    self.wfile.write(b"250 kept\r\n")
                elif not is_data:
                    is_data = line.lower() == "data"
                    self.wfile.write(
                        b"354 go on\r\n" if is_data else b"221 bye\r\n" if line.lower() == "quit" else b"250 ok\r\n"
                    )

    with ThreadingTCPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        variables = {"PHALANX_SMTP": f"127.0.0.1:{server.server_address[1]}"}
        send_all([channel_of("mailto:ops@example.org", variables)], NOTICE, pytest.fail)
        server.shutdown()
    assert any(line.lower().startswith("rcpt to:<ops@example.org>") for line in lines)
    assert any(line.startswith("Subject: phalanx: Rank 2 called barrier") for line in lines)


@pytest.mark.parametrize("spec", ["", "ftp://a/b", "cmd:", "mailto:nobody", "https://", "slack:nonsense"])
def test_an_unknown_way_is_refused(spec: str) -> None:
    with pytest.raises(ChannelError, match="--notify"):
        channel_of(spec)


def test_the_summary_of_a_github_run(tmp_path: Path) -> None:
    file = tmp_path / "summary.md"
    assert not summarise(NOTICE, {})
    assert summarise(NOTICE, {"GITHUB_STEP_SUMMARY": str(file)})
    text = file.read_text()
    assert text.startswith("### Phalanx: Rank 2 called barrier \\<\\!channel\\>\n\n~~~~\n✗ Rank 2")
    assert "Bundle: `/runs/a`" in text


def test_a_report_without_a_verdict_is_no_notice() -> None:
    assert notice_of({"verdict": None}, "", "a", "b") is None

"""How the job fares in Prometheus' text form: served at an address, or written to a file for node_exporter's textfile collector.

phalanx_rank_step{job="train",rank="3"} 1200
phalanx_rank_seconds_since_progress{job="train",rank="3"} 0.4
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_EVERY_S = 5.0  # between two writes of a file

_OF_RANKS = (
    ("step", "step", "The last step that a rank told of"),
    ("steps_per_second", "steps_per_second", "Steps a second"),
    ("seconds_since_progress", "idle", "Seconds since a rank last got on"),
    ("memory_bytes", "memory", "Resident memory, children included"),
    ("behind", "behind", "Steps or collectives behind the foremost rank"),
)


class MetricsError(ValueError):
    """An address that cannot be served at; the message says why."""


@dataclass(frozen=True, slots=True)
class RankFigures:
    """What is exported of a rank; None where it is not known."""

    phase: str = ""
    step: int | None = None
    steps_per_second: float | None = None
    idle: float | None = None  # seconds since it last got on
    memory: int | None = None
    behind: int | None = None


class Metrics:
    """Holds the last figures; a scrape reads them, the job never waits for one."""

    def __init__(self, job: str) -> None:
        self._job = job
        self._ranks: dict[int, RankFigures] = {}
        self._verdict: Mapping[str, Any] | None = None
        self._straggler: tuple[int, float] | None = None
        self._stalled = False
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None
        self._file: Path | None = None
        self._written = 0.0

    def open(self, where: str) -> str:
        """Serve at `[HOST:]PORT` (127.0.0.1 unless a host is given), or write `FILE.prom`; what was opened. Raises MetricsError."""
        if where.endswith(".prom"):
            self._file = Path(where)
            return where
        host, _, port = where.rpartition(":")
        if not port.isdigit():
            raise MetricsError(f"--metrics {where}: give PORT, HOST:PORT or FILE.prom")
        from http.server import ThreadingHTTPServer  # slow to load

        try:
            self._server = ThreadingHTTPServer((host or "127.0.0.1", int(port)), _handler(self))
        except (OSError, OverflowError) as error:
            raise MetricsError(f"--metrics {where}: {error}") from None
        threading.Thread(target=self._server.serve_forever, name="phalanx-metrics", daemon=True).start()
        return f"http://{host or '127.0.0.1'}:{self._server.server_address[1]}/metrics"

    def note(self, ranks: Mapping[int, RankFigures]) -> None:
        """How the ranks fare now."""
        with self._lock:
            self._ranks = dict(ranks)
        if self._file is not None and time.monotonic() - self._written >= _EVERY_S:
            self._write()

    def stalled(self, is_stalled: bool) -> None:
        """Whether the job hangs."""
        self._stalled = is_stalled

    def straggler(self, rank: int, factor: float) -> None:
        """A rank takes so many times as long as the others."""
        self._straggler = (rank, factor)

    def verdict(self, verdict: Mapping[str, Any] | None) -> None:
        """What was concluded; None when it is over."""
        self._verdict = verdict
        if self._file is not None:
            self._write()

    def text(self) -> str:
        """One scrape."""
        with self._lock:
            ranks = dict(self._ranks)
        lines: list[str] = []
        lines += self._gauge("phalanx_up", "The job is watched", [({}, 1)])
        lines += self._gauge("phalanx_ranks", "Ranks that live here", [({}, len(ranks))])
        lines += self._gauge("phalanx_stalled", "1 while nothing moves", [({}, int(self._stalled))])
        phases = [({"rank": str(rank), "phase": one.phase}, 1) for rank, one in ranks.items() if one.phase]
        lines += self._gauge("phalanx_rank_phase", "What each rank does, 1 for the phase it is in", phases)
        for name, attribute, words in _OF_RANKS:
            told = {rank: getattr(one, attribute) for rank, one in ranks.items()}
            values = [({"rank": str(rank)}, value) for rank, value in told.items() if value is not None]
            lines += self._gauge(f"phalanx_rank_{name}", words, values)
        slow = [({"rank": str(self._straggler[0])}, self._straggler[1])] if self._straggler else []
        lines += self._gauge(
            "phalanx_straggler_factor",
            "How many times as long as the others this rank works between two collectives",
            slow,
        )
        verdict = self._verdict
        labels = (
            {
                "rule": str(verdict.get("rule") or ""),
                "symptom": str(verdict.get("symptom") or ""),
                "confidence": str(verdict.get("confidence") or ""),
                "culprits": ",".join(map(str, verdict.get("culprit_ranks") or ())),
            }
            if verdict
            else {}
        )
        lines += self._gauge("phalanx_verdict", "1 for the verdict that stands", [(labels, 1)] if verdict else [])
        return "\n".join(lines) + "\n"

    def _gauge(self, name: str, words: str, values: Sequence[tuple[Mapping[str, str], float]]) -> list[str]:
        if not values:
            return []
        found = [f"# HELP {name} {words}.", f"# TYPE {name} gauge"]
        for labels, value in values:
            inner = ",".join(f'{key}="{_escaped(text)}"' for key, text in {"job": self._job, **labels}.items())
            found.append(f"{name}{{{inner}}} {value:g}" if isinstance(value, float) else f"{name}{{{inner}}} {value}")
        return found

    def _write(self) -> None:
        self._written = time.monotonic()
        if self._file is not None:
            with contextlib.suppress(OSError):  # a full disk costs the figures, not the job
                part = self._file.with_name(f".{self._file.name}.part")
                with open(part, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o644)) as file:
                    file.write(self.text())  # figures only, for node_exporter, which runs as another user
                part.replace(self._file)

    def close(self) -> None:
        """Stop serving; a file goes, so that nobody takes old figures for new ones."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        if self._file is not None:
            self._file.unlink(missing_ok=True)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _handler(metrics: Metrics) -> type[BaseHTTPRequestHandler]:
    from http.server import BaseHTTPRequestHandler

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_known = self.path.partition("?")[0] in ("/", "/metrics")
            body = metrics.text().encode() if is_known else b"not found: /metrics\n"
            self.send_response(200 if is_known else 404)
            self.send_header("Content-Type", _TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nobody wants to read of scrapes."""

    return Handler

"""Serves the labelling page to this machine only. Each rater, and the adjudicator, has an address with a secret of its own."""

import json
import secrets
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any
from urllib.parse import parse_qs, urlsplit

from phalanx.knowledge import FIX_PATTERNS, SYMPTOMS
from phalanx.study.errors import StudyError
from phalanx.study.label.store import FINAL, RATERS, Labels

_LARGEST = 1 << 20


class LabelServer:
    """The running page. `addresses` are one for each role; who has no secret sees nothing."""

    def __init__(self, labels: Labels, port: int = 0) -> None:
        self.labels = labels
        self.secrets = {secrets.token_urlsafe(18): role for role in (*RATERS, FINAL)}
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                """Requests hold the secret: they are not logged."""

            def do_GET(self) -> None:
                owner.answer(self, None)

            def do_POST(self) -> None:
                length = self.headers.get("content-length", "")
                if not length.isdigit() or int(length) > _LARGEST:
                    self.close_connection = True
                    _send(self, 413, {"error": "too large, or of unknown length"})
                    return
                owner.answer(self, self.rfile.read(int(length)))

        try:
            self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        except (OSError, OverflowError) as error:
            raise StudyError(
                f"port {port} cannot be used ({error}). Give another with --port, or 0 for any."
            ) from error
        self.server.daemon_threads = True
        self.port = int(self.server.server_address[1])

    @property
    def addresses(self) -> dict[str, str]:
        """Role -> address."""
        return {role: f"http://127.0.0.1:{self.port}/?token={token}" for token, role in self.secrets.items()}

    def answer(self, handler: BaseHTTPRequestHandler, body: bytes | None) -> None:
        """Answer one request."""
        # Another site's page that guesses the port comes with its own name, or without the secret.
        if handler.headers.get("host") not in (f"127.0.0.1:{self.port}", f"localhost:{self.port}"):
            return _send(handler, 403, {"error": "this page is for 127.0.0.1 only"})
        parts = urlsplit(handler.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        role = self._role(handler.headers.get("x-token") or query.get("token", ""))
        if role is None:
            return _send(handler, 403, {"error": "the address lacks its token; use the one that the command printed"})
        if parts.path == "/" and body is None:
            return _send_page(handler)
        try:
            document = self._call(parts.path, role, query, None if body is None else json.loads(body))
        except StudyError as error:
            return _send(handler, 400, {"error": str(error)})
        except (ValueError, TypeError, AttributeError) as error:
            return _send(handler, 400, {"error": f"not understood: {error}"})
        return _send(
            handler, 404 if document is None else 200, {"error": "no such page"} if document is None else document
        )

    def _role(self, token: str) -> str | None:
        # Compared in constant time, like any secret.
        for known, role in self.secrets.items():
            if secrets.compare_digest(known.encode(), token.encode("utf-8", "replace")):
                return role
        return None

    def _call(self, path: str, role: str, query: dict[str, str], body: Any) -> Any:
        if path == "/api/start" and body is None:
            listed = self.labels.disagreements() if role == FINAL else self.labels.issues(role)
            return {"role": role, "issues": listed, "symptoms": _symptoms(), "fixes": list(FIX_PATTERNS)}
        if path == "/api/issue" and body is None:
            return self.labels.issue(query.get("key", ""), role)
        if path == "/api/rate" and body is not None:
            self.labels.rate(str(body.get("key")), role, body)
            return {"saved": True}
        if path == "/api/agreement" and body is None:
            if role != FINAL:
                raise StudyError("agreement is for the adjudicator: raters stay independent")
            found = self.labels.agreement()
            return {
                name: {
                    "issues": one.pairs,
                    "observed": one.observed,
                    "kappa": one.kappa,
                    "low": one.low,
                    "high": one.high,
                }
                for name, one in found.items()
            }
        return None


def _symptoms() -> list[dict[str, str]]:
    return [{"id": symptom.id, "title": symptom.title, "hint": symptom.looks_like} for symptom in SYMPTOMS.values()]


def _send(handler: BaseHTTPRequestHandler, status: int, document: Any) -> None:
    _reply(handler, status, json.dumps(document).encode(), "application/json")


def _send_page(handler: BaseHTTPRequestHandler) -> None:
    page = resources.files("phalanx.study").joinpath("templates", "label.html").read_text(encoding="utf-8")
    nonce = secrets.token_urlsafe(12)
    policy = f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; form-action 'none'; frame-ancestors 'none'"
    _reply(
        handler,
        200,
        page.replace("NONCE", nonce).encode(),
        "text/html; charset=utf-8",
        {"content-security-policy": policy},
    )


def _reply(
    handler: BaseHTTPRequestHandler, status: int, data: bytes, kind: str, more: dict[str, str] | None = None
) -> None:
    handler.send_response(status)
    headers = {
        "content-type": kind,
        "content-length": str(len(data)),
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
    }
    for name, value in (headers | (more or {})).items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(data)

"""A real HTTP server that behaves like GitHub's and Stack Exchange's APIs: pages, limits, errors, cut connections."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "token-of-the-test"


class Api:
    """What the server knows, what it shall do wrong, and what it was asked."""

    def __init__(self) -> None:
        self.issues: dict[str, list[dict[str, Any]]] = {}
        self.comments: dict[int, list[str]] = {}
        self.discussions: list[dict[str, Any]] = []
        self.questions: list[dict[str, Any]] = []
        self.answers: list[dict[str, Any]] = []
        self.trouble: list[str] = []  # one for each next request; "" is none
        self.asked: list[str] = []
        self.tokens: list[str | None] = []
        self.statuses: Counter[int] = Counter()
        self.before_answer: dict[int, Any] = {}  # number of the request -> what to do before it is answered
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                api.serve(self, None)

            def do_POST(self) -> None:
                api.serve(self, json.loads(self.rfile.read(int(self.headers["content-length"]))))

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def serve(self, handler: BaseHTTPRequestHandler, body: Any) -> None:
        self.asked.append(handler.path)
        self.tokens.append(handler.headers.get("authorization"))
        if action := self.before_answer.get(len(self.asked)):
            action()
        trouble = self.trouble.pop(0) if self.trouble else ""
        if trouble == "cut":
            handler.connection.shutdown(socket.SHUT_RDWR)
            handler.close_connection = True
        elif trouble == "half":
            data = b'[{"number": 1, "tit'
            handler.send_response(200)
            handler.send_header("content-length", "5000")
            handler.end_headers()
            handler.wfile.write(data)
            handler.wfile.flush()
            handler.connection.shutdown(socket.SHUT_RDWR)
            handler.close_connection = True
        elif trouble == "limit":
            self.send(
                handler,
                403,
                {"message": "API rate limit exceeded"},
                {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(time.time()) + 1)},
            )
        elif trouble == "long limit":
            self.send(
                handler,
                403,
                {"message": "API rate limit exceeded"},
                {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(time.time()) + 9000)},
            )
        elif trouble == "secondary":
            self.send(handler, 429, {"message": "You have exceeded a secondary rate limit"}, {"retry-after": "1"})
        elif trouble == "throttle":
            message = "too many requests from this IP, more requests available in 1 seconds"
            self.send(handler, 400, {"error_id": 502, "error_name": "throttle_violation", "error_message": message})
        elif trouble == "html":
            self.send(handler, 502, "<html>Bad gateway</html>")
        elif trouble == "odd":
            self.send(handler, 200, [None, 3, {"number": 1}])
        elif trouble == "object":
            self.send(handler, 200, {"items": []})
        elif trouble.isdigit():
            self.send(handler, int(trouble), {"message": f"trouble {trouble}"})
        else:
            self.answer(handler, body)

    def send(
        self, handler: BaseHTTPRequestHandler, status: int, document: Any, headers: dict[str, str] | None = None
    ) -> None:
        data = document.encode() if isinstance(document, str) else json.dumps(document).encode("utf-8", "surrogatepass")
        self.statuses[status] += 1
        handler.send_response(status)
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    def answer(self, handler: BaseHTTPRequestHandler, body: Any) -> None:
        parts = urlsplit(handler.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if match := re.fullmatch(r"/repos/([\w.-]+/[\w.-]+)/issues", parts.path):
            if match[1] not in self.issues:
                return self.send(handler, 404, {"message": "Not Found"})
            items = sorted(self.issues[match[1]], key=lambda item: item.get("updated_at", ""))
            items = [item for item in items if item.get("updated_at", "9") >= query.get("since", "")]
            if query["state"] == "closed":
                items = [item for item in items if item.get("closed_at")]
            wanted_labels = set(filter(None, query.get("labels", "").split(",")))
            items = [item for item in items if wanted_labels <= {label["name"] for label in item.get("labels", ())}]
            return self.send(handler, 200, self.page(items, query, "per_page"))
        if match := re.fullmatch(r"/repos/[\w.-]+/[\w.-]+/issues/(\d+)/comments", parts.path):
            items = [{"body": text} for text in self.comments.get(int(match[1]), [])]
            return self.send(handler, 200, self.page(items, query, "per_page"))
        if parts.path == "/graphql":
            if handler.headers.get("authorization") != f"Bearer {TOKEN}":
                return self.send(handler, 401, {"message": "Bad credentials"})
            first, after = body["variables"]["first"], int(body["variables"]["after"] or 0)
            nodes = self.discussions[after : after + first]
            info = {
                "hasNextPage": after + first < len(self.discussions),
                "endCursor": str(after + len(nodes)) if nodes else None,
            }
            return self.send(
                handler, 200, {"data": {"repository": {"discussions": {"pageInfo": info, "nodes": nodes}}}}
            )
        if match := re.fullmatch(r"/questions/([\d;]+)/answers", parts.path):
            wanted = {int(number) for number in match[1].split(";")}
            items = [item for item in self.answers if item["question_id"] in wanted]
            return self.send(handler, 200, self.wrapped(items, query))
        if parts.path == "/questions":
            items = sorted(self.questions, key=lambda item: item.get("last_activity_date", 0))
            items = [
                item
                for item in items
                if item.get("last_activity_date", 0) >= int(query["min"])
                and query.get("tagged") in (None, *item.get("tags", ()))
            ]
            return self.send(handler, 200, self.wrapped(items, query))
        return self.send(handler, 404, {"message": "no such path"})

    def page(self, items: list[Any], query: dict[str, str], size_name: str) -> list[Any]:
        size, page = int(query[size_name]), int(query["page"])
        return items[(page - 1) * size : page * size]

    def wrapped(self, items: list[Any], query: dict[str, str]) -> dict[str, Any]:
        size, page = int(query["pagesize"]), int(query["page"])
        return {
            "items": self.page(items, query, "pagesize"),
            "has_more": len(items) > page * size,
            "quota_remaining": 100,
        }


def issue(number: int, title: str = "NCCL time-out", body: str = "it hangs", **more: Any) -> dict[str, Any]:
    """An issue as GitHub's REST API gives it; each changed in a second of its own."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_700_000_000 + number))
    return {"number": number, "title": title, "body": body, "user": {"login": f"user{number}"}, "created_at": stamp, "updated_at": stamp,
            "closed_at": None, "labels": [{"name": "bug"}], "html_url": f"https://github.com/o/r/issues/{number}"} | more  # fmt: skip


def question(number: int, title: str = "multi gpu hangs", body: str = "<p>it hangs</p>", **more: Any) -> dict[str, Any]:
    """A question as Stack Exchange's API gives it."""
    return {"question_id": number, "title": title, "body": body, "owner": {"user_type": "registered", "display_name": f"user{number}"},
            "creation_date": 1_600_000_000 + number, "last_activity_date": 1_600_000_000 + number, "tags": ["pytorch"]} | more  # fmt: skip

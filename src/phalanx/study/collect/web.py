"""Asks a web API for JSON, patiently: waits out rate limits, tries again after cut connections, says what is final."""

import hashlib
import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from phalanx.study.errors import StudyError, need

_ATTEMPTS = 7
_LONGEST_PAUSE = 60.0
_LARGEST_ANSWER = 64 << 20
_MOST_REDIRECTS = 5
_MOST_PAGES = 20_000
_RETRIED = frozenset([500, 502, 503, 504])
_FINAL = {
    401: "the token is not accepted. Make a new one and set it in the environment",
    404: "not found, or the token may not see it. Check the spelling",
    410: "gone: it was deleted or switched off there",
    451: "not available for legal reasons",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """A JSON document and the headers it came with."""

    document: Any
    headers: Mapping[str, str]


class Paging:
    """Notices a server that pages without end: the same page again and again, or more pages than there can be."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._last: bytes | None = None
        self._count = self._repeats = 0

    def take(self, items: object) -> None:
        """A page has come. Raises StudyError where it is time to stop."""
        digest = hashlib.sha256(json.dumps(items, sort_keys=True, default=str).encode("utf-8", "replace")).digest()
        self._repeats = self._repeats + 1 if digest == self._last and items else 0
        self._last = digest
        self._count += 1
        if self._repeats >= 3 or self._count > _MOST_PAGES:
            raise StudyError(f"{self._where}: the server sends pages without end. What was collected is kept.")


class Web:
    """One API. The token goes to this API's host and nowhere else, and never into a message."""

    def __init__(
        self,
        base: str,
        headers: Mapping[str, str],
        longest_wait: float = 4000.0,
        tell: Callable[[str], None] = lambda _: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._httpx = need("httpx", "asking web APIs")
        if urlsplit(base).scheme not in ("http", "https"):
            raise StudyError(f"{base}: not a web address. Give it like https://api.github.com")
        self.base = base.rstrip("/")
        self._client = self._httpx.Client(
            headers=dict(headers),
            timeout=self._httpx.Timeout(30.0),
            follow_redirects=True,
            max_redirects=_MOST_REDIRECTS,
        )
        self._longest_wait = longest_wait
        self._tell, self._sleep = tell, sleep
        self._not_before, self._why = 0.0, ""
        self.requests = self.retries = self.waits = 0

    def close(self) -> None:
        """End its connections."""
        self._client.close()

    def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Answer:
        """Read a document; `path` is below the base."""
        return self._ask("GET", path, params=dict(parameters or {}))

    def post(self, path: str, document: object) -> Answer:
        """Send a document and read the answer."""
        return self._ask("POST", path, json=document)

    def pause(self, seconds: float, why: str) -> None:
        """Let no request go out for a while, as the API asked."""
        self._not_before, self._why = max((self._not_before, self._why), (time.time() + seconds, why))

    def _ask(self, method: str, path: str, **content: Any) -> Answer:
        reason = ""
        for attempt in range(_ATTEMPTS):
            if attempt:
                self.retries += 1
                self._sleep(min(2.0**attempt * (0.5 + random.random() / 2), _LONGEST_PAUSE))
            self._wait()
            self.requests += 1
            try:
                with self._client.stream(method, f"{self.base}{path}", **content) as response:
                    body = self._bounded(response, path)
                document = json.loads(body) if body else None
            except (self._httpx.TransportError, self._httpx.DecodingError) as error:
                reason = f"the connection failed ({type(error).__name__}: {error})"
                continue
            except self._httpx.TooManyRedirects as error:
                raise StudyError(f"{self.base}{path}: redirected more than {_MOST_REDIRECTS} times.") from error
            except (ValueError, RecursionError):
                # A proxy's error page, or an answer that was cut in the middle.
                document, reason = None, f"status {response.status_code} with an answer that is no whole JSON"
                if response.status_code < 400:
                    continue
            if response.status_code < 400:
                self._heed(response.headers)
                return Answer(document, response.headers)
            if self._must_wait(response, document):
                reason = f"status {response.status_code}, {_message(document)}"
                continue
            if response.status_code not in _RETRIED:
                known = _FINAL.get(response.status_code, "not accepted")
                raise StudyError(f"{self.base}{path}: status {response.status_code}, {known} ({_message(document)}).")
            reason = f"status {response.status_code}, {_message(document)}"
        raise StudyError(f"{self.base}{path}: given up after {_ATTEMPTS} attempts: {reason}. What was collected is kept: run the same command again.")  # fmt: skip

    def _bounded(self, response: Any, path: str) -> bytes:
        body = bytearray()
        for piece in response.iter_bytes():
            body += piece
            if len(body) > _LARGEST_ANSWER:
                raise StudyError(
                    f"{self.base}{path}: an answer of more than {_LARGEST_ANSWER >> 20} MiB is no page of posts."
                )
        return bytes(body)

    def _wait(self) -> None:
        """Wait as long as was asked for; only before a request, so that an answer that announces a limit is not lost."""
        seconds = self._not_before - time.time()
        if seconds <= 0:
            return
        if seconds > self._longest_wait:
            raise StudyError(
                f"{self.base}: {self._why}; that takes {seconds / 60:.0f} minutes, longer than --max-wait allows. "
                "What was collected is kept: run the same command again then."
            )
        self.waits += 1
        self._tell(f"{self._why}: waiting {seconds:.0f} s")
        self._sleep(seconds)

    def _heed(self, headers: Mapping[str, str]) -> None:
        if headers.get("x-ratelimit-remaining") == "0" and _number(headers.get("x-ratelimit-reset")):
            self.pause(_until(headers), "the rate limit is used up")

    def _must_wait(self, response: Any, document: Any) -> bool:
        """Whether this error is a limit that passes; if so the pause is set."""
        if response.status_code not in (400, 403, 429):
            return False
        after = _number(response.headers.get("retry-after"))
        if after is not None:
            self.pause(after, "the API asks to wait")
        elif response.headers.get("x-ratelimit-remaining") == "0":
            self.pause(_until(response.headers), "the rate limit is used up")
        elif isinstance(document, dict) and document.get("error_name") == "throttle_violation":
            seconds = [int(word) for word in str(document.get("error_message", "")).split() if word.isdigit()]
            self.pause(float(seconds[-1]) if seconds else _LONGEST_PAUSE, "the API throttles")
        elif response.status_code == 429 or "rate limit" in _message(document).lower():
            self.pause(_LONGEST_PAUSE, "a rate limit without an hour")
        else:
            return False
        return True


def _until(headers: Mapping[str, str]) -> float:
    # One second more: the API's clock and ours are not the same.
    return max((_number(headers.get("x-ratelimit-reset")) or 0.0) - time.time(), 0.0) + 1.0


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None


def _message(document: Any) -> str:
    if isinstance(document, dict):
        return str(document.get("message") or document.get("error_message") or "no message")[:200]
    return "no message"

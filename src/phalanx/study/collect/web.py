"""Asks a web API for JSON, patiently: waits out rate limits, tries again after cut connections, says what is final."""

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
            headers=dict(headers), timeout=self._httpx.Timeout(30.0), follow_redirects=True
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
                response = self._client.request(method, f"{self.base}{path}", **content)
                document = json.loads(response.content) if response.content else None
            except (self._httpx.TransportError, self._httpx.DecodingError) as error:
                reason = f"the connection failed ({type(error).__name__}: {error})"
                continue
            except ValueError:
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

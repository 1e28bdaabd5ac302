"""A real Chromium, driven through its debugging pipe: pages are opened, keys are pressed, what is shown is read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

CHROMIUM = shutil.which("chromium")
_CODES = {"Enter": (13, "\r"), "Escape": (27, ""), ".": (190, "."), "-": (189, "-")}


class Browser:
    def __init__(self, profile: Path) -> None:
        self._read, their_write = os.pipe()
        their_read, self._write = os.pipe()
        command = (
            f"exec {CHROMIUM} --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update "
            f"--disable-sync --remote-debugging-pipe --user-data-dir={profile} about:blank 3<&{their_read} 4>&{their_write}"
        )
        self._process = subprocess.Popen(
            ["bash", "-c", command],
            pass_fds=(their_read, their_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(profile)},
        )
        os.close(their_read)
        os.close(their_write)
        self._rest = b""
        self._number = 0
        self._session = ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
        os.close(self._read)
        os.close(self._write)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters} | (
            {"sessionId": self._session} if self._session else {}
        )
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self._rest:
                data = os.read(self._read, 1 << 16)
                assert data, "the browser went away"
                self._rest += data
            line, _, self._rest = self._rest.partition(b"\0")
            answer = json.loads(line)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def ask(self, expression: str) -> Any:
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def until(self, expression: str, seconds: float = 90) -> None:
        deadline = time.monotonic() + seconds
        while not self.ask(expression):
            assert time.monotonic() < deadline, (
                f"never true: {expression}; shown: {self.ask('document.body && document.body.innerText')}"
            )
            time.sleep(0.1)

    def open(self, url: str, ready: str) -> None:
        self.call("Page.navigate", url=url)
        self.until(ready)

    def press(self, *keys: str) -> None:
        for key in keys:
            code, text = _CODES.get(key, (ord(key.upper()[0]), key))
            common = {"key": key, "windowsVirtualKeyCode": code}
            self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
            self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def text(self, element: str) -> str:
        return str(self.ask(f"document.getElementById({element!r}).textContent"))

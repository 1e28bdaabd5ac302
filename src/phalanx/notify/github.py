"""The verdict in the summary of a GitHub Actions run, where one is running."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping

from phalanx import private
from phalanx.notify.notice import Notice

_MOST = 60_000  # GitHub takes a megabyte a step, for everything


def summarise(notice: Notice, variables: Mapping[str, str] = os.environ) -> bool:
    """Append to the file that GITHUB_STEP_SUMMARY names; whether there was one."""
    path = variables.get("GITHUB_STEP_SUMMARY")
    if not path:
        return False
    fence = "~~~~"
    while fence in notice.text:
        fence += "~"
    text = f"### Phalanx: {_plain(notice.headline)}\n\n{fence}\n{notice.text[:_MOST]}\n{fence}\n\n" + (
        f"Bundle: `{notice.bundle}`\n\n" if notice.bundle else ""
    )
    with contextlib.suppress(OSError), open(path, "a", encoding="utf-8", opener=private.opener) as file:
        file.write(text)
        return True
    return False


def _plain(text: str) -> str:
    """What the job said must not become a heading, a link or a picture."""
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]<>#|!" else letter for letter in " ".join(text.split()))

"""All ways of a job by which its verdict and figures go out; the job asks for nothing else."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from phalanx.notify.channels import channel_of, send_all
from phalanx.notify.github import summarise
from phalanx.notify.metrics import Metrics
from phalanx.notify.notice import Notice, notice_of

_LAST_S = 15.0  # that the end of a job waits for what is under way


class Outlets:
    """Sends in threads of its own. Raises ChannelError or MetricsError when it is made, before the job starts."""

    def __init__(
        self, job: str, bundle: str, say: Callable[[str], None], notify: Sequence[str] = (), metrics: str | None = None
    ) -> None:
        self._job, self._bundle, self._say = job, bundle, say
        self._channels = [channel_of(spec) for spec in notify]
        self._sending: list[threading.Thread] = []
        self._told = ""
        self.metrics = Metrics(job) if metrics else None
        self.where = self.metrics.open(metrics) if self.metrics is not None and metrics else ""

    def verdict(self, report: Mapping[str, Any], text: str) -> None:
        """A verdict was said; one that says the same again is not sent again."""
        notice = notice_of(report, text, self._job, self._bundle)
        if notice is None:
            return
        if self.metrics is not None:
            self.metrics.verdict(notice.verdict)
        if notice.headline != self._told:
            self._told = notice.headline
            summarise(notice)
            self._send(notice)

    def recovered(self, text: str) -> None:
        """What stood still goes on."""
        if self.metrics is not None:
            self.metrics.verdict(None)
            self.metrics.stalled(False)
        if self._told:
            self._told = ""
            self._send(Notice("recovered", text, text, self._job, self._bundle))

    def _send(self, notice: Notice) -> None:
        if self._channels:
            arguments = (self._channels, notice, self._say)
            thread = threading.Thread(target=send_all, args=arguments, name="phalanx-notify", daemon=True)
            thread.start()
            self._sending.append(thread)

    def close(self) -> None:
        """Let what is under way arrive."""
        for thread in self._sending:
            thread.join(_LAST_S)
        if self.metrics is not None:
            self.metrics.close()


def open_outlets(
    job: str,
    bundle: Path | None,
    say: Callable[[str], None],
    notify: Sequence[str],
    metrics: str | None,
    variables: Mapping[str, str] = os.environ,
) -> Outlets | None:
    """What options and variables ask for (PHALANX_NOTIFY, PHALANX_METRICS, GITHUB_STEP_SUMMARY); None where nothing does."""
    wishes = [*notify, *variables.get("PHALANX_NOTIFY", "").split()]
    where = metrics or variables.get("PHALANX_METRICS") or None
    if not wishes and where is None and not variables.get("GITHUB_STEP_SUMMARY"):
        return None
    outlets = Outlets(job, str(bundle or ""), say, wishes, where)
    if outlets.where:
        say(f"metrics: {outlets.where}")
    return outlets

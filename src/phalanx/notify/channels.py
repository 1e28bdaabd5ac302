"""Ways to tell somebody: `--notify https://…`, `slack:https://…`, `cmd:…`, `mailto:a@b`. One function a way.

Nothing that is told may delay or end a job: each way has a time limit, errors are said once and without the address, which may hold a secret.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence

from phalanx.notify.notice import Notice

_LIMIT_S = 10.0
_SLACK = "hooks.slack.com"
Send = Callable[[Notice], None]


class ChannelError(ValueError):
    """A way that nobody knows; the message says which there are."""


def channel_of(spec: str, variables: Mapping[str, str] = os.environ) -> tuple[str, Send]:
    """What a `--notify` names, as a name that may be printed and a function. Raises ChannelError."""
    kind, _, rest = spec.partition(":")
    if kind in ("http", "https") or (kind == "slack" and rest.startswith(("http://", "https://"))):
        from urllib.parse import urlsplit

        url = rest if kind == "slack" else spec
        host = urlsplit(url).hostname
        if not host:
            raise ChannelError(f"--notify {kind}:…: the address names no host")
        is_slack = kind == "slack" or host == _SLACK
        return f"{'Slack' if is_slack else 'webhook'} at {host}", lambda notice: _post(url, notice, is_slack)
    if kind == "cmd" and rest.strip():
        return f"command {rest.split()[0]}", lambda notice: _command(rest, notice)
    if kind == "mailto" and "@" in rest:
        return f"mail to {rest}", lambda notice: _mail(rest, notice, variables)
    raise ChannelError(
        f"--notify {kind}: give https://… (JSON), slack:https://…, cmd:COMMAND (JSON on its standard input) or mailto:USER@HOST"
    )


def _post(url: str, notice: Notice, is_slack: bool) -> None:
    import urllib.request  # slow to load; most jobs notify nobody

    body = {"text": _as_slack(notice)} if is_slack else notice.document()
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json", "User-Agent": "phalanx"}
    )
    with urllib.request.urlopen(request, timeout=_LIMIT_S) as answer:
        answer.read(1 << 16)


def _as_slack(notice: Notice) -> str:
    """Slack's own marks are taken out of what the job said, so that nobody is called by it."""
    lines = [f"*{notice.headline}*", f"```{notice.text}```", *([f"bundle: `{notice.bundle}`"] if notice.bundle else [])]
    return "\n".join(lines).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _command(command: str, notice: Notice) -> None:
    """By the shell, as the user wrote it; what the job said reaches it as data only."""
    document = json.dumps(notice.document())
    variables = {**os.environ, "PHALANX": "0", "PHALANX_HEADLINE": notice.headline, "PHALANX_BUNDLE": notice.bundle}
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        input=document.encode(),
        env=variables,
        capture_output=True,
        timeout=_LIMIT_S,
        check=False,
        start_new_session=True,
    )
    if done.returncode:
        raise OSError(f"status {done.returncode}: {done.stderr.decode('utf-8', 'replace').strip()[-200:]}")


def _mail(address: str, notice: Notice, variables: Mapping[str, str]) -> None:
    """By the server that PHALANX_SMTP names (host:port), else by the machine's own sendmail."""
    import smtplib
    from email.message import EmailMessage

    message = EmailMessage()
    message["Subject"] = f"phalanx: {notice.headline}".replace("\n", " ")[:200]
    message["From"] = variables.get("PHALANX_MAIL_FROM") or f"phalanx@{socket.gethostname()}"
    message["To"] = address
    message.set_content(
        f"{notice.text}\n\njob: {notice.job}\n" + (f"bundle: {notice.bundle}\n" if notice.bundle else "")
    )
    if server := variables.get("PHALANX_SMTP"):
        host, _, port = server.partition(":")
        with smtplib.SMTP(host, int(port or 25), timeout=_LIMIT_S) as line:
            line.send_message(message)
        return
    program = shutil.which("sendmail", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/lib"]))
    if program is None:
        raise OSError("there is no sendmail here; name a server by PHALANX_SMTP=host:port")
    subprocess.run([program, "-t", "-i"], input=bytes(message), timeout=_LIMIT_S, check=True, capture_output=True)


def send_all(channels: Sequence[tuple[str, Send]], notice: Notice, say: Callable[[str], None]) -> None:
    """Each way in turn; one that fails is said, and the rest go on."""
    for name, send in channels:
        try:
            send(notice)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
            say(f"could not notify by {name}: {type(error).__name__}: {str(reason)[:200]}")

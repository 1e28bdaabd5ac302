"""Takes the recording machine out of recorded logs: its folders, its virtual environment, its host name."""

from __future__ import annotations

import re
import socket
from pathlib import Path

JOB = "/home/user/job"
HOME = "/home/user"
VENV = "/opt/venv"
TEMPORARY = "/var/tmp"
HOST = "node0"

# pip names the recording machine's package sources; another machine has others
_PIP_SOURCES = re.compile(r"^\s*(Looking in (indexes|links): |WARNING: Location 'file:).*\n?", re.MULTILINE)
# compiled into what pip built: the folder of its build
_PIP_BUILDS = re.compile(r"/tmp/(pip-(?:wheel|install)-)\w+/")


class Sanitiser:
    """Replaces what belongs to the recording machine by what a reader's machine could have.

    `/scratch/x1/job/train.py` becomes `/home/user/job/train.py`, `host : myhost` becomes `host : node0`.
    """

    def __init__(self, scratch: Path, venv: Path | None, host: str | None = None) -> None:
        pairs: list[tuple[str, str]] = []
        for root in _spellings(scratch):
            pairs += [(f"{root}/job", JOB), (f"{root}/tmp", TEMPORARY), (f"{root}/venv", VENV), (root, HOME)]
        if venv is not None:
            for root in _spellings(venv):
                pairs.append((root, VENV))
            base = _base_of(venv)
            if base is not None and str(base) != "/usr":
                pairs += [(root, "/usr") for root in _spellings(base)]
        pairs.append((str(Path.home()), HOME))
        # longest first: a job folder may lie below the home folder
        self._paths = sorted(pairs, key=lambda pair: -len(pair[0]))
        name = host if host is not None else socket.gethostname()
        # the name stands alone, in brackets, before a port, or in torchrun's `<host>_<pid>_<n>`; a short
        # host name inside another word, path or dotted name is left alone
        self._host = re.compile(rf"(?<![\w./-]){re.escape(name)}(?=\.localdomain|_\d|[\s:\]),;'\"]|$)")

    def clean(self, text: str) -> str:
        for path, instead in self._paths:
            text = text.replace(path, instead)
        text = self._host.sub(HOST, text)
        text = _PIP_BUILDS.sub(rf"{TEMPORARY}/\1x/", text)
        return _PIP_SOURCES.sub("", text)

    def clean_file(self, file: Path) -> None:
        """Rewrite a file in place; bytes that are not UTF-8 and carriage returns stay as they are."""
        with file.open(encoding="utf-8", errors="surrogateescape", newline="") as stream:
            text = stream.read()
        with file.open("w", encoding="utf-8", errors="surrogateescape", newline="") as stream:
            stream.write(self.clean(text))


def _spellings(path: Path) -> list[str]:
    """A path as given and with its links resolved; the root folder is never replaced."""
    return [text for text in dict.fromkeys((str(path), str(path.resolve()))) if text != "/"]


def _base_of(venv: Path) -> Path | None:
    """The Python that a virtual environment was made from: tracebacks name its standard library."""
    config = venv / "pyvenv.cfg"
    if not config.is_file():
        return None
    for line in config.read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "home":
            return Path(value.strip()).parent
    return None

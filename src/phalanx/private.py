"""Makes files and folders that only their owner can read, whatever the umask, and shares them where that is wanted."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TextIO

FOLDER, FILE = 0o700, 0o600


def make_folder(path: Path, exist_ok: bool = True) -> None:
    """Make a folder, and what is missing above it; the folder itself is private even if it was there before. Raises OSError."""
    path.mkdir(mode=FOLDER, parents=True, exist_ok=exist_ok)
    if path.stat().st_uid == os.geteuid():
        path.chmod(FOLDER)


def opener(path: str, flags: int) -> int:
    """For `open`: a file that is made new is private."""
    return os.open(path, flags, FILE)


def open_new(path: Path) -> TextIO:
    """A text file to write into; one that was there keeps its mode. Raises OSError."""
    return open(path, "w", encoding="utf-8", errors="replace", opener=opener)


def write_text(path: Path, text: str) -> None:
    """Write a whole file. Raises OSError."""
    with open_new(path) as file:
        file.write(text)


def write_bytes(path: Path, data: bytes) -> None:
    """Write a whole file. Raises OSError."""
    with open(path, "wb", opener=opener) as file:
        file.write(data)


def make_private(folder: Path) -> None:
    """Close a tree to everybody else: what libraries and other programs wrote into it, too."""
    _set_modes(folder, FOLDER, FILE)


def share(folder: Path) -> None:
    """Open a tree to whom the umask would have let in."""
    mask = os.umask(0o077)
    os.umask(mask)
    _set_modes(folder, 0o777 & ~mask, 0o666 & ~mask)


def _set_modes(folder: Path, for_folders: int, for_files: int) -> None:
    for place, folders, files in os.walk(folder):  # does not follow links
        with contextlib.suppress(OSError):
            Path(place).chmod(for_folders)
        for name in files:
            path = Path(place, name)
            with contextlib.suppress(OSError):
                if not path.is_symlink():
                    path.chmod(for_files)
        folders[:] = [name for name in folders if not Path(place, name).is_symlink()]

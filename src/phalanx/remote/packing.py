"""Packs the project's files as they are at submission, without what .gitignore leaves out, and unpacks them safely."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

MOST_BYTES = 512 << 20
MOST_FILES = 50_000
# Never wanted on another machine, whatever .gitignore says.
_NEVER = {".git", ".hg", ".svn", "__pycache__", "phalanx-runs", ".ipynb_checkpoints", "node_modules"}


class PackingError(Exception):
    """The project cannot be packed or unpacked; the message says what to change."""


def project_files(root: Path) -> Iterator[Path]:
    """The files below a folder, relative to it, that are not ignored; environments and repositories are left out."""
    yield from _walk(root, PurePosixPath(), [])


def _walk(root: Path, below: PurePosixPath, specs: list[tuple[PurePosixPath, GitIgnoreSpec]]) -> Iterator[Path]:
    folder = root / below
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return  # not ours to read: then nobody here could have used it
    rules = folder / ".gitignore"
    if rules.is_file():
        from pathspec import GitIgnoreSpec  # slow to load, and agents never pack

        lines = rules.read_text(encoding="utf-8", errors="replace").splitlines()
        specs = [*specs, (below, GitIgnoreSpec.from_lines(lines))]
    for entry in entries:
        path = below / entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name in _NEVER or _is_ignored(path, is_folder, specs):
            continue
        if is_folder:
            if not (root / path / "pyvenv.cfg").exists():
                yield from _walk(root, path, specs)
        elif entry.is_file():  # also where a link points to a file; sockets and pipes are left out
            yield Path(path)


def _is_ignored(path: PurePosixPath, is_folder: bool, specs: list[tuple[PurePosixPath, GitIgnoreSpec]]) -> bool:
    """The innermost .gitignore that says anything of it decides, as for git."""
    for below, spec in reversed(specs):
        name = str(path.relative_to(below)) + ("/" if is_folder else "")
        include = spec.check_file(name).include
        if include is not None:
            return include
    return False


def pack(root: Path, target: Path) -> int:
    """Write the project into an archive; returns how many files it has. Raises PackingError."""
    total = count = 0
    try:
        with tarfile.open(target, "w", format=tarfile.PAX_FORMAT, dereference=True) as archive:
            for path in project_files(root):
                size = (root / path).stat().st_size
                total, count = total + size, count + 1
                if total > MOST_BYTES or count > MOST_FILES:
                    raise PackingError(
                        f"the project in {root} is too large to send: more than {MOST_BYTES >> 20} MB or {MOST_FILES} files "
                        f"(at {path}). Leave data out by .gitignore, or start from the project's own folder"
                    )
                archive.add(root / path, arcname=str(path), recursive=False)
    except OSError as error:
        raise PackingError(f"the project in {root} cannot be packed: {error}") from error
    return count


def unpack(archive: Path, folder: Path) -> None:
    """Unpack plain files below a folder and nowhere else. Raises PackingError."""
    if not hasattr(tarfile, "data_filter"):
        raise PackingError("this Python cannot unpack safely; it takes 3.11.4 or later")
    try:
        with tarfile.open(archive, "r:") as packed:
            for member in packed:
                safe_path(member.name)
                if not member.isreg():
                    raise PackingError(f"{member.name}: not a plain file")
                packed.extract(member, folder, filter="data")
    except (tarfile.TarError, OSError) as error:
        raise PackingError(f"the project cannot be unpacked: {error}") from error


def safe_path(name: str) -> PurePosixPath:
    """A relative path that stays where it is put. Raises PackingError."""
    path = PurePosixPath(name)
    parts = path.parts
    if (
        not parts
        or path.is_absolute()
        or ".." in parts
        or "\0" in name
        or "\\" in name
        or any(len(p) > 200 for p in parts)
    ):
        raise PackingError(f"{name!r}: not a path that may be written")
    return path

"""Packs the project's files as they are at submission, without what .gitignore leaves out, and unpacks them safely."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from phalanx.remote.credentials import holds_key, is_credential, is_credential_folder

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

MOST_BYTES = 512 << 20
MOST_FILES = 50_000
# Never wanted on another machine, whatever .gitignore says.
_NEVER = {".git", ".hg", ".svn", "__pycache__", "phalanx-runs", ".ipynb_checkpoints", "node_modules"}


class PackingError(Exception):
    """The project cannot be packed or unpacked; the message says what to change."""


@dataclass(slots=True)
class Packed:
    """What travels with a job, and what was left out although nobody asked for it."""

    files: list[tuple[str, int]] = field(default_factory=list)  # name and bytes
    credentials: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)  # that lead out of the project

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(size for _, size in self.files)

    def summary(self) -> str:
        """One line for people: size, largest files, what was left out."""
        text = _bytes(self.size)
        if len(self.files) > 1:
            largest = sorted(self.files, key=lambda file: -file[1])[:3]
            text += f" (largest: {', '.join(f'{name} {_bytes(size)}' for name, size in largest)})"
        for what, names in (("credentials", self.credentials), ("links out of the project", self.links)):
            if names:
                more = f" and {len(names) - 3} more" if len(names) > 3 else ""
                text += f"; left out as {what}: {', '.join(names[:3])}{more}"
        return text


def _bytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 100_000 else f"{count / 1e3:.1f} kB"


def survey(root: Path) -> Packed:
    """What would travel. Credentials are left out, and so are links that lead out of the project. Raises PackingError."""
    packed, real, total = Packed(), root.resolve(), 0
    for path in _walk(root, PurePosixPath(), [], packed):
        whole = root / path
        if whole.is_symlink() and not whole.resolve().is_relative_to(real):
            packed.links.append(str(path))
        elif is_credential(path) or is_credential(whole.resolve().relative_to(real)) or holds_key(whole):
            packed.credentials.append(str(path))
        else:
            packed.files.append((str(path), whole.stat().st_size))
            total += packed.files[-1][1]
            if len(packed.files) > MOST_FILES or total > MOST_BYTES:
                raise PackingError(
                    f"the project in {root} is too large to send: more than {MOST_BYTES >> 20} MB or {MOST_FILES} files "
                    f"(at {path}). Leave data out by .gitignore, or start from the project's own folder"
                )
    return packed


def project_files(root: Path) -> Iterator[Path]:
    """The files below a folder, relative to it, that travel with a job. Raises PackingError."""
    return (Path(name) for name, _ in survey(root).files)


def _walk(
    root: Path, below: PurePosixPath, specs: list[tuple[PurePosixPath, GitIgnoreSpec]], packed: Packed
) -> Iterator[Path]:
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
        if is_folder and is_credential_folder(entry.name):
            packed.credentials.append(f"{path}/")
        elif is_folder:
            if not (root / path / "pyvenv.cfg").exists():
                yield from _walk(root, path, specs, packed)
        elif entry.is_symlink() and entry.is_dir():
            if not (root / path).resolve().is_relative_to(root.resolve()):
                packed.links.append(f"{path}/")
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


def pack(root: Path, target: Path) -> Packed:
    """Write the project into an archive; returns what is in it. Raises PackingError."""
    try:
        packed = survey(root)
        with tarfile.open(target, "w", format=tarfile.PAX_FORMAT, dereference=True) as archive:
            for name, _ in packed.files:
                archive.add(root / name, arcname=name, recursive=False)
    except OSError as error:
        raise PackingError(f"the project in {root} cannot be packed: {error}") from error
    return packed


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

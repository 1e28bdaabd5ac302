"""Opens a dump of any packing as a stream of bytes: plain, zstd, gzip, bzip2, xz, 7z. Memory does not grow with it."""

import bz2
import gzip
import lzma
import queue
import threading
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from phalanx.study.errors import StudyError, need

BLOCK = 4 << 20
_QUEUED = 4
_MAGIC = {
    b"\x28\xb5\x2f\xfd": "zst",
    b"\x1f\x8b": "gz",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
    b"7z\xbc\xaf\x27\x1c": "7z",
}
_POSTS = "posts.xml"


def packing_of(path: Path) -> str:
    """How a file is packed, told by its first bytes; empty for plain text."""
    try:
        with path.open("rb") as file:
            head = file.read(8)
    except OSError as error:
        raise StudyError(
            f"{path}: cannot be read ({error.strerror}). Give a dump's Posts.xml or its archive."
        ) from error
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "")


def read_blocks(path: Path) -> Iterator[bytes]:
    """The unpacked bytes in blocks. Unpacking runs in a thread of its own, a few blocks ahead of who reads them."""
    packing = packing_of(path)
    try:
        if packing == "7z":
            yield from _ahead(lambda put: _unpack_7z(path, put))
        else:
            yield from _ahead(lambda put: _unpack(path, packing, put))
    except (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError) as error:
        raise StudyError(
            f"{path}: the archive is damaged or cut off ({error}). What was read before it is kept."
        ) from error


def _unpack(path: Path, packing: str, put: Any) -> None:
    with _open(path, packing) as stream:
        while block := stream.read(BLOCK):
            put(block)


def _open(path: Path, packing: str) -> Any:
    if packing == "zst":
        import zstandard

        # Dumps are packed with long windows; the limit keeps a hostile file from asking for all memory.
        unpacker = zstandard.ZstdDecompressor(max_window_size=1 << 31)
        return unpacker.stream_reader(path.open("rb"), read_size=1 << 20, read_across_frames=True, closefd=True)
    if packing == "gz":
        return gzip.open(path, "rb")
    if packing == "bz2":
        return bz2.open(path, "rb")
    if packing == "xz":
        return lzma.open(path, "rb")
    return path.open("rb")


class _StopError(Exception):
    """The reader went away: unpacking ends."""


def _ahead(work: Any) -> Iterator[bytes]:
    """Run `work(put)` in a thread; yield what it puts, raise what it raises."""
    blocks: queue.Queue[bytes | BaseException | None] = queue.Queue(_QUEUED)
    stopped = threading.Event()

    def put(item: bytes | BaseException | None) -> None:
        while not stopped.is_set():
            try:
                blocks.put(item, timeout=0.2)
            except queue.Full:
                continue
            return
        raise _StopError

    def run() -> None:
        try:
            work(put)
            put(None)
        except _StopError:
            pass
        except BaseException as error:
            # Raised again where the blocks are read, if anybody still reads.
            with suppress(_StopError):
                put(error)

    thread = threading.Thread(target=run, name="unpacking", daemon=True)
    thread.start()
    try:
        while (item := blocks.get()) is not None:
            if isinstance(item, BaseException):
                raise _as_known(item)
            yield item
    finally:
        stopped.set()
        thread.join(timeout=10)


def _as_known(error: BaseException) -> BaseException:
    """Errors of the unpacking libraries as the few that are told to the user."""
    name = type(error).__module__.partition(".")[0]
    return OSError(f"{type(error).__name__}: {error}") if name in ("zstandard", "zstd", "py7zr", "_lzma") else error


def _unpack_7z(path: Path, put: Any) -> None:
    py7zr = need("py7zr", "reading .7z")
    io = need("py7zr.io", "reading .7z")

    def write(_: Any, data: bytes) -> int:
        put(bytes(data))
        return len(data)

    # py7zr pushes what it unpacks into an object like a file; this one hands it on and keeps nothing.
    methods = {"write": write, "read": lambda *_: b"", "seek": lambda *_: 0, "flush": lambda _: None, "size": lambda _: 0, "close": lambda _: None}  # fmt: skip
    sink = type("Sink", (io.Py7zIO,), methods)
    factory = type("Sinks", (io.WriterFactory,), {"create": lambda *_: sink()})()
    with py7zr.SevenZipFile(path) as archive:
        names = [name for name in archive.getnames() if name.lower().endswith(_POSTS)] or archive.getnames()
        if len(names) != 1:
            raise StudyError(
                f"{path}: holds {len(names)} files and no single Posts.xml. Give the archive of the posts."
            )
        archive.extract(targets=names, factory=factory)

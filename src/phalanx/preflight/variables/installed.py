"""The names of variables in the libraries that are installed here: strings of their read-only data, kept in the cache.

Only asked for when a name is in doubt: reading libtorch takes most of a second.
"""

from __future__ import annotations

import json
import mmap
import re
import struct
import sys
from collections.abc import Iterable, Iterator
from functools import cache as once
from pathlib import Path

from phalanx import cache

# Below the folders of installed packages, and in the system's.
_PACKAGED = (
    "torch/lib/libtorch_cpu.so", "torch/lib/libtorch_cuda.so", "torch/lib/libtorch_python.so", "torch/lib/libc10.so",
    "nvidia/nccl/lib/libnccl.so.2", "horovod/*/mpi_lib*.so", "tensorflow/libtensorflow_framework.so.2", "tensorflow/libtensorflow_cc.so.2",
)  # fmt: skip
_SYSTEM = ("libnccl.so.2*", "libucp.so.0", "libucs.so.0", "libuct.so.0", "libmpi.so.40", "libgloo.so*")
_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/local/lib")
_NAME = re.compile(
    rb"(?<![A-Za-z0-9_])(?:NCCL|GLOO|TORCH|TORCHELASTIC|PYTORCH|UCX|TF|HOROVOD|OMPI|PMIX|PRTE|TP)_[A-Z0-9_]{2,60}(?=\0)"
)
_MOST_BYTES = 512 << 20
_KIND = "variables"


@once
def installed_names() -> frozenset[str]:
    """All names found; empty where no library is installed or none can be read."""
    found: set[str] = set()
    left = _MOST_BYTES
    for path in _libraries(sys.path):
        names, size = _names_in(path, left)
        found |= names
        left -= size
        if left <= 0:
            break
    return frozenset(found)


def _libraries(folders: Iterable[str]) -> Iterator[Path]:
    for folder in dict.fromkeys(folders):
        if folder.endswith(("site-packages", "dist-packages")):
            for pattern in _PACKAGED:
                yield from sorted(Path(folder).glob(pattern))
    for folder in _FOLDERS:
        for pattern in _SYSTEM:
            yield from sorted(Path(folder).glob(pattern))


def _names_in(path: Path, most: int) -> tuple[set[str], int]:
    """Names, and how many bytes were searched; what was searched before is remembered by size and time of the file."""
    try:
        status = path.stat()
        key = cache.key_of([str(path), str(status.st_size), str(status.st_mtime_ns), _NAME.pattern])
        if (kept := cache.load(_KIND, key)) is not None:
            return set(json.loads(kept)), 0
        found: set[bytes] = set()
        searched = 0
        for piece in read_only_data(path):
            found.update(_NAME.findall(piece[: most - searched]))
            searched += len(piece)
            if searched >= most:
                break
        names = sorted(name.decode("ascii") for name in found)
        cache.save(_KIND, key, json.dumps(names).encode())
        return set(names), searched
    except (OSError, ValueError, struct.error):
        return set(), 0


def read_only_data(path: Path) -> Iterator[bytes]:
    """The sections of an ELF file (64 bits, little end first) that hold its strings; nothing of any other file."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as image:
        if image[:6] != b"\x7fELF\x02\x01":
            return
        (table,) = struct.unpack_from("<Q", image, 0x28)
        size, count, names_at = struct.unpack_from("<HHH", image, 0x3A)
        names = struct.unpack_from("<IIQQQQ", image, table + names_at * size)[4]
        for number in range(count):
            name, _kind, _flags, _address, offset, length = struct.unpack_from("<IIQQQQ", image, table + number * size)
            if image[names + name : names + name + 7] == b".rodata":
                yield image[offset : offset + length]

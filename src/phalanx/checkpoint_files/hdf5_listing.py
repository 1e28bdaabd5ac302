"""Lists the datasets of an HDF5 file as JSON: run as a process of its own, because the HDF5 library is C and the file may be anybody's.

python hdf5_listing.py FILE OFFSET LENGTH
"""

from __future__ import annotations

import json
import resource
import sys

MOST = 1_000_000
_MEMORY = 4 << 30
_SECONDS = 60


def main() -> None:
    """Print {"datasets": [[name, dtype, shape, offset, bytes], …], "attributes": {…}}; offset is null where values are in chunks."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    import h5py

    path, offset, length = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    found: list[list[object]] = []

    def visit(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset) and len(found) < MOST:
            place = item.id.get_offset()
            found.append([name, str(item.dtype), list(item.shape or ()), place, int(item.id.get_storage_size())])

    if offset:
        from phalanx.checkpoint_files.reading import Window

        with open(path, "rb") as file, h5py.File(Window(file, offset, length), "r") as opened:  # noqa: PTH123
            opened.visititems(visit)
            attributes = _attributes(opened)
    else:
        with h5py.File(path, "r", locking=False) as opened:
            opened.visititems(visit)
            attributes = _attributes(opened)
    sys.stdout.write(json.dumps({"datasets": found, "attributes": attributes}))


def _attributes(opened: object) -> dict[str, str]:
    return {str(name): str(value)[:80] for name, value in list(opened.attrs.items())[:50]}  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()

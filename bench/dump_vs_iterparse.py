"""The dump reader against a plain lxml loop over the same generated dump, in turns, on the same cores.

    python bench/dump_vs_iterparse.py --size 0.5 --rounds 3 [--packed]

Both must find the same questions. Printed are wall time, processor time (children included) and peak memory.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from make_dump import write_dump

TAGS = ("pytorch", "tensorflow", "keras", "horovod")
KEYWORDS = re.compile("distribut|multi.?gpu", re.IGNORECASE)


def with_lxml(path: Path) -> list[int]:
    """The loop that everybody writes, with its memory kept flat."""
    import zstandard
    from lxml import etree

    stream = (
        zstandard.ZstdDecompressor(max_window_size=1 << 31).stream_reader(path.open("rb"))
        if path.suffix == ".zst"
        else path.open("rb")
    )
    found = []
    for _, element in etree.iterparse(stream, tag="row", huge_tree=True):
        if element.get("PostTypeId") == "1":
            tags = set(re.findall(r"<([^>]+)>", element.get("Tags") or ""))
            if tags.intersection(TAGS) and (
                KEYWORDS.search(element.get("Title")) or KEYWORDS.search(element.get("Body"))
            ):
                found.append(int(element.get("Id")))
        element.clear()
        while element.getprevious() is not None:
            del element.getparent()[0]
    return found


def with_phalanx(path: Path, processes: int) -> list[int]:
    """The reader as `phalanx study collect --dump` uses it, store included."""
    from phalanx.study.collect.presets import Preset
    from phalanx.study.collect.store import Store
    from phalanx.study.dump.engines import on_processes
    from phalanx.study.dump.read import read_dump

    with tempfile.TemporaryDirectory() as folder, Store(Path(folder)) as store:
        read_dump(
            store, Preset("so", site="stackoverflow", tags=TAGS, keywords=KEYWORDS), path, on_processes(processes)
        )
        return sorted(post.number for post in store.posts())


def child(reader: str, path: Path, processes: int) -> None:
    found = with_lxml(path) if reader == "lxml" else with_phalanx(path, processes)
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(json.dumps({
        "found": len(found), "sum": sum(found), "cpu": own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime,
        "peak": max(own.ru_maxrss, children.ru_maxrss) // 1024,
    }))  # fmt: skip


def measure(reader: str, path: Path, processes: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--child", reader, "--path", str(path), "--processes", str(processes)]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=3600)
    wall = time.perf_counter() - start
    return {**json.loads(done.stdout), "wall": wall}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=float, default=0.5, help="of the dump, in GiB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--packed", action="store_true", help="pack it with zstd first")
    parser.add_argument("--child")
    parser.add_argument("--path", type=Path)
    given = parser.parse_args()
    if given.child:
        child(given.child, given.path, given.processes)
        return
    folder = Path(__file__).parent / "data"
    folder.mkdir(exist_ok=True)
    path = folder / f"posts-{given.size}.xml"
    if not path.exists():
        write_dump(path, int(given.size * (1 << 30)))
    if given.packed:
        import zstandard

        packed = path.with_suffix(".xml.zst")
        if not packed.exists():
            with path.open("rb") as source, packed.open("wb") as target:
                zstandard.ZstdCompressor().copy_stream(source, target)
        path = packed
    results: dict[str, list[dict[str, float]]] = {"lxml": [], "phalanx": []}
    for _ in range(given.rounds):
        for reader, runs in results.items():
            runs.append(measure(reader, path, given.processes))
    answers = {(run["found"], run["sum"]) for runs in results.values() for run in runs}
    print(
        f"{path.name}, {path.stat().st_size / (1 << 30):.2f} GiB; {given.processes} processes; median of {given.rounds} rounds, in turns; {'same questions found' if len(answers) == 1 else f'DIFFERENT: {answers}'}"
    )
    middle = {
        reader: {key: statistics.median(run[key] for run in runs) for key in ("wall", "cpu", "peak")}
        for reader, runs in results.items()
    }
    for reader, values in middle.items():
        print(
            f"{reader:>8}: {values['wall']:7.2f} s wall, {values['cpu']:7.2f} s processor, peak {values['peak']:.0f} MB a process"
        )
    print(
        f"   ratio: {middle['lxml']['wall'] / middle['phalanx']['wall']:.1f} in wall time, {middle['lxml']['cpu'] / middle['phalanx']['cpu']:.1f} in processor time"
    )


if __name__ == "__main__":
    main()

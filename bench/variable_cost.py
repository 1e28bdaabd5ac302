"""What `PHALANX=1` costs: the start of an interpreter without the variable, and a watched torchrun job's processor time.

python bench/variable_cost.py [--ranks 2] [--seconds 40] [--starts 40]

The start is measured in one process, by handing the package's `.pth` file to `site` again and again, and beside it by whole starts in
turns. The job is a DDP job under torchrun; the kernel counts the processor time of its ranks, of our threads inside them, and of the companion.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import site
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

SOURCE = Path(__file__).parent.parent / "src"
JOB = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(4)]))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
batch = torch.randn(32, 256)
while True:
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
"""


def prepared(folder: Path) -> dict[str, str]:
    """An environment whose interpreters read the `.pth` file, whatever is installed in it."""
    (folder / "phalanx_gate.pth").write_bytes((SOURCE / "phalanx_gate.pth").read_bytes())
    (folder / "sitecustomize.py").write_text(
        f"import site, sys\nsys.path.append({str(SOURCE)!r})\nsite.addsitedir({str(folder)!r})\n"
    )
    return {**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}


def price_of_file(folder: Path, times: int = 2000) -> float:
    """Seconds that reading the file takes where the variable is not set."""
    prepared(folder)
    os.environ.pop("PHALANX", None)
    known = {str(folder)}
    began = time.process_time()
    for _ in range(times):
        site.addpackage(str(folder), "phalanx_gate.pth", known)
    return (time.process_time() - began) / times


def start(variables: dict[str, str]) -> float:
    """Processor time of one bare interpreter."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", ""], env=variables, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ran(pid: int, task: str = "") -> float:
    """Processor seconds of a thread, or of a whole process."""
    if task:
        return int(Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0]) / 1e9
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ours_in(pid: int) -> float:
    """Of the threads that are ours."""
    found = 0.0
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().startswith("phalanx"):
            found += ran(pid, task.name)
    return found


def job(folder: Path, ranks: int, seconds: float) -> None:
    """Run the job, and print shares."""
    (folder / "train.py").write_text(JOB)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks)]
    command += ["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "train.py"]
    environment = {**prepared(folder), "PHALANX": "1"}
    launcher = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.DEVNULL)
    try:
        while len(beats := list(folder.glob("phalanx-runs/*/attempt0/rank*/versions.json"))) < ranks:
            time.sleep(0.5)
        (node,) = folder.glob("phalanx-runs/*/nodes/*.json")
        companion = json.loads(node.read_text())["pid"]
        pids = [json.loads(beat.with_name("process.json").read_text())["pid"] for beat in beats]
        time.sleep(5)
        first = [sum(map(ran, pids)), sum(map(threads_of, pids)), ran(companion)]
        time.sleep(seconds)
        last = [sum(map(ran, pids)), sum(map(threads_of, pids)), ran(companion)]
        whole, inside, beside = (after - before for before, after in zip(first, last, strict=True))
        print(f"{ranks} ranks, {seconds:.0f} s: ranks {whole:.1f} s of processor time")
        print(f"  inside   {100 * inside / whole:.2f} %  ({1e6 * inside / seconds / ranks:.0f} µs a second and rank)")
        print(f"  beside   {100 * beside / whole:.2f} %  (the companion, {memory_of(companion) >> 20} MB)")
    finally:
        launcher.terminate()
        launcher.wait()


def threads_of(pid: int) -> float:
    """Python does not name threads for the kernel before 3.14: the watch's is told by its number, which the rank knows."""
    from phalanx.run.watch.asking import ask_inside

    answer = ask_inside(pid, "who") or {}
    return sum(ran(pid, str(task)) for task in answer.get("threads_of_ours", ())) or ours_in(pid)


def memory_of(pid: int) -> int:
    """Resident bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else "")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--starts", type=int, default=40)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        print(f"the .pth file without the variable: {1e6 * price_of_file(Path(name)):.0f} µs of processor time")
    with tempfile.TemporaryDirectory() as name:
        variables = prepared(Path(name))
        bare = {**variables, "PHALANX": "0"}
        pairs = [(start(bare), start({**variables, "PHALANX": "1"})) for _ in range(given.starts)]
        off, on = median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)
        print(f"start of an interpreter: {1e3 * off:.1f} ms, with PHALANX=1 {1e3 * on:.1f} ms of processor time")
    with tempfile.TemporaryDirectory() as name:
        job(Path(name), given.ranks, given.seconds)


if __name__ == "__main__":
    main()

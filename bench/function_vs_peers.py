"""What a function call on several workers costs, beside its peers: time to the first all-reduce, log lines, a large result.

    python bench/function_vs_peers.py start [--rounds 4] [--workers 4]     against torchrun, torchrunx and Ray Train, in turns
    python bench/function_vs_peers.py lines [--ranks 16] [--lines 20000]   output through the driver, counted at the end
    python bench/function_vs_peers.py result [--megabytes 1000]            a large result, and the memory that it takes

Needs PyTorch; torchrunx and ray[train] where they are to be compared (those that are missing are left out).
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
CONTENDERS = ("phalanx", "torchrun", "torchrunx", "ray")


def first_all_reduce(folder: str) -> float:
    """What every worker of every contender runs; leaves the time of its first all-reduce in a file."""
    import torch
    import torch.distributed as dist

    if not dist.is_initialized():
        dist.init_process_group("gloo")
    total = torch.ones(1)
    dist.all_reduce(total)
    Path(folder, f"rank{dist.get_rank()}").write_text(repr(time.time()))
    dist.barrier()
    return total.item()


def call_phalanx(workers: int, folder: str) -> float:
    import phalanx

    task = phalanx.function(workers=workers, framework="torch")(first_all_reduce)
    began = time.time()
    assert task(folder) == [float(workers)] * workers
    return began


def call_torchrun(workers: int, folder: str) -> float:
    began = time.time()
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={workers}"]
    subprocess.run([*command, __file__, "worker", folder], check=True, timeout=300, stderr=subprocess.DEVNULL)
    return began


def call_torchrunx(workers: int, folder: str) -> float:
    import torchrunx  # type: ignore[import-not-found]

    began = time.time()
    torchrunx.Launcher(hostnames=["localhost"], workers_per_host=workers, backend="gloo").run(first_all_reduce, folder)
    return began


def call_ray(workers: int, folder: str) -> float:
    """Its cluster is up before the clock starts."""
    import ray
    from ray.train import ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    ray.init(address="local", num_cpus=workers + 1, include_dashboard=False, log_to_driver=False)
    began = time.time()
    TorchTrainer(
        lambda config: first_all_reduce(config["folder"]),
        train_loop_config={"folder": folder},
        scaling_config=ScalingConfig(num_workers=workers, resources_per_worker={"CPU": 1}),
        torch_config=TorchConfig(backend="gloo"),
    ).fit()
    ray.shutdown()
    return began


def once(contender: str, workers: int) -> float | None:
    """Seconds from the call until all workers have had their first all-reduce; None if it did not work."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "RAY_TRAIN_V2_ENABLED": "1", "RAY_DEDUP_LOGS": "0"}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
        done = subprocess.run(
            [sys.executable, __file__, "contender", contender, str(workers), folder],
            env=environment, cwd=folder, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        ranks = [Path(folder, f"rank{rank}") for rank in range(workers)]
        if done.returncode or not all(path.exists() for path in ranks):
            print(f"{contender} failed: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
            return None
        began = float(done.stdout.strip().splitlines()[-1])
        return max(float(path.read_text()) for path in ranks) - began


def compare_starts(rounds: int, workers: int) -> None:
    wanted = [name for name in CONTENDERS if name in ("phalanx", "torchrun") or importlib.util.find_spec(name)]
    seen: dict[str, list[float]] = {name: [] for name in wanted}
    for number in range(rounds):
        for name in wanted[number % len(wanted) :] + wanted[: number % len(wanted)]:
            if (seconds := once(name, workers)) is not None:
                seen[name].append(seconds)
                print(f"round {number + 1}: {name:10} {seconds:6.2f} s", flush=True)
    print(f"\nfrom the call to the first all-reduce of {workers} workers, load {os.getloadavg()[0]:.1f}")
    for name, times in seen.items():
        if times:
            ratio = statistics.median(times) / statistics.median(seen["phalanx"])
            spread = f"{min(times):.2f} to {max(times):.2f}"
            print(
                f"{name:10} median {statistics.median(times):6.2f} s of {len(times)} ({spread}), {ratio:.2f} times phalanx's"
            )


def shout(lines: int, folder: str) -> tuple[float, float]:
    """A rank that prints as fast as it can, from the moment when all of them are there; returns when that was."""
    rank, size = os.environ["RANK"], int(os.environ["WORLD_SIZE"])
    Path(folder, f"here{rank}").touch()
    while len(list(Path(folder).glob("here*"))) < size:
        time.sleep(0.02)
    began = time.time()
    for number in range(lines):
        print(f"rank {rank} step {number} loss {number * 0.001:.4f} and some more words to make a usual line of a log")
    sys.stdout.flush()
    return began, time.time()


def count_lines(ranks: int, lines: int) -> None:
    import phalanx

    folder = tempfile.mkdtemp()
    os.chdir(folder)
    task = phalanx.function(workers=ranks, framework="none")(shout)
    before, began = _cpu(), time.monotonic()
    call = task.submit(lines, folder)
    times = call.results()
    seconds, cpu = time.monotonic() - began, _cpu() - before
    printing = max(last for _, last in times) - min(first for first, _ in times)
    counts = [sum(1 for _ in call.logs(rank)) for rank in range(ranks)]
    ordered = all(_is_ordered(call.logs(rank)) for rank in range(ranks))
    total = sum(counts)
    print(f"{ranks} ranks, {total} lines of {ranks * lines} arrived, order kept: {ordered}")
    print(
        f"{total / printing:.0f} lines a second while ranks printed ({printing:.1f} s), {total / seconds:.0f} with start and end; "
        f"{cpu:.1f} s of processor time for driver, agent and ranks"
    )


def _is_ordered(lines: object) -> bool:
    numbers = [int(line.split()[3]) for line in lines]  # type: ignore[attr-defined]
    return numbers == sorted(numbers)


def large_result(megabytes: int) -> None:
    import psutil

    import phalanx

    os.chdir(tempfile.mkdtemp())

    def make(count: int) -> bytes:
        return os.urandom(1 << 20) * count if os.environ["RANK"] == "0" else b""

    call = phalanx.function(workers=2, framework="none")(make).submit(megabytes)
    agent_peak = 0
    stop = threading.Event()

    def watch() -> None:
        nonlocal agent_peak
        while not stop.wait(0.05):
            for child in psutil.Process().children(recursive=True):
                try:
                    if "phalanx.remote.agent" in " ".join(child.cmdline()):
                        agent_peak = max(agent_peak, child.memory_info().rss)
                except psutil.Error:
                    continue

    threading.Thread(target=watch, daemon=True).start()
    call.wait()
    driver_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    began = time.monotonic()
    found = call.results()
    stop.set()
    driver_after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(
        f"{len(found[0]) >> 20} MB came back; driver's peak {driver_before} MB while it arrived, {driver_after} MB with the value loaded;"
    )
    print(f"agent's peak {agent_peak >> 20} MB; loading took {time.monotonic() - began:.1f} s")


def _cpu() -> float:
    own, below = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + below.ru_utime + below.ru_stime


def main() -> None:
    if sys.argv[1:2] == ["worker"]:
        first_all_reduce(sys.argv[2])
        return
    if sys.argv[1:2] == ["contender"]:
        print(repr(globals()[f"call_{sys.argv[2]}"](int(sys.argv[3]), sys.argv[4])))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("start", "lines", "result"))
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--ranks", type=int, default=16)
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--megabytes", type=int, default=1000)
    options = parser.parse_args()
    match options.what:
        case "start":
            compare_starts(options.rounds, options.workers)
        case "lines":
            count_lines(options.ranks, options.lines)
        case "result":
            large_result(options.megabytes)


if __name__ == "__main__":
    main()

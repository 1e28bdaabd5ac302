"""A healthy job of some ranks with one long phase in it, which a watch may take for a stall: `phases.py NAME SECONDS [PORT]`.

Run as a script by the tests; by hand, for as long as is wanted: `phalanx run -n 3 tests/run/watch/phases.py counting 60`.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time

name, seconds = sys.argv[1], float(sys.argv[2])
rank = int(os.environ["RANK"])
BUSY = "import sys, time\nend = time.monotonic() + float(sys.argv[1])\nwhile time.monotonic() < end: pass"


def count(end):
    total = number = 0
    while time.monotonic() < end:
        number += 1
        total += number % 7
    return total


def download(end):
    with socket.create_connection(("127.0.0.1", int(sys.argv[3]))) as line:
        while line.recv(65536) and time.monotonic() < end:
            pass


def upload():
    import threading

    threading.Event().wait(seconds)


def phase(dist, torch):
    """What one rank does while the others wait for it at a barrier; or all of them, each by itself."""
    end = time.monotonic() + seconds
    if name == "asleep":
        time.sleep(seconds)
    elif name == "rhythm":
        while time.monotonic() < end:
            time.sleep(1.2)
            dist.all_reduce(torch.ones(2))
    elif rank == 0:
        if name == "evaluation":
            model = torch.nn.Linear(256, 256)
            while time.monotonic() < end:
                model(torch.randn(64, 256)).sum().item()
        elif name == "counting":
            count(end)
        elif name == "lock":  # the interpreter's, which sum() keeps
            began = time.monotonic()
            sum(range(3_000_000))
            sum(range(int(3_000_000 * seconds / (time.monotonic() - began))))
        elif name == "download":
            download(end)
        elif name == "checkpoint":
            with tempfile.TemporaryFile() as file:
                while time.monotonic() < end:
                    file.write(bytes(1 << 20))
                    os.fsync(file.fileno())
                    time.sleep(0.3)
        elif name == "child":
            subprocess.run([sys.executable, "-c", BUSY, str(seconds)], check=True)


def main():
    if name == "before":
        download(time.monotonic() + (seconds if rank == 0 else 0))
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    for step in range(100):
        dist.all_reduce(torch.ones(2))
        print("step", step, flush=True)
        time.sleep(0.03)
    phase(dist, torch)
    dist.barrier()
    for step in range(100, 120):
        dist.all_reduce(torch.ones(2))
        print("step", step, flush=True)
    dist.destroy_process_group()
    if name == "last" and rank == 0:  # the others have left
        upload()


main()

"""More evidence of a real job that hangs: its output, its flight recorders by the debug pipe, and NCCL RAS, spoken by a stand-in."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from phalanx.diagnosis import diagnose_paths

from ...needs import needs_torch
from ..jobs import attach, free_port, job, wait_until_ready

pytestmark = [pytest.mark.job, needs_torch, pytest.mark.timeout(300)]
REPORT = """\
NCCL version 2.28.3 compiled with CUDA 13.0

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      1          2            1          2        2

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         1         2         2         2   RUNNING  MISMATCH

Warnings
========

#0-0 (5e7a2c1f9b3d8e04) MISMATCH
  Communicator ranks have different AllReduce operation counts
  1 ranks have launched up to operation 5
  Rank 1 has launched up to operation 4 -- GPU 1 managed by process 41207 on node 127.0.0.1
"""
# What ProcessGroupNCCL does where there is one: poll the pipe, write the recorder's pickle. The recorder is Gloo's own.
SCRIPT = """\
import os, socket, sys, threading, time
import torch, torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace

rank = int(os.environ["RANK"])
pipe = f"{os.environ['TORCH_NCCL_DEBUG_INFO_PIPE_FILE']}{rank}.pipe"
os.mkfifo(pipe)


def poll():
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    while not os.read(reader, 128):
        time.sleep(0.05)
    with open(f"{os.environ['TORCH_NCCL_DEBUG_INFO_TEMP_FILE']}{rank}", "wb") as file:
        file.write(_dump_fr_trace())


def ras():
    server = socket.create_server(("127.0.0.1", int(os.environ["NCCL_RAS_ADDR"].split(":")[1])))
    while True:
        line, _ = server.accept()
        with line, line.makefile("rwb") as stream:
            for asked in stream:
                word = asked.split()[0].upper()
                answer = {b"CLIENT": b"SERVER PROTOCOL 2\\n", b"TIMEOUT": b"OK\\n", b"VERBOSE": REPORT.encode()}[word]
                stream.write(answer)
                stream.flush()
                if word == b"VERBOSE":
                    break


threading.Thread(target=poll, daemon=True).start()
if rank == 0:
    threading.Thread(target=ras, daemon=True).start()
dist.init_process_group("gloo")


def evaluate():
    time.sleep(600)


for step in range(100):
    print(f"step {step} loss {1 / (step + 1):.3f} token=hf_abcdefghijklmnopqrstuvwxyz0123456789", flush=True)
    if step == 4:
        open(f"ready{rank}", "w").close()
        if rank == 1:
            evaluate()
    dist.all_reduce(torch.ones(2))
"""


def test_what_else_a_hung_job_tells(tmp_path: Path) -> None:
    port = free_port()
    shared = {
        "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()),
        "NCCL_RAS_ADDR": f"127.0.0.1:{port}", "TORCH_FR_BUFFER_SIZE": "200",
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": str(tmp_path / "trace_"), "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": str(tmp_path / "ask_"),
    }  # fmt: skip
    (tmp_path / "script.py").write_text(f"REPORT = {REPORT!r}\n" + SCRIPT)
    ranks = [{**shared, "RANK": str(rank)} for rank in range(2)]
    with job(tmp_path, [[sys.executable, "script.py"]] * 2, ranks) as pids:
        wait_until_ready(tmp_path, range(2))
        _, status, err = attach(str(pids[0]))
        assert status == 1, err
        assert "ranks 0, 1: a debug pipe is there; --dump asks" in err
        assert not (tmp_path / "trace_0").exists()  # nobody was asked
        report, status, err = attach(str(pids[0]), "--dump", "--bundle", str(tmp_path / "kept"))
        assert status == 1, err
    assert report["verdict"]["culprit_ranks"] == [1]
    kept = tmp_path / "kept" / "attempt0"
    assert (kept / "ras.txt").read_text() == REPORT
    for rank in range(2):
        assert (kept / f"rank{rank}" / "collectives-1.pickle").read_bytes() == (tmp_path / f"trace_{rank}").read_bytes()
        output = (kept / f"rank{rank}" / "output.log").read_text()
        assert "step 4 loss 0.200" in output
        assert "hf_abcdefghijklm" not in output
    again = diagnose_paths([str(tmp_path / "kept")])
    assert again.verdict is not None
    assert again.verdict.culprit_ranks == (1,)
    assert {rank.number: rank.last_step for rank in again.world.ranks} == {0: 4, 1: 4}
    assert "attempt0/ras.txt" in again.read

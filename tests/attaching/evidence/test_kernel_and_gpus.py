"""What the kernel and nvidia-smi say is told of the rank whose GPU it is, and a kill only if a rank is gone. Lines as the driver and the kernel print them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from phalanx.attaching.discovery import FoundJob, FoundRank, Process
from phalanx.attaching.evidence.gpu_state import lines_about as said_by_gpus
from phalanx.attaching.evidence.kernel_log import bus_of, gpus_of, lines_about, read_log
from phalanx.attaching.identity import Identity
from phalanx.diagnosis import diagnose_paths

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, name=python, GPU has fallen off the bus."
KILL = (
    "Memory cgroup out of memory: Killed process 4242 (python) total-vm:94120kB, anon-rss:80120kB, file-rss:0kB, "
    "shmem-rss:0kB, UID:1000 pgtables:1216kB oom_score_adj:0"
)
GPUS = {"0:3b:00": [1], "0:5e:00": [0, 2]}
SMI = """\
0, 00000000:3B:00.0, 100, 71423, 82.11, 2
1, 00000000:5E:00.0, 0, 512, 61.00, [N/A]
2, 00000000:AF:00.0, 97, 512, 300.00, 0
Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error
"""


def job(ranks: int, size: int) -> FoundJob:
    process = Process(os.getpid(), 1, 1000, "python", ("python", "train.py"), {"LOCAL_WORLD_SIZE": str(size)})
    found = tuple(FoundRank(replace(process), Identity("torch", "x", rank, size)) for rank in range(ranks))
    return FoundJob("x", found)


def test_an_xid_is_told_of_the_rank_that_uses_the_gpu() -> None:
    assert list(lines_about(job(3, 3), [XID], GPUS)) == [f"[rank1]: {XID}"]
    assert list(lines_about(job(3, 3), [XID.replace("3b", "5e")], GPUS)) == [XID.replace("3b", "5e")]
    assert list(lines_about(job(3, 3), [XID.replace("3b", "af")], GPUS)) == []  # of another job


def test_a_kill_is_told_only_if_a_rank_is_gone() -> None:
    assert list(lines_about(job(2, 3), [KILL], {})) == [f"[rank2]: {KILL}"]
    assert list(lines_about(job(3, 3), [KILL], {})) == []
    assert list(lines_about(job(2, 3), [KILL.replace("UID:1000", "UID:1001")], {})) == []


def test_the_diagnosis_reads_it(tmp_path: Path) -> None:
    (tmp_path / "kernel-a.log").write_text("\n".join(lines_about(job(3, 3), [XID], GPUS)) + "\n")
    verdict = diagnose_paths([str(tmp_path)]).verdict
    assert verdict is not None
    assert (verdict.rule, verdict.culprit_ranks) == ("DEV009", (1,))


def test_records_of_the_kernels_log(tmp_path: Path) -> None:
    log = tmp_path / "kmsg"
    log.write_text(f"4,1,900,-;old\n4,2,5000000,-;{XID}\n")
    assert list(read_log(str(log), 0.0)) == ["old"]  # a device gives one record a read, a file all at once
    log.write_text(f"4,2,5000000,-;{XID}\n SUBSYSTEM=pci\n")
    assert list(read_log(str(log), 4.0)) == [XID]
    assert list(read_log(str(log), 6.0)) == []


def test_gpus_are_known_by_the_devices_that_a_rank_has_open(tmp_path: Path) -> None:
    (tmp_path / "0000:3b:00.0").mkdir()
    (tmp_path / "0000:3b:00.0" / "information").write_text(
        "Model: \t NVIDIA H100\nBus Location: \t 0000:3b:00.0\nDevice Minor: \t 0\n"
    )
    assert gpus_of(job(1, 1), str(tmp_path)) == {}
    assert bus_of("00000000:3B:00.0") == bus_of("0000:3b:00") == "0:3b:00"


def test_what_nvidia_smi_says() -> None:
    assert list(said_by_gpus(SMI, GPUS)) == [
        "[rank1]: GPU 0: 100 % busy, 71423 MiB in use, 82.11 W",
        "[rank1]: GPU 0: 2 times uncorrectable ECC error since the driver was loaded",
        "GPU 1: 0 % busy, 512 MiB in use, 61.00 W",
        "[rank1]: Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error",
    ]

"""Lines that name a process or a pod accuse the rank behind it."""

from __future__ import annotations

from ..conftest import Diagnose

STEPS = "".join(f"step {step} loss {2 - step / 10:.3f}\n" for step in range(6))
CLOSED = "RuntimeError: [/x/gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.5]:4411\n"


def test_the_kernel_names_a_process(diagnose: Diagnose) -> None:
    summary = "".join(
        f"  rank      : {rank} (local_rank: {rank})\n  exitcode  : {code} (pid: {100 + rank})\n"
        for rank, code in ((0, 1), (1, 1), (2, 1), (3, -9))
    )
    job = "".join(f"[rank{rank}]: {CLOSED}" for rank in (0, 1, 2)) + summary
    kernel = "[1.7] python invoked oom-killer: gfp_mask=0xcc0\n[1.8] Out of memory: Killed process 103 (python) total-vm:9kB\n"
    verdict = diagnose({"job.log": job, "dmesg.txt": kernel}).verdict
    assert verdict is not None
    assert verdict.symptom == "fail.out-of-memory"
    assert verdict.culprit_ranks == (3,)


def test_a_cluster_names_a_pod(diagnose: Diagnose) -> None:
    logs = {f"job-worker-{rank}.log": STEPS + (CLOSED if rank != 2 else "") for rank in range(4)}
    logs["events.txt"] = (
        "2m  Warning  Evicted  pod/job-worker-2  The node was low on resource: memory. Container was using 14Gi\n"
    )
    verdict = diagnose(logs).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == (2,)


def test_a_shell_says_killed(diagnose: Diagnose) -> None:
    logs = {f"rank{rank}.log": STEPS + (CLOSED if rank != 1 else "Killed\n") for rank in range(3)}
    verdict = diagnose(logs).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == (1,)


def test_a_number_that_is_no_rank_accuses_nobody_and_fills_no_memory(diagnose: Diagnose) -> None:
    told = "RuntimeError: DDP expects same model across all ranks, but Rank {} has 212 params, while rank {} has inconsistent 0 params.\n"
    for other in (4_000_000_000, 10**20):  # ranks up to that would take more memory than there is
        verdict = diagnose({"job.log": told.format(1, other)}).verdict
        assert verdict is not None
        assert verdict.symptom == "prep.communication-error"
        assert other not in verdict.culprit_ranks


def test_the_only_exception_of_a_console_is_that_of_the_only_rank_that_failed(diagnose: Diagnose) -> None:
    report = diagnose(
        {
            "job.log": "step 1 loss 2.0\nstep 2 loss 1.9\nTraceback (most recent call last):\n"
            '  File "train.py", line 9, in <module>\n    batch = next(batches)\n'
            "RuntimeError: DataLoader worker (pid 4000) is killed by signal: Killed.\n"
            "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 6 (pid: 4712) of binary: python\n"
            "  rank      : 6 (local_rank: 6)\n  exitcode  : 1 (pid: 4712)\n"
        }
    )
    assert report.verdict is not None
    assert report.verdict.culprit_ranks == (6,)


def test_an_xid_names_a_gpu_whose_rank_nccl_told(diagnose: Diagnose) -> None:
    made = "".join(
        f"{host}:{100 + rank}:200 [{rank % 2}] NCCL INFO comm 0x5 rank {rank} nranks 4 cudaDev {rank % 2} busId {bus} - Init COMPLETE\n"
        for rank, (host, bus) in enumerate((("gpu1", "1b000"), ("gpu1", "43000"), ("gpu2", "1b000"), ("gpu2", "43000")))
    )
    kernel = "[88112.1] NVRM: Xid (PCI:0000:43:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
    verdict = diagnose({"job.log": made + STEPS, "dmesg-gpu2.log": kernel}).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == (3,)


def test_a_ray_driver_names_the_process_of_the_task_that_raised(diagnose: Diagnose) -> None:
    workers = "".join(
        f"(TorchTrainer pid=9) - (node_id=8d, ip=10.0.0.1, pid={20 + rank}) world_rank={rank}, local_rank={rank}, node_rank=0\n"
        for rank in range(3)
    )
    raised = (
        'Traceback (most recent call last):\n  File "/env/ray/air/event_manager.py", line 110, in resolve_future\n    result = ray.get(future)\n'
        "ray.exceptions.RayTaskError(ValueError): ray::_Inner.train() (pid=9, ip=10.0.0.1, actor_id=1)\n"
        "ray.exceptions.RayTaskError(ValueError): ray::_RayTrainWorker__execute.get_next() (pid=21, ip=10.0.0.1, actor_id=2)\n"
        '  File "/home/ray/job.py", line 41, in train_loop\n    raise ValueError("bad row")\nValueError: bad row\n'
    )
    verdict = diagnose(
        {"job.log": workers + "(RayTrainWorker pid=20, ip=10.0.0.1) step 10 loss 2.2\n" + raised}
    ).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == (1,)


def test_an_xid_is_of_the_one_rank_whose_device_failed(diagnose: Diagnose) -> None:
    job = (
        STEPS
        + '[rank6]: Traceback (most recent call last):\n[rank6]:   File "t.py", line 60, in main\n[rank6]:     loss.backward()\n'
    )
    job += "[rank6]: RuntimeError: CUDA error: unspecified launch failure\n"
    kernel = "Nov 18 03:11:01 gpu07 kernel: [99.1] NVRM: Xid (PCI:0000:c7:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
    verdict = diagnose({"job.log": job, "syslog": kernel}).verdict
    assert verdict is not None
    assert (verdict.rule, verdict.culprit_ranks) == ("DEV009", (6,))


FULL = (
    "[INFO] [launch.py:151:main] nnodes=1, num_local_procs=8, node_rank=0\n" + STEPS
    + 'Traceback (most recent call last):\n  File "t.py", line 60, in main\n    loss.backward()\n'
    + "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 4 has a total capacty of 79.15 GiB of which 1.02 GiB is free.\n"
)  # fmt: skip
SUMMARY = """\
Root Cause (first observed failure):
[0]:
  time      : 2026-11-18_03:12:50
  host      : node01
  rank      : 4 (local_rank: 4)
  exitcode  : 1 (pid: 7)
"""


def test_a_full_device_tells_the_rank_that_the_launcher_saw_fail(diagnose: Diagnose) -> None:
    verdict = diagnose({"job.log": FULL + SUMMARY}).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == (4,)


def test_a_full_device_alone_accuses_nobody(diagnose: Diagnose) -> None:
    """On two nodes its number is that of two ranks."""
    verdict = diagnose({"job.log": FULL}).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == ()


def test_slurms_word_of_memory_is_about_the_one_rank_that_was_killed(diagnose: Diagnose) -> None:
    """The task that srun names is the node's launcher, not rank 0."""
    log = (
        "step 9 loss 0.4\nstep 10 loss 0.4\n"
        "E1112 03:43:10.9 1 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) local_rank: 6 (pid: 706) of binary: python\n"
        "  rank      : 6 (local_rank: 6)\n  exitcode  : -9 (pid: 706)\n"
        "slurmstepd: error: Detected 1 oom_kill event in StepId=8841.0. Some of the step tasks have been OOM Killed.\n"
        "srun: error: n9: task 0: Out Of Memory\n"
    )
    verdict = diagnose({"job.log": log}).verdict
    assert verdict is not None
    assert (verdict.symptom, verdict.culprit_ranks) == ("fail.out-of-memory", (6,))


def test_one_rank_of_a_nodes_folder_tells_the_ranks_of_the_others(diagnose: Diagnose) -> None:
    table = "".join(
        f"[0]:\n  time      : 2026-09-07_13:02:58\n  host      : {host}.cluster\n  rank      : {rank} (local_rank: {local})\n  exitcode  : {code} (pid: {rank})\n"
        for host, rank, local, code in (("gpu2", 5, 1, 1),)
    )
    names = [f"{host}/none_1/attempt_0/{local}/stderr.log" for host in ("gpu1", "gpu2") for local in range(4)]
    logs = dict.fromkeys(names, STEPS) | {"gpu2.log": table}
    logs["gpu2/none_1/attempt_0/1/stderr.log"] += (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.\n"
    )
    verdict = diagnose(logs).verdict
    assert verdict is not None
    assert (verdict.symptom, verdict.culprit_ranks) == ("fail.out-of-memory", (5,))


def test_no_folder_of_a_node_is_taken_for_that_of_another(diagnose: Diagnose) -> None:
    names = [f"{host}/none_1/attempt_0/{local}/stderr.log" for host in ("gpu1", "gpu2") for local in range(4)]
    logs = dict.fromkeys(names, STEPS)
    logs["gpu2/none_1/attempt_0/1/stderr.log"] += (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.\n"
    )
    verdict = diagnose(logs).verdict
    assert verdict is not None
    assert (verdict.symptom, verdict.culprit_ranks) == ("fail.out-of-memory", ())

"""GPUs that fail: CUDA errors that surface at once or at a later collective, and the kernel's Xid lines."""

from __future__ import annotations

from functools import partial
from typing import Any

from phalanx.zoo.consoles import acts, endings
from phalanx.zoo.consoles.formats import render
from phalanx.zoo.consoles.situation import Situation
from phalanx.zoo.consoles.stage import Stage

_HARDWARE = ("change-hardware",)
_KERNEL_CODE = (
    "fix-dependency-version",
    "fix-memory-or-core-setting",
    "fix-behavior-logic",
    "fix-dataset",
    "fix-framework-version",
)
# CUDA runtime: driver_types.h, cudaError; the texts of cudaGetErrorString
ERRORS = {
    "illegal": ("an illegal memory access was encountered", "cudaErrorIllegalAddress", 700),
    "assert": ("device-side assert triggered", "cudaErrorAssert", 710),
    "launch": ("unspecified launch failure", "cudaErrorLaunchFailure", 719),
    "ecc": ("uncorrectable ECC error encountered", "cudaErrorECCUncorrectable", 214),
    "unknown": ("unknown error", "cudaErrorUnknown", 999),
    "nvlink": ("uncorrectable NVLink error detected during the execution", "cudaErrorNvlinkUncorrectable", 220),
}


def cuda_text(stage: Stage, which: str) -> str:
    what, name, _ = ERRORS[which]
    return render("torch", "cuda.error", stage.job.torch, what=what, name=name)


def _at_once(stage: Stage, which: str) -> tuple[int, ...]:
    """The error surfaces where the rank synchronises."""
    acts.start(stage)
    acts.train(stage)
    culprit = stage.pick()
    if which == "assert":
        for thread in range(64, 72):
            text = render(
                "torch", "cuda.assert", stage.job.torch, line=1237, block=stage.rng.randrange(90), thread=thread
            )
            stage.rank(culprit, text, tells="why what")
    error = "torch.AcceleratorError" if stage.job.torch in ("2.9", "2.13") else "RuntimeError"
    acts.traceback(stage, culprit, f"{error}: {cuda_text(stage, which)}")
    endings.collapse(stage, tells={culprit: "who"})
    return (culprit,)


def _later(stage: Stage, which: str) -> tuple[int, ...]:
    """The error surfaces in the watchdog of the rank, at its next collective; the others wait or lose the connection."""
    acts.start(stage)
    acts.train(stage)
    culprit = stage.pick()
    job = stage.job
    _, main = acts.hold(stage, {culprit: 0})
    stage.clock += 1
    fields: dict[str, Any] = {
        **stage.group_fields(job.groups[0], culprit),
        "error": cuda_text(stage, which),
        "seq": main[culprit].seq + 1,
        "enqueued": main[culprit].seq + 1,
        "completed": main[culprit].completed,
    }
    what, _, code = ERRORS[which]
    stage.nccl(culprit, "cuda.failure", at=stage.clock, what=what, code=code, tells="why what who")
    if job.torch in ("1.13",):
        acts.traceback(stage, culprit, f"RuntimeError: {cuda_text(stage, which)}", place="collective")
    else:
        stage.c10(culprit, "watchdog.terminated", at=stage.clock, tells="why what who", **fields)
        acts.take_down(stage, culprit, stage.clock + 0.01, fields, "c10_cuda_check_implementation")
    if job.nodes > 1:
        acts.peers_lose(stage, [culprit], main, at=stage.clock + 1.2)
    endings.collapse(stage, tells={})
    return (culprit,)


# open-gpu-kernel-modules: the texts behind the numbers; NVIDIA's XID documentation for their meaning
XIDS = {
    13: "pid={pid}, name=python, Graphics SM Warp Exception on (GPC 3, TPC 4, SM 1): Out Of Range Address",
    31: "pid={pid}, name=python, Ch 00000012, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f43_0c000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ",
    43: "pid={pid}, name=python, Ch 00000018",
    48: "pid={pid}, name=python, An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at partition 6, subpartition 0.",
    63: "pid='<unknown>', name=<unknown>, Row Remapper: New row (0x0000000a2f3b1c40) marked for remapping, reset gpu to activate.",
    64: "pid='<unknown>', name=<unknown>, Row Remapper: Failed to remap row 0x0000000a2f3b1c40",
    74: "pid={pid}, name=python, NVLink: fatal error detected on link 11(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
    79: "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    94: "pid={pid}, name=python, Contained: CE User Channel (0x9). RST: No, D-RST: No",
    95: "pid={pid}, name=python, Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No",
    119: "pid={pid}, name=python, Timeout after 6s of waiting for RPC response from GPU{index} GSP! Expected function 76 (GSP_RM_CONTROL) (0x20802a02 0x8).",
}
# what the process on that GPU sees of it
SEEN = {
    13: "illegal",
    31: "illegal",
    43: "launch",
    48: "ecc",
    64: "ecc",
    74: "nvlink",
    79: "unknown",
    94: "ecc",
    95: "ecc",
    119: "unknown",
}


def _xid(stage: Stage, number: int) -> tuple[int, ...]:
    """The kernel reports it; the rank on that GPU fails with a CUDA error, or hangs (79, 119) until the others time out."""
    acts.start(stage)
    acts.train(stage)
    job = stage.job
    culprit = stage.pick()
    node = job.node(culprit)
    text = XIDS[number].format(pid=job.pids[culprit], index=job.local(culprit))
    stage.kernel(
        node, render("kernel", "xid", "any", pci=job.pci(culprit), xid=number, text=text), tells="why who what"
    )
    stage.clock += 0.5
    if number in (79, 119) and stage.rng.random() < 0.6:
        stuck, main = acts.hold(stage, {culprit: 0})
        acts.time_out(stage, stuck, main, tells="")
        endings.collapse(stage)
        return (culprit,)
    error = "torch.AcceleratorError" if job.torch in ("2.9", "2.13") else "RuntimeError"
    which = SEEN[number]
    proof = {"illegal": "what who", "unknown": "who", "launch": "what who"}.get(which, "why what who")
    if number in (13, 31, 43):
        proof = "why what who"
    acts.traceback(stage, culprit, f"{error}: {cuda_text(stage, which)}", tells=proof)
    endings.collapse(stage, tells={culprit: "who"})
    return (culprit,)


_ILLEGAL = ("fail.memory-issue", "illegal-memory-access", _KERNEL_CODE)
_FAULT = ("fail.device-error", "gpu-hardware-fault", _HARDWARE)

SITUATIONS = (
    Situation(
        "illegal-memory-access",
        "an illegal access raises where the rank synchronises",
        partial(_at_once, which="illegal"),
        *_ILLEGAL,
    ),
    Situation(
        "device-side-assert",
        "an index out of range fails on the GPU",
        partial(_at_once, which="assert"),
        "fail.device-error",
        "index-out-of-range-on-gpu",
        ("fix-dataset", "fix-model-construction"),
    ),
    Situation(
        "launch-failure",
        "a kernel fails to launch",
        partial(_at_once, which="launch"),
        "fail.device-error",
        "kernel-launch-failure",
        (*_KERNEL_CODE, "change-hardware", "fix-device-assignment"),
    ),
    Situation("ecc-error", "an uncorrectable ECC error ends a rank", partial(_at_once, which="ecc"), *_FAULT),
    Situation(
        "illegal-memory-access-later",
        "an illegal access surfaces in the watchdog",
        partial(_later, which="illegal"),
        *_ILLEGAL,
    ),
    Situation(
        "launch-failure-later",
        "a launch failure surfaces in the watchdog",
        partial(_later, which="launch"),
        "fail.device-error",
        "kernel-launch-failure",
        (*_KERNEL_CODE, "change-hardware", "fix-device-assignment"),
    ),
    Situation("ecc-error-later", "an ECC error surfaces in the watchdog", partial(_later, which="ecc"), *_FAULT),
    *(
        Situation(
            f"xid-{number:03d}",
            f"the kernel reports Xid {number}",
            partial(_xid, number=number),
            *(_ILLEGAL if number in (13, 31) else _FAULT),
        )
        for number in sorted(set(XIDS) - {43, 63})
    ),
    Situation(
        "xid-043",
        "the kernel reports Xid 43",
        partial(_xid, number=43),
        "fail.device-error",
        "kernel-launch-failure",
        (*_KERNEL_CODE, "change-hardware", "fix-device-assignment"),
    ),
)

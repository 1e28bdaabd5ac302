"""What the zoo must cover, and what of it is covered: symptoms, fix patterns, frameworks and their ways, causes, controls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from phalanx.knowledge import FIX_PATTERNS, SYMPTOMS
from phalanx.zoo.fault import FRAMEWORKS, Fault

FAULTS_PER_FRAMEWORK = 15
FAULTS_PER_HEALTHY = 5

# A way of training, told by what the job's own files say.
_WAYS = {
    "torch: DistributedDataParallel": ("torch", r"DistributedDataParallel|\bDDP\b"),
    "torch: FSDP2": ("torch", r"\bfully_shard\b"),
    "torch: plain collectives": ("torch", r"dist\.(all_reduce|all_gather|broadcast|barrier|gather|scatter)"),
    "torch: DataLoader": ("torch", r"\bDataLoader\("),
    "tensorflow: MultiWorkerMirroredStrategy": ("tensorflow", r"MultiWorkerMirroredStrategy"),
    "tensorflow: ParameterServerStrategy": ("tensorflow", r"ParameterServerStrategy"),
    "tensorflow: MirroredStrategy": ("tensorflow", r"(?<!Worker)MirroredStrategy"),
    "keras: TensorFlow backend": ("keras", r"import tensorflow|KERAS_BACKEND\W+tensorflow"),
    "keras: JAX backend": ("keras", r"KERAS_BACKEND\W+jax"),
    "keras: torch backend": ("keras", r"KERAS_BACKEND\W+torch"),
}

# The causes every zoo of this kind must hold, by the names that fault.toml gives them.
_CAUSES = {
    "skipped collective": ("skipped-collective", "rank-conditional-collective"),
    "reordered collectives": ("reordered-collectives",),
    "collectives of different type": ("collective-operation-mismatch",),
    "collectives of different shape": ("collective-shape-mismatch",),
    "collectives of different dtype": ("collective-dtype-mismatch",),
    "collectives in different groups": ("new-group-not-called-by-all", "source-not-in-group"),
    "uneven data": ("uneven-steps", "shard-too-small", "empty-shard"),
    "killed rank": ("killed-by-signal",),
    "raising rank": ("user-exception",),
    "rank that ends early": ("early-exit",),
    "stopped rank (SIGSTOP)": ("rank-frozen",),
    "data-loading worker dies": ("loader-worker-killed",),
    "data-loading worker blocks": ("loader-worker-stuck",),
    "out of memory, Python's error": ("allocation-exceeds-memory",),
    "out of memory, the kernel's kill": ("killed-by-oom-killer",),
    "/dev/shm too small": ("shared-memory-too-small",),
    "wrong device": ("no-cuda-device", "device-ids-for-cpu-model", "work-on-wrong-device"),
    "unused parameters": ("unused-parameters",),
    "different models on ranks": ("model-differs-between-ranks",),
    "different seeds on ranks": ("seed-differs-between-ranks",),
    "checkpoint of a wrapped model": ("module-prefix-in-checkpoint", "wrapped-model-saved"),
    "checkpoint of a sharded model": ("sharded-checkpoint-misread", "sharded-state-saved-by-one-rank"),
    "all ranks write one checkpoint": ("concurrent-checkpoint-writers",),
    "sampler not reshuffled": ("sampler-not-reshuffled",),
    "learning rate not scaled": ("learning-rate-not-scaled",),
    "loss averaged wrongly": ("gradients-summed-not-averaged", "loss-averaged-wrongly"),
    "missing broadcast": ("missing-initial-broadcast",),
    "scope error": ("variables-outside-strategy-scope",),
    "batch not divisible": ("batch-not-divisible",),
    "version mismatch between packages": ("protobuf-mismatch", "version-conflict"),
    "ABI mismatch between packages": ("numpy-binary-mismatch",),
    "version mismatch between ranks": ("versions-differ-between-ranks",),
    "missing extension": ("extension-not-built", "compiled-extension-missing"),
    "build failure": ("compile-error", "compiler-standard-too-old"),
    "port in use": ("port-in-use",),
    "stale process": ("stale-process-holds-port",),
    "wrong world size": ("world-size-differs", "world-size-too-large"),
    "wrong rank": ("rank-out-of-range", "duplicate-rank"),
    "time-out too short": ("slow-rank-exceeds-timeout", "timeout-too-short"),
}


# Healthy jobs that a hasty tool takes for ill ones.
_HARD = {
    "a slow evaluation on one rank": ("torch-healthy-slow-evaluation", "tensorflow-control-chief-evaluates"),
    "a long checkpoint": (
        "torch-healthy-long-checkpoint",
        "horovod-control-long-checkpoint",
        "tensorflow-control-ps-long-save",
    ),
    "a late starter": ("torch-healthy-late-starter", "torch-healthy-second-node-late"),
    "a first step that compiles for a minute": ("torch-healthy-long-compilation",),
    "noisy but harmless warnings": (
        "torch-healthy-warnings",
        "torch-healthy-loader-warnings",
        "torch-healthy-error-words",
        "tensorflow-control-out-of-range-notices",
    ),
}


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to cover, the jobs that cover it and how many must."""

    group: str
    name: str
    jobs: tuple[str, ...]
    wanted: int = 1

    @property
    def found(self) -> int:
        return len(self.jobs)

    @property
    def covered(self) -> bool:
        return self.found >= self.wanted


def coverage(zoo: Sequence[Fault]) -> list[Item]:
    """Every item, covered or not."""
    faults = [fault for fault in zoo if not fault.healthy]
    healthy = [job for job in zoo if job.healthy]
    items = [Item("symptom", name, _names(one for one in faults if one.symptom == name)) for name in SYMPTOMS]
    items += [Item("fix", name, _names(one for one in faults if name in one.accepted_fixes)) for name in FIX_PATTERNS]
    items += [
        Item("cause", name, _names(one for one in faults if one.cause in causes)) for name, causes in _CAUSES.items()
    ]
    texts = {fault.name: _text(fault) for fault in faults}
    for way, (framework, sign) in _WAYS.items():
        trained = (one for one in faults if one.framework == framework and re.search(sign, texts[one.name]) is not None)
        items.append(Item("way", way, _names(trained)))
    for name in FRAMEWORKS:
        items.append(
            Item("framework", name, _names(one for one in faults if one.framework == name), FAULTS_PER_FRAMEWORK)
        )
    for name in FRAMEWORKS:
        items.append(Item("healthy", name, _names(one for one in healthy if one.framework == name), 2))
    items += [Item("healthy", name, _names(one for one in healthy if one.name in jobs)) for name, jobs in _HARD.items()]
    items.append(Item("healthy", "in all", _names(healthy), -(-len(faults) // FAULTS_PER_HEALTHY)))
    items.append(Item("split", "held back (test)", _names(one for one in zoo if one.split == "test"), len(zoo) // 3))
    return items


def _names(faults: Iterable[Fault]) -> tuple[str, ...]:
    return tuple(fault.name for fault in faults)


def _text(fault: Fault) -> str:
    """What tells how a job trains: its scripts and its settings."""
    files = [*fault.folder.glob("*.py"), *fault.folder.glob("*.sh"), fault.folder / "fault.toml"]
    return "\n".join(file.read_text(encoding="utf-8", errors="replace") for file in files)

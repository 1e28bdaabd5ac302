"""The folding table: how the study's sheet spells its labels, and which id each spelling means.

Symptoms: upper and lower case, double spaces, `&` for `and` and plurals are folded; the rare leaves of
"data and model preparation" are gathered as `prep.other`; "unexpected parallelization" and "unexpected
device" are one. An unknown symptom is an error: it would make the sum of the 30 categories wrong.

Fix patterns: a cell may name several, joined by `&` or `/`.
- A cell that is itself in `FIX_LABELS` ("fix batch size/data partition") is one pattern.
- Any other joined cell names each of its parts, in order. It counts as the first one named, so that every
  fault has one cure and the counts add up. Whether a fault was cured in the configuration asks all parts:
  a cure that changed the configuration as well as something else did change the configuration. This
  reading gives the study's 51.6 % (329 of 637); the first part alone gives 328, which is 51.5 %.
- A part that is no listed pattern is `other`.
Where a reader could have decided otherwise, the case stands in `AMBIGUOUS_FIXES` with the other choice.

Frameworks: the sheet's type ("GitHub-horovod", "SO-pytorch") says where the issue was filed. A Horovod
issue counts as horovod whatever it trains with; of two types joined by `&` the first counts.
"""

import re
from dataclasses import dataclass


class UnknownLabelError(ValueError):
    """A label of the sheet that the folding table does not hold."""


STAGES = {
    "build": "package build & import",
    "comm": "communication setup",
    "prep": "data and model preparation",
    "fail": "training & evaluation",
    "perf": "training & evaluation",
}

# Stage and inner category of the sheet, spelled as `normalise` leaves them -> the first half of a symptom id.
STAGE_PREFIXES = {
    ("package build & import", ""): "build",
    ("communication setup", ""): "comm",
    ("data and model preparation", ""): "prep",
    ("training & evaluation", "program failure"): "fail",
    ("training & evaluation", "unexpected performance"): "perf",
}

LEAVES = {
    "build": {
        "installation & build failure": "install-failure",
        "import error": "import-error",
    },
    "comm": {
        "setup failure": "setup-failure",
        "hang & timeout": "hang-timeout",
        "hang and timeout": "hang-timeout",
        "unexpected protocol": "unexpected-protocol",
    },
    "prep": {
        "model loading failure": "model-loading-failure",
        "data loading failure": "data-loading-failure",
        "communication error": "communication-error",
        "hang & timeout": "hang-timeout",
        "hang and timeout": "hang-timeout",
        "device error": "device-error",
        "iteration failure": "iteration-failure",
        # One or two faults each: too rare to be a category of their own.
        "attribute not found": "other",
        "compile model error (other)": "other",
        "data partition error": "other",
        "download error": "other",
        "logging error": "other",
        "low efficiency": "other",
        "path error": "other",
        "scope / context issue": "other",
    },
    "fail": {
        "communication error": "communication-error",
        "device error": "device-error",
        "graph execution error": "graph-execution-error",
        "tensor mismatch": "tensor-mismatch",
        "out of memory": "out-of-memory",
        "checkpoint unfunctioning": "checkpoint-unusable",
        "segmentation fault": "segmentation-fault",
        "attribute not found": "attribute-not-found",
        "memory issue": "memory-issue",
        "path error": "path-error",
        "not implemented error": "not-implemented",
        "others": "other",
    },
    "perf": {
        "hang": "hang",
        "unexpected parallelization": "unexpected-parallelization-or-device",
        "unexpected device": "unexpected-parallelization-or-device",
        "unexpected parallelization & device": "unexpected-parallelization-or-device",
        "low efficiency": "low-efficiency",
        "unexpected intermediate result": "unexpected-intermediate-result",
        "unexpected intermediate results": "unexpected-intermediate-result",
        "non-convergence": "non-convergence",
        "others": "other",
    },
}

SYMPTOMS = tuple(f"{prefix}.{leaf}" for prefix, leaves in LEAVES.items() for leaf in dict.fromkeys(leaves.values()))

OTHER = "other"

FIX_LABELS = {
    "fix communication configuration": "fix-communication-configuration",
    "fix dependency version": "fix-dependency-version",
    "fix dependency versions": "fix-dependency-version",
    "fix distributed api usage": "fix-distributed-api-usage",
    "fix framework version": "fix-framework-version",
    "fix framework verion": "fix-framework-version",
    "fix device assignment": "fix-device-assignment",
    "fix device assignemnt": "fix-device-assignment",
    "fix network setting": "fix-network-setting",
    "fix model construction": "fix-model-construction",
    "fix model structure": "fix-model-construction",
    "change model structure": "fix-model-construction",
    "fix behavior logic": "fix-behavior-logic",
    "fix behaviour logic": "fix-behavior-logic",
    "fix consistency between devices": "fix-consistency-between-devices",
    "fix batch size/data partition": "fix-batch-size-or-data-partition",
    "fix data partition/batch size": "fix-batch-size-or-data-partition",
    "fix batch size": "fix-batch-size-or-data-partition",
    "fix data partition": "fix-batch-size-or-data-partition",
    "save single-device model/weights only": "save-single-device-weights-only",
    "fix dependency path": "fix-dependency-path",
    "fix build/install configuration": "fix-build-or-install-configuration",
    "fix memory/core setting": "fix-memory-or-core-setting",
    "install missing dependency": "install-missing-dependency",
    "change hardware": "change-hardware",
    "fix dependency installation": "fix-dependency-installation",
    "fix dependency installatiovn": "fix-dependency-installation",
    "fix scope assignment": "fix-scope-assignment",
    "fix data type": "fix-data-type",
    "fix tensor dtype": "fix-data-type",
    "fix dataset api usage": "fix-dataset-api-usage",
    "fix command line": "fix-command-line",
    "fix learning rate": "fix-learning-rate",
    "fix dataset": "fix-dataset",
    "fix optimizer": "fix-optimizer",
    "fix loss function": "fix-loss-function",
    "fix tensor api usage": "fix-tensor-api-usage",
    "fix tensor intialization api usage": "fix-tensor-api-usage",
    "fix framework installation": "fix-framework-installation",
    "reinstall framework in a fresh environment": "fix-framework-installation",
    "kill useless processes on servers": "kill-stale-processes",
}

FIX_PATTERNS = (*dict.fromkeys(FIX_LABELS.values()), OTHER)

# Finding 3 of the study: cures in the system's configuration rather than in the training code.
CONFIGURATION_PATTERNS = frozenset(
    {
        "fix-communication-configuration",
        "fix-dependency-version",
        "fix-framework-version",
        "fix-network-setting",
        "fix-dependency-path",
        "fix-build-or-install-configuration",
        "fix-memory-or-core-setting",
        "install-missing-dependency",
        "fix-dependency-installation",
        "fix-framework-installation",
        "change-hardware",
    }
)


@dataclass(frozen=True, slots=True)
class AmbiguousFix:
    """A label that could be folded otherwise: what was chosen, what else was possible."""

    label: str
    chosen: str
    alternative: str


AMBIGUOUS_FIXES = (
    # Narrower wordings of a listed pattern: folded into it.
    AmbiguousFix("reinstall framework in a fresh environment", "fix-framework-installation", OTHER),
    AmbiguousFix("fix tensor dtype", "fix-data-type", OTHER),
    AmbiguousFix("fix tensor intialization api usage", "fix-tensor-api-usage", OTHER),
    AmbiguousFix(
        "fix batch size/data partition/learning rate", "fix-batch-size-or-data-partition", "fix-learning-rate"
    ),
    AmbiguousFix("fix dependency installatiovn/version", "fix-dependency-installation", "fix-dependency-version"),
    # Near a listed pattern, but not the same change: left as other.
    AmbiguousFix("clone third-party libraries", OTHER, "install-missing-dependency"),
    AmbiguousFix("change packaging tool", OTHER, "fix-build-or-install-configuration"),
    AmbiguousFix("fix virtual environment name", OTHER, "fix-dependency-path"),
    AmbiguousFix("fix dependency library usage", OTHER, "fix-dependency-version"),
    AmbiguousFix("fix num_worker", OTHER, "fix-memory-or-core-setting"),
    AmbiguousFix("deallocate useless memory", OTHER, "fix-memory-or-core-setting"),
    AmbiguousFix("fix dataset download", OTHER, "fix-dataset"),
    AmbiguousFix("fix data path", OTHER, "fix-dataset"),
    AmbiguousFix("fix data storage", OTHER, "fix-dataset"),
    AmbiguousFix("fix data shape", OTHER, "fix-data-type"),
    AmbiguousFix("fix tensor shape", OTHER, "fix-data-type"),
    AmbiguousFix("fix model api usage", OTHER, "fix-model-construction"),
    AmbiguousFix("fix initialize method", OTHER, "fix-communication-configuration"),
    AmbiguousFix("restart servers", OTHER, "kill-stale-processes"),
)

_FRAMEWORKS = {"horovod": "horovod", "pytorch": "torch", "tensorflow": "tensorflow", "keras": "keras"}
_SOURCES = {"github": "GitHub", "so": "Stack Overflow"}
UNKNOWN_FRAMEWORK = "unknown"


def normalise(cell: str | None) -> str:
    """Return the label in lower case with single spaces: the spelling in which the tables are written."""
    return " ".join(str(cell or "").lower().split())


def fold_symptom(stage: str | None, inner: str | None, leaf: str | None) -> str:
    """Return the symptom id of a fault's three labels."""
    prefix = STAGE_PREFIXES.get((normalise(stage), normalise(inner)))
    name = LEAVES[prefix].get(normalise(leaf)) if prefix else None
    if name is None:
        raise UnknownLabelError(f"no symptom for stage {stage!r}, inner category {inner!r}, leaf {leaf!r}")
    return f"{prefix}.{name}"


def fold_fixes(cell: str | None) -> tuple[str, ...]:
    """Return every fix pattern that a cell names, in its order and without repeats; the first one counts."""
    label = normalise(cell)
    if not label:
        raise UnknownLabelError("a fault without a fix pattern")
    if label in FIX_LABELS:
        return (FIX_LABELS[label],)
    # A pattern with its own slash ("fix memory/core setting") may be one part of a joined cell.
    parts: list[str] = []
    for joined in (part.strip() for part in label.split("&")):
        parts += [joined] if joined in FIX_LABELS else re.split(r"\s*/\s*", joined)
    # "fix dependency version & framework version": the verb is written once for both.
    patterns = (FIX_LABELS.get(part) or FIX_LABELS.get(f"fix {part}", OTHER) for part in parts)
    return tuple(dict.fromkeys(patterns))


def fold_framework(kind: str | None) -> str:
    """Return the framework that the sheet's type names ("SO-pytorch" -> "torch"), or "unknown"."""
    first = normalise(kind).split("&")[0].strip()
    return _FRAMEWORKS.get(first.rpartition("-")[2], UNKNOWN_FRAMEWORK)


def fold_source(kind: str | None) -> str:
    """Return where the sheet's type says the issue was filed ("SO-pytorch" -> "Stack Overflow")."""
    return _SOURCES.get(normalise(kind).partition("-")[0], "unknown")

"""The 30 symptoms of the study, with what each looks like to the user. The ids never change."""

from __future__ import annotations

from dataclasses import dataclass

from phalanx.model import Stage


@dataclass(frozen=True, slots=True)
class Symptom:
    """One category of the taxonomy."""

    id: str
    title: str
    looks_like: str

    @property
    def stage(self) -> Stage:
        """The stage at which it shows."""
        return Stage.of_symptom(self.id)


_TABLE = (
    ("build.install-failure", "Installation or build failure", "pip, CMake or the compiler stops before the package is there"),
    ("build.import-error", "Import error", "the package is installed, but importing it fails"),
    ("comm.setup-failure", "Communication setup failure", "ranks fail to find or accept one another; the job ends with an error before it trains"),
    ("comm.hang-timeout", "Hang or time-out in communication setup", "ranks wait for one another at the start, for ever or until a time-out"),
    ("comm.unexpected-protocol", "Unexpected protocol", "the job runs, but over another network or library than it should"),
    ("prep.model-loading-failure", "Model loading failure", "building, wrapping or loading the model fails"),
    ("prep.data-loading-failure", "Data loading failure", "the data set cannot be opened, read or split"),
    ("prep.communication-error", "Communication error in preparation", "a broadcast, barrier or connection fails while model and data are prepared"),
    ("prep.hang-timeout", "Hang or time-out in preparation", "the job stops moving while model and data are prepared"),
    ("prep.device-error", "Device error in preparation", "a device is missing, busy or wrong when model or data are placed on it"),
    ("prep.iteration-failure", "Iteration failure in preparation", "the data cannot be iterated over as the job wants to"),
    ("prep.other", "Other failure in preparation", "anything else that fails while model and data are prepared"),
    ("fail.communication-error", "Communication error in training", "a collective or connection fails after training has begun"),
    ("fail.device-error", "Device error in training", "a GPU or its driver reports an error, or tensors live on different devices"),
    ("fail.graph-execution-error", "Graph execution error", "the framework's graph, autograd or compiled step cannot be built or run"),
    ("fail.tensor-mismatch", "Tensor mismatch", "shapes, types or numbers of tensors do not fit"),
    ("fail.out-of-memory", "Out of memory", "a device or the host has no memory left"),
    ("fail.checkpoint-unusable", "Checkpoint unusable", "a saved model cannot be written, read or used"),
    ("fail.segmentation-fault", "Segmentation fault", "a process dies in native code"),
    ("fail.attribute-not-found", "Attribute not found", "an attribute, method or key is not there"),
    ("fail.memory-issue", "Memory issue", "illegal access, leak or corruption, short of running out"),
    ("fail.path-error", "Path error", "a file, folder or program is not where a process looks for it"),
    ("fail.not-implemented", "Not implemented", "the operation is not supported in this combination"),
    ("fail.other", "Other failure in training", "anything else that ends training"),
    ("perf.hang", "Hang in training", "training stops moving without an error, or until a time-out"),
    ("perf.unexpected-parallelization-or-device", "Unexpected parallelization or device", "fewer devices work than should, or others"),
    ("perf.low-efficiency", "Low efficiency", "training is slower than the hardware allows"),
    ("perf.unexpected-intermediate-result", "Unexpected intermediate result", "losses, metrics, gradients or weights are not what they should be"),
    ("perf.non-convergence", "Non-convergence", "the loss does not fall, rises, or becomes NaN"),
    ("perf.other", "Other unexpected performance", "anything else that is not as expected while it trains"),
)  # fmt: skip

SYMPTOMS: dict[str, Symptom] = {row[0]: Symptom(*row) for row in _TABLE}

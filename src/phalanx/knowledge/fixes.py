"""The closed list of fix patterns: the study's own names in kebab case, each with what it means in general."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FixPattern:
    """One class of remedies. `do` is advice that holds whatever the rule; rules give the concrete one."""

    id: str
    title: str
    do: str


_TABLE = (
    ("fix-communication-configuration", "Fix the communication configuration", "Check the addresses, ports, interfaces, world size, ranks, backend and time-outs that the launcher hands to every rank, and make them agree."),
    ("fix-dependency-version", "Change the version of a dependency", "Install the version of the dependency (CUDA, cuDNN, NCCL, MPI, compiler, protobuf, …) that this framework release was built and tested with."),
    ("fix-distributed-api-usage", "Correct the use of the distributed API", "Compare the call with the framework's documentation: which ranks must make it, in what order, with what arguments, before or after which wrapper."),
    ("fix-framework-version", "Change the version of the framework", "Move to a release in which this works, the same on every machine."),
    ("fix-device-assignment", "Assign the devices correctly", "Give each process its own device (by local rank), and put model, data and operations on that device."),
    ("fix-network-setting", "Fix the network", "Open the ports between the hosts, correct name resolution and routes, and pick the interface that all hosts share."),
    ("fix-model-construction", "Correct how the model is built", "Build the same model on every rank, with every parameter used in the loss, before it is wrapped."),
    ("fix-behavior-logic", "Correct the program's logic", "Make every rank take the same path through the code where ranks must meet, and only one where just one may act."),
    ("fix-consistency-between-devices", "Make the machines agree", "Use the same code, data paths, packages, drivers and environment on every machine."),
    ("fix-batch-size-or-data-partition", "Correct the batch size or the split of the data", "Give every rank the same number of batches, of a size that divides and fits."),
    ("save-single-device-weights-only", "Save the plain model's weights only", "Save the state of the unwrapped model from one rank, and load it into an unwrapped model."),
    ("fix-dependency-path", "Correct the path of a dependency", "Make the loader find the library: LD_LIBRARY_PATH, PATH, PYTHONPATH, CUDA_HOME, MPI's prefix, the same on every machine."),
    ("fix-build-or-install-configuration", "Correct the build or installation settings", "Set the build's switches and paths for the features that are needed, and build again without cache."),
    ("fix-memory-or-core-setting", "Correct the memory or core settings", "Give the process more memory, shared memory or cores, or tell the framework to take less."),
    ("install-missing-dependency", "Install what is missing", "Install the missing package, library or program on every machine."),
    ("change-hardware", "Change the hardware", "Use a device that supports the operation, or replace the failing one."),
    ("fix-dependency-installation", "Repair the installation of a dependency", "Reinstall the dependency cleanly; remove second copies of it."),
    ("fix-scope-assignment", "Correct the scope", "Create the model, optimizer and variables inside the strategy's scope, and call what belongs outside of it outside."),
    ("fix-data-type", "Correct the data type", "Convert to the type that the operation expects, on every rank alike."),
    ("fix-dataset-api-usage", "Correct the use of the data set API", "Shard, batch, repeat and iterate the data set as the strategy expects it."),
    ("fix-command-line", "Correct the command line", "Correct the launcher's or the script's arguments."),
    ("fix-learning-rate", "Correct the learning rate", "Scale the learning rate with the number of workers, with warm-up."),
    ("fix-dataset", "Repair the data set", "Check the data for missing, broken or unequal parts."),
    ("fix-optimizer", "Correct the optimizer", "Wrap, create or step the optimizer as the framework demands."),
    ("fix-loss-function", "Correct the loss function", "Compute and reduce the loss as the strategy expects it."),
    ("fix-tensor-api-usage", "Correct the use of a tensor operation", "Correct the arguments, shapes or order of the tensor operations."),
    ("fix-framework-installation", "Repair the installation of the framework", "Reinstall the framework in a fresh environment."),
    ("kill-stale-processes", "End stale processes", "Find processes that an earlier run left behind on the devices or ports, and end them."),
    ("other", "Something else", "None of the frequent fixes: read the finding's evidence."),
)  # fmt: skip

FIX_PATTERNS: dict[str, FixPattern] = {row[0]: FixPattern(*row) for row in _TABLE}

"""The one name under which rules know each function and class of a framework, whichever way it was imported."""

from __future__ import annotations

from functools import lru_cache

# Longest first within a family: where the framework itself has several paths to one thing.
_PREFIXES = (
    ("torch.distributed.distributed_c10d.", "torch.distributed."),
    ("torch.distributed._composable.fsdp.", "torch.distributed.fsdp."),
    ("torch.distributed._composable.", "torch.distributed.fsdp."),
    ("torch.distributed.fsdp.fully_sharded_data_parallel.", "torch.distributed.fsdp."),
    ("torch.distributed.fsdp._fully_shard.", "torch.distributed.fsdp."),
    ("torch.nn.parallel.distributed.", "torch.nn.parallel."),
    ("torch.nn.parallel.data_parallel.", "torch.nn.parallel."),
    ("torch.nn.modules.", "torch.nn."),
    ("torch.utils.data.distributed.", "torch.utils.data."),
    ("torch.utils.data.dataloader.", "torch.utils.data."),
    ("torch.utils.data.dataset.", "torch.utils.data."),
    ("torch.utils.data.sampler.", "torch.utils.data."),
    ("torch.multiprocessing.spawn.", "torch.multiprocessing."),
    ("torch.optim.adamw.", "torch.optim."),
    ("torch.optim.adam.", "torch.optim."),
    ("torch.optim.sgd.", "torch.optim."),
    ("lightning.pytorch.", "lightning."),
    ("lightning.fabric.", "lightning."),
    ("lightning_fabric.", "lightning."),
    ("pytorch_lightning.", "lightning."),
    ("lightning.trainer.trainer.", "lightning."),
    ("lightning.trainer.", "lightning."),
    ("lightning.core.module.", "lightning."),
    ("lightning.core.", "lightning."),
    ("lightning.callbacks.callback.", "lightning."),
    ("lightning.callbacks.Callback", "lightning.Callback"),
    ("accelerate.accelerator.", "accelerate."),
    ("accelerate.state.", "accelerate."),
    ("transformers.trainer.", "transformers."),
    ("transformers.training_args.", "transformers."),
    ("deepspeed.runtime.engine.", "deepspeed."),
    ("deepspeed.comm.comm.", "deepspeed.comm."),
    ("tensorflow.python.keras.", "keras."),
    ("tensorflow.keras.", "keras."),
    ("tensorflow.compat.v2.", "tensorflow."),
    ("tf_keras.", "keras."),
    ("keras.api.", "keras."),
    ("keras.src.", "keras."),
    ("tensorflow.distribute.experimental.MultiWorkerMirroredStrategy", "tensorflow.distribute.MultiWorkerMirroredStrategy"),
    ("tensorflow.distribute.experimental.ParameterServerStrategy", "tensorflow.distribute.ParameterServerStrategy"),
    ("tensorflow.distribute.experimental.TPUStrategy", "tensorflow.distribute.TPUStrategy"),
    ("keras.optimizers.legacy.", "keras.optimizers."),
    ("keras.models.Sequential", "keras.Sequential"),
    ("keras.models.Model", "keras.Model"),
    ("keras.engine.", "keras."),
    ("horovod.tensorflow.keras.", "horovod.keras."),
)  # fmt: skip
_WHOLE = {
    "torch.nn.DataParallel": "torch.nn.parallel.DataParallel",
    "lightning.pytorch": "lightning",
    "pytorch_lightning": "lightning",
    "tensorflow.keras": "keras",
    "tf_keras": "keras",
    "horovod.tensorflow.keras": "horovod.keras",
    "apex.parallel.DistributedDataParallel": "torch.nn.parallel.DistributedDataParallel",
    "torch.distributed.fsdp.FSDPModule": "torch.distributed.fsdp.fully_shard",
}
FRAMEWORKS = ("torch", "tensorflow", "keras", "horovod", "accelerate", "lightning", "deepspeed", "transformers")


@lru_cache(maxsize=50_000)
def canonical(name: str) -> str:
    """The name that rules use for a dotted name."""
    for old, new in _PREFIXES:
        if name.startswith(old):
            name = new + name[len(old) :]
    return _WHOLE.get(name, name)


def mentions_framework(text: str) -> bool:
    """Whether a file can be about training at all; others are not analysed."""
    return any(word in text for word in ("torch", "tensorflow", "keras", "horovod", "lightning", "accelerate", "deepspeed", "transformers"))  # fmt: skip

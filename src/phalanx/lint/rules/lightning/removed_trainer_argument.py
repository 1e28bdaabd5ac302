"""An argument or hook that Lightning 2 no longer has.

## What it does
Finds `Trainer(gpus=…)`, `distributed_backend`, `accelerator="ddp"`, `training_epoch_end` and other names of Lightning
1.

## Why is this bad?
The Trainer refuses unknown arguments; removed hooks raise an error or are never called.

## Example
```diff
 import lightning as L

-trainer = L.Trainer(gpus=2, max_epochs=1)
+trainer = L.Trainer(accelerator="gpu", devices=2, max_epochs=1)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import keyword
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.trainers import module_classes

RULE = Rule(
    code="LLI003",
    symptom="prep.other",
    cause="removed-framework-name",
    pattern="fix-framework-version",
    do="Use the argument or hook of Lightning 2.",
    needs=("Trainer", "_epoch_end"),
)

_ARGUMENTS = {
    "gpus": "accelerator='gpu', devices=n", "tpu_cores": "accelerator='tpu', devices=n", "num_processes": "devices=n", "distributed_backend": "strategy='ddp'",
    "auto_select_gpus": "devices='auto'", "replace_sampler_ddp": "use_distributed_sampler", "checkpoint_callback": "enable_checkpointing",
    "progress_bar_refresh_rate": "a TQDMProgressBar callback", "weights_summary": "enable_model_summary", "resume_from_checkpoint": "trainer.fit(ckpt_path=…)",
    "amp_backend": "precision", "amp_level": "precision", "ipus": "accelerator='ipu'", "flush_logs_every_n_steps": "the logger's own option", "auto_scale_batch_size": "a Tuner", "auto_lr_find": "a Tuner",
}  # fmt: skip
_HOOKS = {
    "training_epoch_end": "on_train_epoch_end",
    "validation_epoch_end": "on_validation_epoch_end",
    "test_epoch_end": "on_test_epoch_end",
}


def check(context: Context) -> Iterator[Hit]:
    """Keywords of the Trainer, and methods of modules."""
    for call, scope in context.calls("lightning.Trainer"):
        for item in call.keywords:
            if item.arg in _ARGUMENTS:
                yield Hit(item, f"`Trainer` no longer has `{item.arg}`", do=f"Use {_ARGUMENTS[item.arg]}.")
        accelerator = context.constant(keyword(call, "accelerator"), scope)
        if accelerator in ("ddp", "ddp_spawn", "dp", "ddp2", "horovod"):
            yield Hit(
                call,
                f"`accelerator={accelerator!r}` is a strategy",
                do=f"Use strategy={accelerator!r} and accelerator='gpu'.",
            )
    for owner in module_classes(context):
        for name, replacement in _HOOKS.items():
            if name in owner.bindings:
                yield Hit(
                    owner.bindings[name][0].node,
                    f"Lightning 2 never calls `{name}`",
                    do=f"Use `{replacement}` and keep the outputs in an attribute.",
                )

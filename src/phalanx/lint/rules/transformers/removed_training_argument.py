"""A training argument that Transformers no longer has.

## What it does
Finds `sharded_ddp`, `fsdp_min_num_params`, `evaluation_strategy`, `no_cuda` and other arguments that were removed or
renamed.

## Why is this bad?
TrainingArguments stops with `got an unexpected keyword argument`.

## Example
```diff
 from transformers import TrainingArguments

-arguments = TrainingArguments("out", sharded_ddp="simple")
+arguments = TrainingArguments("out", fsdp="full_shard")
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LTR003",
    symptom="prep.other",
    cause="removed-framework-name",
    pattern="fix-framework-version",
    do="Use the argument of the current release.",
    needs=("TrainingArguments",),
    is_distributed=False,
)

_REMOVED = {
    "sharded_ddp": "fsdp", "evaluation_strategy": "eval_strategy", "no_cuda": "use_cpu", "xpu_backend": "ddp_backend", "fp16_backend": "half_precision_backend",
    "per_gpu_train_batch_size": "per_device_train_batch_size", "per_gpu_eval_batch_size": "per_device_eval_batch_size", "fsdp_min_num_params": "fsdp_config",
    "fsdp_transformer_layer_cls_to_wrap": "fsdp_config", "tpu_num_cores": "accelerate's launcher", "evaluate_during_training": "eval_strategy",
}  # fmt: skip


def check(context: Context) -> Iterator[Hit]:
    """Keywords of TrainingArguments."""
    for call, _ in context.calls("transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments"):
        for item in call.keywords:
            if item.arg in _REMOVED:
                yield Hit(item, f"`TrainingArguments` no longer has `{item.arg}`", do=f"Use {_REMOVED[item.arg]}.")

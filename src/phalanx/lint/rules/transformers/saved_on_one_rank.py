"""`trainer.save_model` on one rank of a sharded job.

## What it does
Finds `trainer.save_model` or `trainer.train` under a condition on the rank, in programs that set FSDP or DeepSpeed.

## Why is this bad?
With sharded weights saving gathers them from all ranks: rank 0 waits for the others, which went on. The Trainer
writes on one rank by itself.

## Example
```diff
 from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

 model = AutoModelForCausalLM.from_pretrained("gpt2")
 arguments = TrainingArguments("out", fsdp="full_shard")
 trainer = Trainer(model=model, args=arguments)
 trainer.train()
-if trainer.is_world_process_zero():
-    trainer.save_model("final")
+trainer.save_model("final")
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LTR004",
    symptom="perf.hang",
    cause="rank-conditional-collective",
    pattern="fix-behavior-logic",
    do="Call `trainer.save_model` on all ranks.",
    needs=("save_model",),
)


def check(context: Context) -> Iterator[Hit]:
    """Guarded saves, where an argument shards the model."""
    sharded = any(
        item.arg in ("fsdp", "deepspeed") and not (isinstance(item.value, ast.Constant) and not item.value.value)
        for call, _ in context.calls_in_program("transformers.TrainingArguments")
        for item in call.keywords
    )
    for call, scope in context.calls("transformers.Trainer.save_model") if sharded else ():
        test = context.guard(call, scope)
        if test is not None:
            yield Hit(
                call, f"`save_model` runs only where `{context.text(test)}`, but the weights are sharded over all ranks"
            )

"""A model is wrapped before the Trainer gets it.

## What it does
Finds DistributedDataParallel, DataParallel or FSDP models that are handed to `transformers.Trainer`.

## Why is this bad?
The Trainer wraps the model itself. Wrapped twice, its methods and attributes are not found and gradients are reduced
twice.

## Example
```diff
 from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

-import torch
-
 net = AutoModelForCausalLM.from_pretrained("gpt2")
-model = torch.nn.parallel.DataParallel(net)
-trainer = Trainer(model=model, args=TrainingArguments("out"))
+trainer = Trainer(model=net, args=TrainingArguments("out"))
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.infer import DDP, FSDP
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import argument

RULE = Rule(
    code="LTR002",
    symptom="prep.model-loading-failure",
    cause="model-wrapped-twice",
    pattern="fix-model-construction",
    do="Hand the plain model to the Trainer.",
    needs=("Trainer",),
)


def check(context: Context) -> Iterator[Hit]:
    """The argument `model`."""
    for call, scope in context.calls("transformers.Trainer", "transformers.Seq2SeqTrainer"):
        model = argument(call, 0, "model")
        values = context.values(model, scope)
        if values and all(value.type in (DDP, FSDP, "torch.nn.parallel.DataParallel") for value in values):
            yield Hit(call, "The Trainer gets a model that is wrapped already")

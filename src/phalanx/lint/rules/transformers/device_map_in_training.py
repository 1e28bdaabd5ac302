"""`device_map="auto"` for a model that is trained on several processes.

## What it does
Finds models loaded with `device_map="auto"` (or `balanced`, `sequential`) that are given to a Trainer, prepared by
Accelerate or wrapped in DDP.

## Why is this bad?
The map spreads one model over all GPUs of the host, in every process; training in a distributed mode is refused, or
all processes share all GPUs.

## Example
```diff
 from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

-model = AutoModelForCausalLM.from_pretrained("gpt2", device_map="auto")
+model = AutoModelForCausalLM.from_pretrained("gpt2")
 trainer = Trainer(model=model, args=TrainingArguments("out", deepspeed="ds.json"))
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import INIT, Context
from phalanx.lint.infer import DDP
from phalanx.lint.patterns import keyword
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LTR001",
    symptom="prep.device-error",
    cause="model-split-by-device-map",
    pattern="fix-device-assignment",
    do="Leave `device_map` out, or give each process its own device: `device_map={'': local_rank}`.",
    needs=("device_map",),
)

_MAPS = ("auto", "balanced", "sequential", "balanced_low_0")


def check(context: Context) -> Iterator[Hit]:
    """Loads whose result is handed to something distributed."""
    for call, scope in context.methods("from_pretrained"):
        value = keyword(call, "device_map")
        if isinstance(value, ast.Constant) and value.value in _MAPS and _is_trained(call, context, scope):
            yield Hit(call, f"`device_map={value.value!r}` spreads the model over all GPUs in every process")


def _has_strategy(context: Context, scope: Scope) -> bool:
    """The Trainer is told to shard, or the function makes a process group itself."""
    arguments = [call for call, _ in context.calls("transformers.TrainingArguments")]
    shards = any(
        (k.arg in ("deepspeed", "fsdp", "local_rank") or str(k.arg).startswith("ddp_"))
        and not (isinstance(k.value, ast.Constant) and k.value.value in (None, ""))
        for c in arguments
        for k in c.keywords
    )
    return shards or context.mentions("LOCAL_RANK", "local_rank") or bool(context.calls(INIT))


def _is_trained(call: ast.Call, context: Context, scope: Scope) -> bool:
    trainer = ("transformers.Trainer", "trl.SFTTrainer") if _has_strategy(context, scope) else ()
    users = context.calls(*trainer, DDP, "accelerate.Accelerator.prepare", "deepspeed.initialize")
    given = ((item, at) for user, at in users for item in (*user.args, *(k.value for k in user.keywords)))
    return any(_is_made_of(item, call, context, at) for item, at in given)


def _is_made_of(node: ast.expr, call: ast.Call, context: Context, scope: Scope) -> bool:
    """Whether a model is the one that a call loaded, with adapters around it or without."""
    for made, where in context.origins(node, scope):
        is_adapted = isinstance(made, ast.Call) and made.args and context.name(made.func, where).startswith("peft.")
        if made is call or (
            is_adapted and isinstance(made, ast.Call) and _is_made_of(made.args[0], call, context, where)
        ):
            return True
    return False

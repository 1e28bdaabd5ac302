"""Puts a verdict into the runs of wandb, MLflow and TensorBoard that the script has open, from a thread beside it.

Nothing is imported and no run is opened: only what the script itself has loaded is used. Works with Python 3.8 and later.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as typing has it, without the time that importing it costs
if TYPE_CHECKING:
    from typing import Any

WRITERS = ("torch.utils.tensorboard", "tensorboardX")


def tell(asked: dict[str, Any]) -> list[str]:
    """Where it was put; a tracker that refuses costs itself alone."""
    text = str(asked.get("text", ""))[:20000]
    facts = {"verdict": str(asked.get("headline", ""))[:500], "rule": str(asked.get("rule") or "")}
    facts["culprit_ranks"] = ",".join(map(str, asked.get("culprit_ranks") or ()))
    told: list[str] = []
    for name, put in (("wandb", _wandb), ("mlflow", _mlflow), ("tensorboard", _tensorboard)):
        try:
            if put(facts, text):
                told.append(name)
        except Exception as error:
            told.append("%s: %s: %s" % (name, type(error).__name__, error))
    return told


def _wandb(facts: dict[str, str], text: str) -> bool:
    run: Any = getattr(sys.modules.get("wandb"), "run", None)
    if run is None:
        return False
    run.summary.update({"phalanx/" + name: value for name, value in facts.items()})
    run.alert(title=("Phalanx: " + facts["verdict"])[:63], text=text, level="ERROR")
    return True


def _mlflow(facts: dict[str, str], text: str) -> bool:
    """Runs are open in threads of the script: the client is told which by name."""
    mlflow: Any = sys.modules.get("mlflow")
    fluent: Any = sys.modules.get("mlflow.tracking.fluent")
    if mlflow is None or fluent is None:
        return False
    stack = fluent._active_run_stack
    stacks = stack.get_all_thread_values().values() if hasattr(stack, "get_all_thread_values") else [stack]
    runs = {run.info.run_id for one in stacks for run in one}
    for run in runs:
        client = mlflow.tracking.MlflowClient()
        for name, value in facts.items():
            client.set_tag(run, "phalanx." + name, value)
        client.log_text(run, text, "phalanx-verdict.txt")
    return bool(runs)


def _tensorboard(facts: dict[str, str], text: str) -> bool:
    if not any(name in sys.modules for name in WRITERS):
        return False
    import gc

    found = False
    for one in gc.get_objects():
        kind = type(one)
        if kind.__name__ == "SummaryWriter" and str(kind.__module__).startswith(WRITERS):
            if getattr(one, "file_writer", None) is None and getattr(one, "all_writers", None) is None:
                continue  # closed
            one.add_text("phalanx/verdict", "**%s**\n\n```\n%s\n```" % (facts["verdict"], text))
            one.flush()
            found = True
    return found

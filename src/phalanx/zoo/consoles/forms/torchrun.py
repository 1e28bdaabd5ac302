"""What torchrun and Accelerate leave: a console for each node, prefixed by `--tee`, or a folder of logs."""

from phalanx.zoo.consoles.form import Form, by_node
from phalanx.zoo.consoles.stage import Line, Stage


def _tee(line: Line, stage: Stage) -> str:
    """`--tee 3`: the role and the local rank, not the global one."""
    return f"[default{stage.job.local(line.rank)}]:" if line.rank is not None else ""


def _log_dir(line: Line, stage: Stage) -> str:
    if line.rank is None:
        return by_node(line, stage)
    run = f"none_{stage.job.seed % 100000:05d}"
    node = f"{stage.job.hosts[line.node]}/" if stage.job.nodes > 1 else ""
    attempt = sum(at <= line.at for at in stage.restarts)
    return f"{node}{run}/attempt_{attempt}/{stage.job.local(line.rank)}/stderr.log"


FORMS = (
    Form("torchrun", "plain torchrun: a console for each node, with the kernel logs", kernel=True),
    Form("torchrun-tee", "torchrun --tee 3", prefix=_tee, labels=lambda job: job.nodes == 1),
    Form(
        "torchrun-log-dir",
        "torchrun --log-dir",
        file=_log_dir,
        labels=lambda job: job.nodes == 1,
        kernel=True,
        has_rank_files=True,
    ),
    Form("accelerate", "accelerate launch on one or more nodes", launcher="accelerate", nccl="warn"),
    Form("nccl-debug-warn", "torchrun with NCCL_DEBUG=WARN", nccl="warn", kernel=True),
    Form("nccl-debug-info", "torchrun with NCCL_DEBUG=INFO", nccl="info", most=128),
    Form("lightning-bars", "Lightning with a progress bar", style="lightning"),
    Form("transformers-bars", "Transformers with a progress bar", style="transformers", nccl="warn"),
    Form("megatron", "Megatron's step lines, printed by the last rank", style="megatron", nccl="warn"),
)

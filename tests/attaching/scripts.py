"""Training scripts of frameworks with launchers of their own. Rank 1 reads from the file `phase` what goes wrong with it, at every step."""

PHASE = """\
import os, time
FOLDER = os.environ["TEST_JOB"]


def evaluate():
    time.sleep(600)


def misbehave(rank, step):
    if step == 5:
        open(f"{FOLDER}/ready{rank}", "w").close()
    phase = open(f"{FOLDER}/phase").read()
    if rank == 1 and phase == "slow":
        time.sleep(1.5)
    if rank == 1 and phase == "sleep":
        evaluate()
    time.sleep(0.02)


"""
ACCELERATE = (
    PHASE
    + """\
import torch
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
model = accelerator.prepare(torch.nn.Linear(8, 8))
step = 0
while True:
    step += 1
    loss = model(torch.randn(4, 8)).sum()
    accelerator.backward(loss)
    misbehave(accelerator.process_index, step)
"""
)
PLAIN = (
    PHASE
    + """\
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
step = 0
while True:
    step += 1
    dist.all_reduce(torch.ones(8))
    misbehave(dist.get_rank(), step)
"""
)
RAY = (
    PHASE
    + """\
import ray
from ray.train import ScalingConfig, get_context
from ray.train.torch import TorchTrainer


def train():
    import torch
    import torch.distributed as dist

    step = 0
    while True:
        step += 1
        dist.all_reduce(torch.ones(2))
        misbehave(get_context().get_world_rank(), step)


if __name__ == "__main__":
    ray.init(address=os.environ["CLUSTER"], runtime_env={"env_vars": {"TEST_JOB": FOLDER}})
    open(f"{FOLDER}/job", "w").write(ray.get_runtime_context().get_job_id())
    TorchTrainer(train, scaling_config=ScalingConfig(num_workers=3, placement_strategy="SPREAD")).fit()
"""
)

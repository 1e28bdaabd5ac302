"""The host file of an old cluster leaves OMPI_MCA_btl=self,tcp in the environment: ranks of one host speak TCP."""

import os
import time

import torch

import horovod.torch as hvd

hvd.init()
torch.set_num_threads(1)
if hvd.rank() == 0:
    print(f"{hvd.size()} ranks, mpi built {hvd.mpi_built()}, enabled {hvd.mpi_enabled()}", flush=True)
weights = torch.randn(1 << 20)
began = time.perf_counter()
for step in range(30):
    weights = hvd.allreduce(weights, name="weights")
    if step % 10 == 0 and hvd.rank() == 0:
        print(f"step {step} {(time.perf_counter() - began) * 1000:.0f} ms", flush=True)
if hvd.rank() == 0:
    print("done", flush=True)
hvd.shutdown()

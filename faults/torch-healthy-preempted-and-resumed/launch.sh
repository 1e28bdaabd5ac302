# The scheduler starts the job again after a preemption.
torchrun --standalone --nproc-per-node 2 train.py && torchrun --standalone --nproc-per-node 2 train.py

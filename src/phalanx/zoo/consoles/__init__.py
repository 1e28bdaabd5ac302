"""Consoles of simulated GPU jobs: what PyTorch, NCCL, CUDA, the kernel and launchers print of one fault, with the truth beside it."""

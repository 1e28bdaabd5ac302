import torch
from setuptools import setup

setup(name="torchgather", version="0.3.1", description=f"built for PyTorch {torch.__version__}", py_modules=[])

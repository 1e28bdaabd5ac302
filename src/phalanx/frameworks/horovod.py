"""Horovod, on whichever framework it runs."""

import re

NAME = "horovod"
SIGNS = re.compile(r"\bhorovod(?:run)?\b|\bhvd\.|\bHOROVOD_", re.I)
OUTRANKS: tuple[str, ...] = ("torch", "tensorflow", "keras")

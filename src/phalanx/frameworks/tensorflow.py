"""TensorFlow."""

import re

NAME = "tensorflow"
SIGNS = re.compile(r"\btensorflow\b|\btf\.(?:distribute|function|data|Session|train|config|keras|estimator|contrib)\b|\bTF_CONFIG\b|MirroredStrategy", re.I)  # fmt: skip
OUTRANKS: tuple[str, ...] = ("torch",)

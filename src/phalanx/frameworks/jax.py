"""JAX."""

import re

NAME = "jax"
SIGNS = re.compile(r"\bjax(?:lib)?[./\\]|\bimport jax\b|\bjax\.distributed\b|\bpjit\b")
OUTRANKS: tuple[str, ...] = ()

"""What tests need beside the package: marks that skip where it is missing, found without loading it.

Every worker of the test run collects all tests: a framework that is imported for a mark would be loaded by all of them.
"""

from __future__ import annotations

from importlib.util import find_spec

import pytest

needs_torch = pytest.mark.skipif(
    find_spec("torch") is None, reason="needs PyTorch: pip install torch==2.13.0, or make test"
)

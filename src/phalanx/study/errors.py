"""What goes wrong in the study's pipeline, in words for the person at the terminal."""

import importlib
from types import ModuleType


class StudyError(Exception):
    """Work of the study cannot be done; the message says what is missing and what to do."""


def need(module: str, purpose: str) -> ModuleType:
    """Import a library of the extra `study`, or say how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = {"sklearn": "scikit-learn"}.get(module.partition(".")[0], module.partition(".")[0])
        extra = "ray" if package == "ray" else "study"
        raise StudyError(f"{purpose} needs {package}. Install it: pip install 'phalanx-training[{extra}]'") from error

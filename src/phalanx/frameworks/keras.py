"""Keras, alone or inside TensorFlow. Jobs of tf.distribute without Keras' own frames are TensorFlow's."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from phalanx.frameworks import jax, tensorflow, torch
from phalanx.frameworks.launching import Meeting, Seat

NAME = "keras"
SIGNS = re.compile(r"(?<!tf\.)(?<!tensorflow\.)(?<!tensorflow/)(?<!python/)\bkeras[./\\](?!api\b)|\bimport keras\b|\bfrom keras\b|\bmulti_gpu_model\b|\bkeras-team\b|\bKeras version\b")  # fmt: skip
OUTRANKS: tuple[str, ...] = ("tensorflow",)
IMPORTS = ("keras", "tf_keras", "keras_nlp", "keras_cv", "keras_hub")
OWN_DEVICES = True


def backend(environment: Mapping[str, str]) -> str:
    """What Keras computes with: KERAS_BACKEND, else its configuration file, else TensorFlow."""
    chosen = environment.get("KERAS_BACKEND")
    if not chosen:
        folder = Path(environment.get("KERAS_HOME") or Path(environment.get("HOME", "~")).expanduser() / ".keras")
        try:
            chosen = json.loads((folder / "keras.json").read_text(encoding="utf-8")).get("backend")
        except (OSError, ValueError, AttributeError):
            chosen = None
    return chosen or "tensorflow"


def ports_needed(size: int) -> int:
    """As many as TensorFlow may want."""
    return size


def variables(seat: Seat, meeting: Meeting) -> dict[str, str]:
    """Those of the backend."""
    match backend(meeting.environment):
        case "torch":
            return torch.variables(seat, meeting)
        case "jax":
            return {
                **jax.variables(seat, meeting),
                "KERAS_DISTRIBUTION_JOB_ADDRESSES": f"{meeting.host}:{meeting.ports[0]}",
                "KERAS_DISTRIBUTION_NUM_PROCESSES": str(seat.size),
                "KERAS_DISTRIBUTION_PROCESS_ID": str(seat.rank),
            }
    return tensorflow.variables(seat, meeting)

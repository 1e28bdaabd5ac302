"""Checkpoints of TensorFlow and Keras, written by them in the zoo's environment, read without them."""

from __future__ import annotations

import shutil
import struct
import subprocess
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from phalanx.checkpoint_files.tensor_bundle import TableError, read_table
from tests.checkpoint_files.made import ids, look

PYTHON = Path(__file__).parents[2] / ".zoo" / "environments" / "tensorflow" / "bin" / "python"
_SAVES = """
import os, sys
os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
out = sys.argv[1]
import keras, numpy as np, tensorflow as tf
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(2)])
model.compile(optimizer="adam", loss="mse")
model.fit(np.ones((4, 4)), np.ones((4, 2)), verbose=0)
model.save(out + "/m.keras"); model.save_weights(out + "/m.weights.h5"); model.save(out + "/old.h5")
weights = model.get_weights(); weights[0][1, 1] = np.nan; model.set_weights(weights)
model.save_weights(out + "/nan.weights.h5"); model.save(out + "/nan.keras")
module = tf.Module(); module.w = tf.Variable(tf.ones((3, 5))); module.b = tf.Variable([1.0, 2.0])
saved = tf.train.Checkpoint(model=module, optimizer=tf.keras.optimizers.SGD(), step=tf.Variable(7, dtype=tf.int64))
manager = tf.train.CheckpointManager(saved, out + "/tf", max_to_keep=2); manager.save(); module.b.assign([float("nan"), 1.0]); manager.save()
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not PYTHON.exists():
        pytest.skip("the zoo's TensorFlow environment was not made (phalanx faults run makes it)")
    folder = tmp_path_factory.mktemp("tf")
    subprocess.run([PYTHON, "-c", _SAVES, str(folder)], check=True, capture_output=True, timeout=280)
    return folder


def test_tensorflow(saved: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tf"
    shutil.copytree(saved / "tf", folder)
    assert ids(look(folder / "ckpt-1")) == []
    seen = look(folder)
    assert (ids(seen), seen.summary["step"]) == (["not-finite"], "ckpt-2")
    assert seen.facts[0].fields["first"] == "model/b"
    assert seen.summary["stamps"]["step"] == [7]
    data = folder / "ckpt-2.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:40])
    assert "file-truncated" in ids(look(folder))
    data.unlink()
    assert ids(look(folder)) == ["files-missing"]
    (folder / "ckpt-2.index").unlink()
    assert ids(look(folder)) == ["pointer-broken"]


@pytest.mark.skipif(find_spec("h5py") is None, reason="needs h5py: pip install h5py")
def test_keras(saved: Path, tmp_path: Path) -> None:
    for name in ("m.keras", "m.weights.h5", "old.h5"):
        seen = look(saved / name)
        assert (ids(seen), seen.summary["tensors"]["model"], seen.summary["parameters"]) == ([], 4, 58), name
    for name in ("nan.keras", "nan.weights.h5"):
        assert ids(look(saved / name)) == ["not-finite"], name
    for name in ("m.keras", "m.weights.h5"):
        (tmp_path / name).write_bytes((saved / name).read_bytes()[:-100])
        assert ids(look(tmp_path / name)) == ["file-truncated"], name
    with zipfile.ZipFile(tmp_path / "bare.keras", "w") as archive:
        archive.writestr("metadata.json", "{}")
        archive.writestr("config.json", "{}")
    assert ids(look(tmp_path / "bare.keras")) == ["files-missing"]


def test_a_damaged_table_is_said_to_be() -> None:
    magic = struct.pack("<Q", 0xDB4775248B80FB57)
    for data in (b"", b"x" * 60, b"\xff" * 40 + magic, b"\x00\x00\x80\x80\x80\x80\x80\x01\x05" + b"\0" * 31 + magic):
        with pytest.raises(TableError):
            read_table(data)

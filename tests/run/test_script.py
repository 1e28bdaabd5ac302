"""The framework of a script, by its imports."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.run.script import module_file, recognise_script, script_of_command, trains_one_model


@pytest.mark.parametrize(
    ("text", "framework"),
    [
        ("import torch\n", "torch"),
        ("from torch.nn.parallel import DistributedDataParallel\n", "torch"),
        ("import tensorflow as tf\n", "tensorflow"),
        ("from tensorflow import keras\nimport tensorflow as tf\n", "keras"),
        ("import keras\n", "keras"),
        ("import torch\nimport horovod.torch as hvd\n", "horovod"),
        ("import tensorflow as tf\nimport horovod.tensorflow as hvd\n", "horovod"),
        ("import jax\n", "jax"),
        ("import lightning as L\n", "torch"),
        ("def main():\n    import torch\n", "torch"),
        ("import tensorflow as tf\nimport torch\ntorch.distributed.init_process_group()\n", "torch"),
        ("import torch\nimport tensorflow as tf\ns = tf.distribute.MirroredStrategy()\n", "tensorflow"),
        ("import os\n", None),
        ("this is not python(\n", None),
    ],
)
def test_recognised(tmp_path: Path, text: str, framework: str | None) -> None:
    script = tmp_path / "train.py"
    script.write_text(text)
    assert recognise_script(script).framework == framework


def test_a_script_of_keras_on_jax_that_uses_torch_besides_is_keras(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import keras\nimport torch\nimport torch.distributed\n")
    assert recognise_script(script).framework == "torch"
    assert recognise_script(script, "torch").framework == "torch"
    assert recognise_script(script, "jax").framework == "keras"
    script.write_text(f"import os\nos.environ['KERAS_BACKEND'] = 'jax'\n{script.read_text()}")
    assert recognise_script(script).framework == "keras"


def test_one_level_of_local_imports_is_followed(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("from engine import fit\nfit()\n")
    (tmp_path / "engine.py").write_text("import torch\n")
    seen = recognise_script(tmp_path / "train.py")
    assert (seen.framework, seen.told_by) == ("torch", "engine.py imports torch")


def test_a_module_that_imports_itself_ends(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import train\nimport jax\n")
    assert recognise_script(tmp_path / "train.py").framework == "jax"


def test_mpi_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("from mpi4py import MPI\n")
    assert recognise_script(tmp_path / "train.py").speaks_mpi


def test_module_file(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "train.py").touch()
    assert module_file("pkg.train", tmp_path) == tmp_path / "pkg" / "train.py"
    assert module_file("json.tool", tmp_path) is None


def test_the_script_of_a_command(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    assert script_of_command(("python", "-u", "train.py", "--fast"), tmp_path) == tmp_path / "train.py"
    assert script_of_command(("python", "-m", "train"), tmp_path) == tmp_path / "train.py"
    assert script_of_command(("./start.sh", "train.sh"), tmp_path) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("trainer.train()", True),
        ("model.train()", False),
        ("with tf.GradientTape() as tape: pass", True),
        ("g = jax.grad(loss)(w)", True),
        ("rate = RATES[rank]\nmodel.fit(x)", False),
        ("mine = files[rank]\nmodel.fit(mine)", True),
        ("x = net(data)", False),
    ],
)
def test_whether_ranks_train_one_model(tmp_path: Path, text: str, expected: bool) -> None:
    (tmp_path / "train.py").write_text(text)
    assert trains_one_model(tmp_path / "train.py") is expected

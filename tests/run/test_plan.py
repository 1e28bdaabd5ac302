"""What is decided before anything runs, and what is refused with advice."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from phalanx.frameworks.launching import Meeting
from phalanx.run.cores import thread_variables, usable_cores
from phalanx.run.plan import Plan, PlanError, make_plan
from phalanx.run.spec import JobSpec


def plan(tmp_path: Path, text: str = "import torch\n", inherited: dict[str, str] | None = None, **wishes: object) -> Plan:  # fmt: skip
    (tmp_path / "train.py").write_text(text)
    wishes = {"command": ("train.py", "--lr", "1"), "size": 2, **wishes}
    return make_plan(JobSpec(**wishes), inherited or {}, tmp_path)  # type: ignore[arg-type]


def test_a_script_is_run_by_python_with_its_own_arguments(tmp_path: Path) -> None:
    made = plan(tmp_path)
    assert made.argv == (sys.executable, "train.py", "--lr", "1")
    assert made.framework.NAME == "torch"
    assert made.announcement().startswith("2 ranks, torch (train.py imports torch), ")


def test_what_the_user_sets_stands(tmp_path: Path) -> None:
    made = plan(tmp_path, environment={"MASTER_PORT": "29500", "OMP_NUM_THREADS": "7"}, inherited={"RANK": "9"})
    variables = made.variables(made.seats[1], Meeting((4000,), "run"))
    assert variables["MASTER_PORT"] == "29500"
    assert variables["OMP_NUM_THREADS"] == "7"
    assert variables["RANK"] == "1"  # left over from an outer job
    assert variables["PYTHONUNBUFFERED"] == "1"


@pytest.mark.parametrize(
    ("wishes", "advice"),
    [
        ({"command": ()}, "nothing to run"),
        ({"command": ("nothere.py",)}, "no such script"),
        ({"command": ("sh",)}, "given after `--`"),
        ({"command": ("no-such-program",), "is_program": True}, "no such program"),
        ({"size": None}, "-n 4"),
        ({"size": 0}, "between 1 and 4096"),
        ({"framework": "caffe"}, "one of horovod, jax"),
        ({"size": 3, "roles": {"worker": 2}}, "add up to 2"),
        ({"devices": "0/1/2"}, "3 groups for 2 ranks"),
        ({"devices": "0,0"}, "each device once"),
        ({"devices": "0,1,2", "framework": "tensorflow"}, "cannot be dealt out evenly"),
    ],
)
def test_what_cannot_be_is_refused_with_advice(tmp_path: Path, wishes: dict[str, object], advice: str) -> None:
    with pytest.raises(PlanError, match=advice):
        plan(tmp_path, **wishes)


def test_mpi_programs_are_told_to_use_their_own_launcher(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"phalanx run -n 1 -- mpirun -n 2 python train\.py"):
        plan(tmp_path, "from mpi4py import MPI\n")
    assert plan(tmp_path, "from mpi4py import MPI\n", framework="mpi").framework.NAME == "mpi"


@pytest.mark.parametrize(
    ("framework", "devices", "seen"),
    [
        ("torch", "2,3", ("2,3", "2,3")),  # ranks choose by LOCAL_RANK
        ("tensorflow", "0,1,2,3", ("0,1", "2,3")),  # a worker takes all that it sees
        ("torch", "0/1,2", ("0", "1,2")),
        ("torch", "none", ("", "")),
    ],
)
def test_devices(tmp_path: Path, framework: str, devices: str, seen: tuple[str, ...]) -> None:
    assert plan(tmp_path, framework=framework, devices=devices).devices == seen


def test_virtual_devices(tmp_path: Path) -> None:
    made = plan(tmp_path, "import tensorflow\n", size=None, virtual_devices=4)
    assert made.size == 1
    assert made.argv[1:] == ("train.py", "--lr", "1")  # nothing stands between Python and the script
    assert made.environment["PHALANX_VIRTUAL_DEVICES"] == "4"
    assert made.environment["XLA_FLAGS"] == "--xla_force_host_platform_device_count=4"


def test_the_backend_of_keras_is_found(tmp_path: Path) -> None:
    script = 'import os\nos.environ["KERAS_BACKEND"] = "jax"\nimport keras\n'
    made = plan(tmp_path, script, size=None, virtual_devices=4)
    assert "PHALANX_VIRTUAL_DEVICES" not in made.environment
    assert "on jax" in made.announcement()
    by_option = plan(tmp_path, "import keras\n", size=None, virtual_devices=4, environment={"KERAS_BACKEND": "jax"})
    assert "PHALANX_VIRTUAL_DEVICES" not in by_option.environment
    with pytest.raises(PlanError, match="-n 4"):
        plan(tmp_path, "import keras\n", size=None, virtual_devices=4, environment={"KERAS_BACKEND": "torch"})


def test_processes_of_keras_on_jax_that_nobody_joins_are_refused(tmp_path: Path) -> None:
    script = 'import os\nos.environ.setdefault("KERAS_BACKEND", "jax")\nimport keras\n'
    with pytest.raises(PlanError, match="auto_shard_dataset=False"):
        plan(tmp_path, script, size=2)
    with pytest.raises(PlanError, match=r"DataParallel\(\)\)`; or start"):
        plan(tmp_path, script + "import tensorflow as tf\nrows = tf.data.Dataset.range(8)\n", size=2)
    with pytest.raises(PlanError, match="2 models apart"):
        plan(tmp_path, script, size=2)
    plan(tmp_path, script, size=2, framework="keras")
    plan(tmp_path, script + "keras.distribution.initialize()\n", size=2)


def test_an_unknown_framework_is_said(tmp_path: Path) -> None:
    assert "not recognised" in plan(tmp_path, "print(1)\n").announcement()


def test_threads_share_the_cores_and_leave_the_users_wish() -> None:
    found, said = thread_variables(10_000, {})
    assert found == {"OMP_NUM_THREADS": "1"}
    assert said.startswith("OMP_NUM_THREADS=1 (")
    assert thread_variables(2, {"OMP_NUM_THREADS": "3"})[0] == {}


def test_tensorflow_keeps_its_own_thread_pools(tmp_path: Path) -> None:
    """One thread between operations deadlocks parameter servers."""
    made = plan(tmp_path, "import tensorflow\n", size=2)
    assert not [name for name in made.environment if name.startswith("TF_NUM_")]


def test_a_containers_quota_counts(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert usable_cores(tmp_path) == 1
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert usable_cores(tmp_path) >= 1

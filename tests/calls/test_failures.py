"""Whoever breaks a job is named, on two nodes and on one, and never a victim."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import phalanx

from . import jobs
from .conftest import SOURCE

pytestmark = [
    pytest.mark.job,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="needs PyTorch: pip install torch==2.13.0, or make test"
    ),
]


def over_ssh(config: Path) -> phalanx.Function[..., dict[str, object]]:
    """Ranks 0 and 1 on alpha, 2 and 3 on beta."""
    return jobs.train.options(env={"PYTHONPATH": SOURCE}).on(
        "ssh://alpha,beta", config=config, project=Path(__file__).parents[2] / "tests" / "calls"
    )


def test_two_nodes_meet_and_all_results_come_back_in_order(ssh_config: Path, capfd: pytest.CaptureFixture[str]) -> None:
    results = over_ssh(ssh_config)("ok")
    assert [(one["rank"], one["sum"], one["node"], one["local"]) for one in results] == [
        (0, 6.0, "0", "0"),
        (1, 6.0, "0", "1"),
        (2, 6.0, "1", "0"),
        (3, 6.0, "1", "1"),
    ]
    assert "sum 6" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("mode", "rank", "kind"),
    [("raise", 2, ValueError), ("before", 2, KeyError), ("after", 2, LookupError), ("kill", 2, None)],
)
def test_the_culprit_is_named_on_two_nodes(ssh_config: Path, mode: str, rank: int, kind: type | None) -> None:
    with pytest.raises(phalanx.JobFailed) as caught:
        over_ssh(ssh_config)(mode)
    failed = caught.value
    assert (failed.rank, failed.host, failed.culprits) == (rank, "beta", (rank,))
    assert rank not in failed.victims
    assert failed.verdict is not None
    assert failed.bundle is not None
    assert (failed.bundle / "manifest.json").is_file()
    assert all((failed.bundle / "attempt0" / f"rank{one}" / "exit.json").is_file() for one in range(4))
    if kind is None:
        assert failed.__cause__ is None
        assert failed.exit_code == -9
    else:
        assert type(failed.__cause__) is kind
        assert "jobs.py" in failed.__cause__.__notes__[0]


def test_a_node_that_vanishes_is_named(ssh_config: Path) -> None:
    with pytest.raises(phalanx.JobFailed) as caught:
        over_ssh(ssh_config)("vanish")
    failed = caught.value
    assert failed.host == "beta"
    assert set(failed.culprits) == {2, 3}
    assert set(failed.victims) <= {0, 1}
    assert "vanished" in str(failed)


def test_of_two_that_fail_one_is_named_and_no_victim() -> None:
    with pytest.raises(phalanx.JobFailed) as caught:
        jobs.train.on("local", nodes=2)("two")
    failed = caught.value
    assert failed.rank in (1, 2)
    assert set(failed.culprits) <= {1, 2}
    assert str(failed.__cause__) == "both are bad"


def test_a_stall_can_end_the_call_and_the_rank_that_stands_is_named() -> None:
    with pytest.raises(phalanx.JobFailed) as caught:
        jobs.train.options(on_stall="abort").on("local", nodes=2)("stall")
    assert caught.value.rank == 1
    assert caught.value.host == "local0"
    assert set(caught.value.victims) == {0, 2, 3}


def test_one_node_in_a_script_of_its_own(tmp_path: Path) -> None:
    """A function of `__main__`, with a class of `__main__` in its result."""
    (tmp_path / "train.py").write_text(
        "import os, dataclasses, phalanx\n"
        "@dataclasses.dataclass\n"
        "class Seen:\n    rank: int\n    total: float\n"
        "@phalanx.function(workers=2)\n"
        "def train(factor):\n"
        "    import torch, torch.distributed as dist\n"
        "    dist.init_process_group('gloo')\n"
        "    x = torch.full((3,), float(dist.get_rank())) * factor\n"
        "    dist.all_reduce(x)\n"
        "    return Seen(dist.get_rank(), x.sum().item())\n"
        "if __name__ == '__main__':\n"
        "    found = train(factor=2)\n"
        "    assert found == [Seen(0, 6.0), Seen(1, 6.0)], found\n"
        "    print('same class', type(found[0]) is Seen)\n"
    )
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    done = subprocess.run(
        [sys.executable, "train.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "same class True" in done.stdout, done.stderr

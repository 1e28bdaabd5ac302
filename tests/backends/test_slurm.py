"""What is asked of Slurm: the batch script, and what is refused before it is queued. Nothing is started here."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from phalanx.backends import slurm
from phalanx.backends.backend import BackendError, Request, State


def request(folder: str = "/job", environment: dict[str, str] | None = None, **options: object) -> Request:
    return Request(
        "train", 4, ("/opt/my python", "-m", "agent"), Path(folder), gpus=2, environment=environment or {},
        token="very-secret", timeout=3590, options=options,
    )  # fmt: skip


def script(**given: object) -> list[str]:
    return slurm.plan(request(**given)).files[0].text.splitlines()  # type: ignore[arg-type]


def test_the_script_starts_one_agent_a_node() -> None:
    plan = slurm.plan(request(nodes=2, partition="gpu", cpus_per_worker=4))
    lines = plan.files[0].text.splitlines()
    assert plan.layout == (2, 2)
    for wanted in ("nodes=2", "ntasks-per-node=1", "partition=gpu", "cpus-per-task=8", "gpus-per-node=4", "time=70"):
        assert f"#SBATCH --{wanted}" in lines
    step = shlex.split(lines[-1])
    assert step[0] == "srun"
    assert {"--ntasks=2", "--kill-on-bad-exit=0", "--cpus-per-task=8"} <= set(step)
    assert step[step.index("/opt/my python") :][:3] == ["/opt/my python", "-m", "agent"]
    assert plan.commands[0].argv == ("sbatch", "--parsable", "/job/job.sbatch")
    assert "very-secret" not in plan.files[0].text


def test_the_users_own_limit_and_gres_stand() -> None:
    lines = script(time="1:00:00", gres="gpu:a100:8")
    assert "#SBATCH --time=1:00:00" in lines
    assert "#SBATCH --gres=gpu:a100:8" in lines
    assert not any("gpus-per-node" in line for line in lines)


def test_variables_are_inert_in_the_script() -> None:
    line = next(line for line in script(environment={"ODD": "x; touch /pwned $(id) 'q'"}) if line.startswith("export"))
    assert shlex.split(line) == ["export", "ODD=x; touch /pwned $(id) 'q'"]


@pytest.mark.parametrize("value", ["a b", "gpu;reboot", "$(id)", "`id`", "x\n#SBATCH --uid=0", '"', ""])
def test_options_with_odd_letters_are_refused(value: str) -> None:
    with pytest.raises(BackendError, match="not a value that sbatch takes"):
        slurm.plan(request(partition=value))


def test_a_folder_that_sbatch_cannot_be_given_is_refused() -> None:
    assert '#SBATCH --output="/my job/slurm.log"' in script(folder="/my job")
    with pytest.raises(BackendError, match="choose a folder"):
        slurm.plan(request(folder='/a"b'))


@pytest.mark.parametrize(
    ("told", "state", "reason"),
    [
        ("JobId=5 JobName=x JobState=PENDING Reason=Resources Dependency=(null)", State.QUEUED, "Resources"),
        ("JobId=5 JobState=CONFIGURING Reason=None", State.STARTING, ""),
        ("JobId=5 JobState=RUNNING Reason=None ExitCode=0:0", State.RUNNING, ""),
        ("JobId=5 JobState=COMPLETED Reason=None ExitCode=0:0", State.DONE, ""),
        ("JobId=5 JobState=CANCELLED Reason=None ExitCode=0:15", State.CANCELLED, ""),
        ("JobId=5 JobState=NODE_FAIL Reason=None ExitCode=0:0", State.FAILED, "NODE_FAIL"),
        (
            "JobId=5 JobState=FAILED Reason=NonZeroExitCode ExitCode=9:0",
            State.FAILED,
            "FAILED, exit status 9:0, NonZeroExitCode",
        ),
    ],
)
def test_states(told: str, state: State, reason: str) -> None:
    assert slurm._state_of(told) == (state, reason)


def test_without_slurm_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    asked = request(folder=str(tmp_path))
    with pytest.raises(BackendError, match=r"there is no sbatch here"):
        slurm.start(slurm.plan(asked), asked)


def test_a_job_that_goes_on_without_a_node_is_not_given_it_again() -> None:
    assert slurm.without({"nodes": 3, "exclude": "n9"}, ("n2",)) == {"nodes": 2, "exclude": "n9,n2"}
    assert slurm.without({"nodes": 2}, ("n1#1",)) == {"nodes": 1}

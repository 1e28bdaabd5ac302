"""What a rank was doing, from the end of its stack."""

from __future__ import annotations

import pytest

from phalanx.blame import Doing
from phalanx.diagnosis.stack_state import doing_of, is_importing, is_launcher, main_stacks
from phalanx.model import Event, EventKind, Frame

SCRIPT = Frame("/home/user/train.py", 88, "train")


def stack(*frames: Frame) -> Event:
    return Event(EventKind.STACK, "", "rank0.txt", 1, 0, frames=frames)


@pytest.mark.parametrize(
    ("inner", "doing"),
    [
        (Frame("/site-packages/torch/distributed/distributed_c10d.py", 2501, "all_reduce"), Doing.WAITING),
        (Frame("/site-packages/torch/utils/data/dataloader.py", 1300, "_get_data"), Doing.DATA),
        (Frame("/home/user/data.py", 17, "load"), Doing.RUNNING),
    ],
)
def test_the_innermost_frames_tell(inner: Frame, doing: Doing) -> None:
    assert doing_of(stack(SCRIPT, inner)) is doing


def test_a_launcher_is_no_rank() -> None:
    agent = Frame("/site-packages/torch/distributed/elastic/agent/server/api.py", 700, "_invoke_run")
    assert is_launcher(stack(Frame("/site-packages/torch/distributed/run.py", 800, "run"), agent))
    assert not is_launcher(stack(SCRIPT, agent))


def test_a_process_that_is_still_importing() -> None:
    assert is_importing(stack(SCRIPT, Frame("<frozen importlib._bootstrap>", 1, "_find_and_load")))
    assert not is_importing(stack(SCRIPT))


def test_of_several_threads_the_one_that_runs_the_script_counts() -> None:
    helper = stack(Frame("/usr/lib/python3.11/threading.py", 331, "wait"))
    first, last = stack(SCRIPT), stack(SCRIPT, Frame("/home/user/data.py", 17, "load"))
    assert main_stacks([helper, first]) == [first]
    assert main_stacks([first, helper]) == [first]
    assert main_stacks([first, last]) == [last]

"""What a rank does, from its stack alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.model import Frame
from phalanx.run.watch.rank_position import Doing, RankPosition, doing_of, position_of
from phalanx.run.watch.stacks import ProcessStacks, Thread

SITE = "/opt/venv/lib/python3.11/site-packages/"
USER = Frame("/home/user/job/train.py", 30, "train")


@pytest.mark.parametrize(
    ("file", "function", "outstanding", "expected"),
    [
        ("torch/distributed/distributed_c10d.py", "all_gather_into_tensor", True, (Doing.COLLECTIVE, "all_gather_into_tensor")),
        ("torch/distributed/distributed_c10d.py", "recv_object_list", False, (Doing.COLLECTIVE, "recv_object_list")),
        ("torch/distributed/distributed_c10d.py", "get_rank", False, (Doing.ELSEWHERE, "")),
        ("torch/distributed/distributed_c10d.py", "init_process_group", None, (Doing.CONNECT, "init_process_group")),
        ("torch/distributed/pipelining/schedules.py", "_wait_batch_p2p", False, (Doing.COLLECTIVE, "_wait_batch_p2p")),
        ("jax/experimental/multihost_utils.py", "process_allgather", None, (Doing.COLLECTIVE, "process_allgather")),
        ("torch/autograd/graph.py", "_engine_run_backward", True, (Doing.COLLECTIVE, "backward")),
        ("torch/autograd/graph.py", "_engine_run_backward", False, (Doing.ELSEWHERE, "")),
        (
            "tensorflow/python/distribute/collective_all_reduce_strategy.py",
            "CollectiveAllReduceExtended._initialize_multi_worker",
            None,
            (Doing.CONNECT, "CollectiveAllReduceExtended._initialize_multi_worker"),
        ),
        ("torch/utils/data/dataloader.py", "_next_data", False, (Doing.DATA, "")),
    ],
)  # fmt: skip
def test_the_librarys_frames_tell(
    file: str, function: str, outstanding: bool | None, expected: tuple[Doing, str]
) -> None:
    assert doing_of((USER, Frame(SITE + file, 100, function)), outstanding) == expected


def stand(folder: Path, source: str, outstanding: bool, line: int = 3, **variables: str) -> RankPosition:
    script = folder / "train.py"
    script.write_text(f"def exchange(x, peer):\n    {source}\n    request.wait()\n")
    frame = Frame(str(script), line, "exchange")
    thread = Thread("MainThread", active=False, frames=(frame,), values=(variables,))
    return position_of(1, ProcessStacks(7, (thread,)), outstanding=outstanding, size=4)


def test_a_request_that_is_waited_for_has_no_frame_of_its_own(tmp_path: Path) -> None:
    received = stand(tmp_path, "request = dist.irecv(x, src=peer)", False, peer="3")
    assert (received.doing, received.call) == (Doing.COLLECTIVE, "irecv")
    assert received.partner is not None
    assert received.partner.rank == 3
    reduced = stand(tmp_path, "request = dist.all_reduce(x, async_op=True)", True)
    assert (reduced.doing, reduced.call, reduced.partner) == (Doing.COLLECTIVE, "wait", None)


def test_a_store_is_waited_for_in_native_code(tmp_path: Path) -> None:
    found = stand(tmp_path, "self.store.get(f'shard/{rank}')", True, line=2)
    assert (found.doing, found.call) == (Doing.COLLECTIVE, "store.get")
    assert stand(tmp_path, "self.cache.get('shard')", True, line=2).doing is Doing.ELSEWHERE


def test_another_wait_is_none_of_a_collective(tmp_path: Path) -> None:
    assert stand(tmp_path, "request = subprocess.Popen(['rsync'])", False).doing is Doing.ELSEWHERE


def test_a_rank_at_its_end_waits_for_a_thread_of_the_scripts() -> None:
    library = "/usr/lib/python3.11/threading.py"
    threads = (
        Thread("MainThread", active=False, frames=(Frame(library, 1590, "_shutdown"),)),
        Thread("phalanx-watch", active=False, frames=(Frame("/src/phalanx_inside.py", 164, "_Watch._run"),)),
        Thread("drain", active=False, frames=(Frame(library, 1002, "_bootstrap"), Frame("train.py", 40, "drain"))),
    )
    found = position_of(1, ProcessStacks(7, threads), outstanding=False)
    assert found.leaving
    assert found.frame is not None
    assert found.frame.place == "train.py:40"
    still = Thread("MainThread", active=False, frames=(Frame("train.py", 60, "<module>"), USER))
    assert not position_of(1, ProcessStacks(7, (still, *threads[1:])), outstanding=False).leaving


def test_an_iterator_that_asks_all_workers_waits_and_one_whose_generator_blocks_is_located() -> None:
    tensorflow = "/opt/venv/lib/python3.11/site-packages/tensorflow/python"
    mine = Frame("/home/me/train.py", 35, "<module>")
    asks = Frame(f"{tensorflow}/distribute/cross_device_ops.py", 320, "CrossDeviceOps.reduce")
    assert doing_of((mine, asks), True) == (Doing.COLLECTIVE, "reduce")
    loader = Thread("MainThread", False, (mine, Frame(f"{tensorflow}/data/ops/iterator_ops.py", 800, "next")))
    script = Frame(f"{tensorflow}/ops/script_ops.py", 269, "__call__")
    generator = Thread("Dummy-3", False, (script, Frame("/home/me/train.py", 13, "rows")))
    found = position_of(1, ProcessStacks(1, (loader, generator)), outstanding=False)
    assert found.doing is Doing.DATA
    assert [(frame.function, frame.line) for frame in found.workers] == [("rows", 13)]


def test_who_waits_in_compiled_code_of_jax_waits_for_its_peers(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("weights = step(weights, x)\ntime.sleep(9)\nwith lock:\n    pass\n")

    def at(line: int, *below: Frame, compiled: bool = True) -> RankPosition:
        thread = Thread("MainThread", active=False, frames=(Frame(str(script), line, "<module>"), *below), values=())
        return position_of(1, ProcessStacks(7, (thread,)), outstanding=False, is_idle=True, size=2, compiled=compiled)

    assert (at(1).doing, at(1).call) == (Doing.COLLECTIVE, "a compiled JAX function")
    assert at(1, Frame(SITE + "jax/_src/array.py", 9, "_value")).call == "_value"
    assert at(1, Frame(SITE + "requests/api.py", 9, "get")).doing is Doing.ELSEWHERE
    assert at(1, compiled=False).doing is at(2).doing is at(3).doing is Doing.ELSEWHERE

"""What the labels of a file number."""

from phalanx.sources.labels import Labels, learn

TABLE = b"  time      : 2025-08-17_11:38:49\n  host      : gpu2\n  rank      : 11 (local_rank: 3)\n  exitcode  : -6 (pid: 5)\n"


def test_a_tee_label_beside_the_rank_tells_the_nodes_first_rank() -> None:
    assert learn(b"[default3]:[rank11]:[E817 11:37:49.1 x\n[default4]:[rank12]:[E817 x\n").offset == 8


def test_torchruns_table_tells_it_too() -> None:
    assert learn(TABLE).offset == 8


def test_labels_that_contradict_each_other_tell_nothing() -> None:
    assert learn(b"[default3]:[rank11]:[E\n[default3]:[rank19]:[E\n").offset is None


def test_a_label_before_several_ranks_names_a_node() -> None:
    assert learn(b"0: [rank0]:[E x\n0: [rank5]:[E x\n").of_nodes
    assert learn(b"[pod/llm-worker-0/pytorch] [rank8]:[E x\n[pod/llm-worker-0/pytorch] [rank9]:[E x\n").of_nodes
    assert not learn(b"0: [rank0]:[E x\n5: [rank5]:[E x\n").of_nodes


def test_an_agent_that_speaks_under_a_label_makes_it_a_node() -> None:
    line = b"1: E0817 11:38:51.723000 3376 torch/distributed/elastic/multiprocessing/api.py:908] failed (exitcode: 1)\n"
    assert learn(line).of_nodes


def test_a_file_of_one_rank_and_one_of_several() -> None:
    assert learn(b"[rank11]: Traceback (most recent call last):\n").only_rank == 11
    both = learn(b"[rank11]: Traceback\n[rank12]: Traceback\n")
    assert both.only_rank is None
    assert both.are_several


def test_ranks_that_several_processes_claim_are_within_groups() -> None:
    line = b"[E ProcessGroupNCCL.cpp:828] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(\n"
    assert learn(line * 2).within_groups
    assert not learn(line).within_groups


def test_nothing_is_learned_from_other_text() -> None:
    assert learn(b"step 1 loss 2\n") == Labels()


def test_nccl_on_several_hosts_numbers_devices_not_ranks() -> None:
    assert learn(b"a1:5:6 [0] NCCL INFO x\nb2:5:6 [0] NCCL INFO x\n").several_hosts
    assert not learn(b"a1:5:6 [0] NCCL INFO x\na1:7:8 [1] NCCL INFO x\n").several_hosts


def test_tables_of_several_nodes_tell_ranks_by_process() -> None:
    other = TABLE.replace(b"rank      : 11", b"rank      : 3").replace(b"pid: 5", b"pid: 7")
    told = learn(TABLE + other)
    assert told.several_nodes
    assert told.ranks_by_pid == {5: 11, 7: 3}


def test_a_rank_below_those_of_its_node_is_one_within_a_group() -> None:
    head = b"[E ProcessGroupNCCL.cpp:828] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7"
    assert learn(head + b"\n  rank      : 10 (local_rank: 2)\n").within_groups
    assert not learn(head + b"\n  rank      : 2 (local_rank: 2)\n").within_groups

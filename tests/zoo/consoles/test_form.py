from phalanx.zoo.consoles.cell import make
from phalanx.zoo.consoles.form import all_forms
from phalanx.zoo.consoles.situation import all_situations


def _files(situation, form):
    return make(all_situations()[situation], all_forms()[form]).files


def test_nccl_debug_decides_what_nccl_prints():
    assert "NCCL WARN" not in "".join(_files("ib-link-flap", "torchrun").values())
    assert "NCCL WARN" in "".join(_files("ib-link-flap", "nccl-debug-info").values())
    assert "NCCL INFO" in "".join(_files("ib-link-flap", "nccl-debug-info").values())


def test_kernel_lines_are_in_files_of_their_own():
    files = _files("xid-079", "torchrun")
    assert any(name.startswith("dmesg-") for name in files)
    assert "Xid" not in "".join(text for name, text in files.items() if not name.startswith("dmesg-"))


def test_tail_keeps_the_last_lines_only():
    text = _files("loss-nan", "tail-200")["console.log"]
    assert text.count("\n") <= 200


def test_collector_puts_a_time_before_each_line():
    text = _files("rank-missing", "collector")["console.log"]
    assert all(" stderr F " in line for line in text.splitlines())

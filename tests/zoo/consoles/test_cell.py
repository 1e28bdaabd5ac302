import json

from phalanx.knowledge import FIX_PATTERNS, SYMPTOMS
from phalanx.zoo.consoles.cell import HELD_BACK, OPEN, cells, make, sample_of, split_of
from phalanx.zoo.consoles.form import all_forms
from phalanx.zoo.consoles.situation import all_situations


def _console(situation, form):
    return make(all_situations()[situation], all_forms()[form])


def test_the_same_cell_gives_the_same_console():
    assert _console("rank-missing", "torchrun") == _console("rank-missing", "torchrun")


def test_about_a_third_is_held_back_by_name_alone():
    held = sum(split_of(one.name, form.name) == HELD_BACK for one, form in cells())
    assert 0.3 < held / len(cells()) < 0.37
    assert split_of("rank-missing", "torchrun") == OPEN


def test_every_truth_is_in_the_vocabulary():
    for one in all_situations().values():
        assert one.healthy or one.symptom in SYMPTOMS
        assert set(one.fixes) - {""} <= set(FIX_PATTERNS)
        assert one.healthy or one.fixes


def test_a_missing_rank_is_shown_where_all_others_are_seen_to_wait():
    truth = _console("rank-missing", "torchrun").truth
    assert truth.culprits == truth.true_culprits
    assert "why" in truth.shows


def test_a_missing_rank_is_not_shown_by_another_rank_alone():
    truth = _console("rank-missing", "rank0-only").truth
    assert truth.culprits == ()
    assert "who" not in truth.shows


def test_a_pod_without_the_culprit_accuses_nobody():
    console = _console("rank-raised-others-see-remote", "kubectl-one-pod")
    own = set(range(8, 16))
    assert console.truth.culprits == tuple(rank for rank in console.truth.true_culprits if rank in own)


def test_task_numbers_of_srun_are_ranks_only_with_a_task_for_each():
    def labels(form):
        console = _console("rank-missing", form)
        heads = {line.split(":")[0].strip() for line in console.files["console.log"].splitlines() if ": " in line}
        return {int(head) for head in heads if head.isdigit()}, console.truth

    ranks, truth = labels("srun-l")
    assert ranks == set(range(truth.world)) - set(truth.true_culprits) | {0}
    nodes, truth = labels("srun-l-torchrun")
    assert nodes == set(range(truth.world // 8))


def test_healthy_jobs_have_no_symptom_and_show_nothing():
    truth = _console("healthy", "torchrun").truth
    assert truth.healthy
    assert truth.shows == ()


def test_write_puts_the_truth_beside_the_logs(tmp_path):
    console = _console("xid-079", "torchrun")
    logs = console.write(tmp_path)
    assert json.loads((tmp_path / "truth.json").read_text())["cause"] == "gpu-hardware-fault"
    assert any("Xid" in file.read_text() for file in logs.glob("dmesg-*.log"))


def test_a_sample_is_spread_over_situations_and_splits():
    picked = [(one.name, form.name) for one, form in cells() if sample_of(one.name, form.name, 4)]
    assert 0.2 < len(picked) / len(cells()) < 0.3
    assert {split_of(*names) for names in picked} == {OPEN, HELD_BACK}
    assert len({name for name, _ in picked}) > 0.9 * len(all_situations())

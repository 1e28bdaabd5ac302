"""Reading on several cores finds what reading on one does, in the same order."""

from __future__ import annotations

from pathlib import Path

from phalanx.diagnosis import collector_of_rules, judge_observations, read_observations
from phalanx.diagnosis.cores import parts_of, read_on_all_cores
from phalanx.knowledge import load_bare_rules
from phalanx.sources import find_inputs
from phalanx.sources.shared import settled, to_json

from .test_afar import write_logs


def test_several_processes_read_as_one(tmp_path: Path) -> None:
    write_logs(tmp_path)
    (tmp_path / "h1" / "logs" / "rank2.log").write_text("[rank2]: step 3 loss nan\n" * 40)
    inputs, _ = find_inputs([str(tmp_path)])
    parts = parts_of(inputs, cores=2, least=0)
    assert len(parts) == 2
    assert sum(map(len, parts)) == len(inputs)
    names = [one.name for one in inputs]
    read = read_on_all_cores(parts, names)
    assert to_json(settled(read)) == to_json(settled(collector_of_rules().collect(inputs)))
    rules = load_bare_rules()
    assert judge_observations(read, rules)[0].to_json()["verdict"] is not None
    assert read_observations(inputs, rules).files[0].name == read.files[0].name


def test_small_inputs_stay_in_one_process(tmp_path: Path) -> None:
    write_logs(tmp_path)
    assert len(parts_of(find_inputs([str(tmp_path)])[0], cores=8)) == 1

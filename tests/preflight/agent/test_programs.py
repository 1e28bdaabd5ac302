"""The programs that a host's shell finds, and those that are asked for by their path."""

from __future__ import annotations

from pathlib import Path

from phalanx.preflight.agent.collect import Setting
from phalanx.preflight.agent.programs import programs
from phalanx.preflight.agent.who import mca_files


def test_programs_in_the_path_and_by_their_path(tmp_path: Path) -> None:
    daemon = tmp_path / "orted"
    daemon.write_text("#!/bin/sh\n")
    daemon.chmod(0o755)
    asked = [str(daemon), str(tmp_path / "prted")]
    found = programs(Setting({"environment": {"PATH": str(tmp_path)}, "programs": asked}))
    assert (found["orted"], found["prted"], found["mpirun"]) == (str(daemon), None, None)
    assert found["asked"] == {asked[0]: True, asked[1]: False}


def test_parameters_in_files_have_the_names_of_variables(tmp_path: Path) -> None:
    folder = tmp_path / ".openmpi"
    folder.mkdir()
    (folder / "mca-params.conf").write_text("# mine\nbtl_tcp_if_include = eth0  # the fast one\nno value\n")
    found = mca_files({"HOME": str(tmp_path)})
    assert found[str(folder / "mca-params.conf")] == {"OMPI_MCA_btl_tcp_if_include": "eth0"}

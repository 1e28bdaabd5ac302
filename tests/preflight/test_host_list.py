"""Which hosts `--hosts` names: lists, Slurm's ranges, host files of launchers, the allocation."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.preflight.host_list import expand, hosts_in_file, read_hosts


@pytest.mark.parametrize(
    ("listed", "hosts"),
    [
        ("a,b", ["a", "b"]),
        ("node[0-2,7],gpu1", ["node0", "node1", "node2", "node7", "gpu1"]),
        ("n[08-10]", ["n08", "n09", "n10"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        (" , ", []),
    ],
)
def test_lists_as_slurm_writes_them(listed: str, hosts: list[str]) -> None:
    assert expand(listed) == hosts


@pytest.mark.parametrize(
    "text",
    [
        "h0 slots=8\nh1 slots = 8 max_slots=9 # a comment\n\n# another\n",
        "h0:4\nh1:4\n",
        "h0\nh1\nh0\n",
        "user@h0 slots=2\nuser@h1 slots=2\n",
        "h[0-1]\n",
    ],
)
def test_host_files_of_launchers(text: str, tmp_path: Path) -> None:
    assert hosts_in_file(text) == ["h0", "h1"]
    file = tmp_path / "hosts.txt"
    file.write_text(text)
    assert read_hosts(f"@{file}", {}) == read_hosts(str(file), {}) == ["h0", "h1"]


def test_the_hosts_of_an_allocation() -> None:
    assert read_hosts("slurm", {"SLURM_JOB_NODELIST": "n[1-2]"}) == ["n1", "n2"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "give names"),
        ("a,a", "named twice"),
        ("slurm", "SLURM_JOB_NODELIST"),
        ("@/no/such/file", "No such file"),
        ("@/dev/null", "names no host"),
        ("n[x-3]", "no list of numbers"),
        ("n[0-99999999]", "more than"),
    ],
)
def test_a_list_that_names_nobody_is_an_error(given: str, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("[", ".")):
        read_hosts(given, {})

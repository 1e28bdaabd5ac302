"""What ranks are told, and scripts that start their ranks themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.verification.observe import settings_for, starts_ranks


def test_settings_are_the_same_for_every_rank(tmp_path: Path) -> None:
    told = settings_for(tmp_path, 5, 0, 60.0)
    assert (told["mode"], told["steps"], told["script"]) == ("verify", 5, str(tmp_path.resolve()))


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("import torch.multiprocessing as mp\ndist.init_process_group('gloo')\nmp.spawn(main, nprocs=2)", True),
        ("from torch.multiprocessing import spawn\ndist.init_process_group('gloo')\nspawn(main, nprocs=2)", True),
        ("import multiprocessing\ninit_process_group()\np = multiprocessing.Process(target=main)", True),
        ("import torch.multiprocessing as mp\nmp.set_sharing_strategy('x')\ndist.init_process_group('gloo')", False),
        ("import multiprocessing\np = multiprocessing.Process(target=log)", False),
    ],
)
def test_scripts_that_start_ranks(tmp_path: Path, text: str, starts: bool) -> None:
    (tmp_path / "train.py").write_text(text)
    assert starts_ranks(tmp_path / "train.py") is starts
    assert not starts_ranks(tmp_path / "nothing.py")

"""A checkpoint against another one or a model: what differs, and the line that converts really converts."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.checkpoint_files import CheckpointError, against_checkpoint
from phalanx.checkpoint_files.model_factory import expected_of_factory
from tests.checkpoint_files.made import ids, look, trained
from tests.needs import needs_torch

pytestmark = needs_torch


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ("module.", ""),
        ("_orig_mod.", ""),
        ("module._orig_mod.", ""),
        ("model.", ""),
        ("", "backbone."),
        ("", "module."),
    ],
)
def test_a_prefix_is_told_with_the_line_that_converts(tmp_path: Path, mine: str, theirs: str) -> None:
    import torch

    plain = trained()[0].state_dict()
    state_dict = {mine + name: one for name, one in plain.items()}
    torch.save({"state_dict": state_dict}, tmp_path / "a.pt")
    torch.save({theirs + name: one for name, one in plain.items()}, tmp_path / "b.pt")
    seen = look(tmp_path / "a.pt", against=against_checkpoint(tmp_path / "b.pt"))
    told = next(one for one in seen.facts if one.id == "checkpoint.prefix-differs")
    line = str(told.fields["line"])
    assert told.fields["dropped"] is True
    if line == "model.module.load_state_dict(state_dict)":
        return
    names = {"torch": torch, "state_dict": state_dict}
    exec(line, names)
    assert set(names["state_dict"]) == {theirs + name for name in plain}


def test_names_shapes_and_formats(tmp_path: Path) -> None:
    import torch

    plain = trained()[0].state_dict()
    torch.save(plain, tmp_path / "a.pt")
    torch.save({**plain, "head.weight": torch.ones(2)}, tmp_path / "more.pt")
    torch.save(
        {name: torch.cat([one, one]) if one.ndim == 2 else one for name, one in plain.items()}, tmp_path / "wide.pt"
    )
    torch.save({f"x{number}": one for number, one in enumerate(plain.values())}, tmp_path / "other.pt")
    torch.save(
        {name: one.bfloat16() if one.is_floating_point() else one for name, one in plain.items()}, tmp_path / "half.pt"
    )

    def told(name: str) -> list[str]:
        return ids(look(tmp_path / "a.pt", against=against_checkpoint(tmp_path / name)))

    assert told("a.pt") == []
    assert told("more.pt") == ["names-differ"]
    assert told("wide.pt") == ["shapes-differ"]
    assert told("other.pt") == ["nothing-in-common"]
    assert told("half.pt") == ["dtypes-differ"]
    wide = look(tmp_path / "a.pt", against=against_checkpoint(tmp_path / "wide.pt"))
    assert wide.facts[0].fields["ratio"] == "2"


def test_a_model_of_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.chdir(tmp_path)
    (tmp_path / "mynet.py").write_text(
        "import torch\ndef build():\n    print('hello')\n    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8))\n"
        "def broken():\n    raise RuntimeError('no data')\n"
    )
    torch.save(trained()[0].state_dict(), "a.pt")
    assert ids(look(Path("a.pt"), against=expected_of_factory("mynet:build"))) == []
    with pytest.raises(CheckpointError, match="no data"):
        expected_of_factory("mynet:broken")

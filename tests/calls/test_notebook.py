"""Calls from a notebook: functions of its cells travel, an event loop runs already, output comes to the cell."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(300)
CELLS = [
    "import asyncio, os, phalanx\nasyncio.get_running_loop()\nfactor = 3\nclass Seen:\n    def __init__(self, x): self.x = x",
    "@phalanx.function(workers=2, framework='none', grace=1)\n"
    "def task(x):\n    rank = int(os.environ['RANK'])\n    print('rank', rank, 'speaks')\n"
    "    if x == 'bad' and rank == 1: raise ValueError('bad cell')\n    return Seen(factor * x)",
    "found = task(2)\n[one.x for one in found], all(type(one) is Seen for one in found)",
    "try:\n    task('bad')\nexcept phalanx.JobFailed as error:\n    print('caught', error.rank, repr(error.__cause__))",
]


def test_a_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient and ipykernel: pip install -e '.[dev]'")
    pytest.importorskip("ipykernel", reason="needs nbclient and ipykernel: pip install -e '.[dev]'")
    from nbformat.v4 import new_code_cell, new_notebook  # type: ignore[import-not-found,unused-ignore]

    kernel = tmp_path / "kernels" / "here"
    kernel.mkdir(parents=True)
    (kernel / "kernel.json").write_text(
        f'{{"argv": ["{sys.executable}", "-m", "ipykernel_launcher", "-f", "{{connection_file}}"], "display_name": "x", "language": "python"}}'
    )
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    notebook = new_notebook(cells=[new_code_cell(text) for text in CELLS])
    nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="here", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    result = [output for output in notebook.cells[2].outputs if output.output_type == "execute_result"]
    assert result[0].data["text/plain"] == "([6, 6], True)"
    shown = "".join(
        output.text for cell in notebook.cells[2:] for output in cell.outputs if output.output_type == "stream"
    )
    assert "[0] rank 0 speaks" in shown
    assert "caught 1 ValueError('bad cell')" in shown

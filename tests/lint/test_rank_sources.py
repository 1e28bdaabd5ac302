"""Which rank an expression is: that in the whole job, or that on the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.lint.context import Workspace


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("use(dist.get_rank())", "global"),
        ("r = int(os.environ['RANK'])\nuse(r)", "global"),
        ("use(int(os.environ.get('SLURM_PROCID', 0)))", "global"),
        ("use(int(os.environ['LOCAL_RANK']))", "local"),
        ("class C:\n    def __init__(self):\n        self.r = int(os.environ['LOCAL_RANK'])\nuse(C().r)", "local"),
        ("def f(r):\n    use(r)\nf(dist.get_rank())", "global"),
        ("use(dist.get_rank() % 8)", ""),
        ("r = dist.get_rank() if flag else int(os.environ['LOCAL_RANK'])\nuse(r)", ""),
        ("while True:\n    r = int(r)\n    use(r)", ""),
        ("use(7)", ""),
    ],
)
def test_the_kind_of_a_rank(tmp_path: Path, text: str, kind: str) -> None:
    path = tmp_path / "train.py"
    path.write_text(f"import os\nimport torch.distributed as dist\n{text}")
    space = Workspace()
    module = space.project.load(path)
    space.inference.targets.append(module)
    call, scope = next((c, s) for c, s in module.calls if getattr(c.func, "id", "") == "use")
    assert space.ranks.kind(call.args[0], scope) == kind

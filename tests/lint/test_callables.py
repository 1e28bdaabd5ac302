"""Which functions a call may run, one case for each way a function travels."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.lint.context import Workspace

F = "def f():\n    pass\ndef g():\n    pass\n"
CASES = {
    "function": (F + "f()", {"f"}),
    "variable": (F + "use = f\nuse()", {"f"}),
    "one of two": (F + "use = f if flag else g\nuse()", {"f", "g"}),
    "parameter": (F + "def run(use):\n    use()\nrun(f)", {"f"}),
    "partial": (F + "from functools import partial\nuse = partial(f, 1)\nuse()", {"f"}),
    "parameter of a partial": (
        F + "from functools import partial\ndef run(use):\n    use()\nrunner = partial(run, g)",
        {"g"},
    ),
    "list": (F + "for use in [f, g]:\n    use()", {"f", "g"}),
    "list that is filled": (F + "hooks = []\nhooks.append(g)\nfor use in hooks:\n    use()", {"g"}),
    "list in a field": (
        F + "class C:\n    def __init__(self):\n        self.hooks = []\n    def run(self):\n"
        "        for use in self.hooks:\n            use()\nc = C()\nc.hooks.append(f)",
        {"f"},
    ),
    "list of another object": (
        F + "class C:\n    def __init__(self):\n        self.hooks = []\n    def run(self):\n"
        "        for use in self.hooks:\n            use()\nclass D:\n    pass\nd = D()\nd.hooks.append(f)",
        set(),
    ),
    "table": (F + "table = {'a': f, 'b': g}\nuse = table[name]\ntable[name]()", {"f", "g"}),
    "method of objects in a list": (
        "class A:\n    def use(self):\n        pass\nclass B(A):\n    pass\nfor hook in [A(), B()]:\n    hook.use()",
        {"use"},
    ),
    "class": ("class A:\n    def __init__(self):\n        pass\nA()", {"__init__"}),
    "unknown": ("import torch\ntorch.use()", set()),
}


@pytest.mark.parametrize("case", CASES)
def test_calls_are_followed_to_functions(tmp_path: Path, case: str) -> None:
    text, wanted = CASES[case]
    path = tmp_path / "train.py"
    path.write_text(text)
    space = Workspace()
    module = space.project.load(path)
    space.inference.targets.append(module)
    used = [(c, s) for c, s in module.calls if not c.args and "append" not in getattr(c.func, "attr", "")]
    chosen = [item for item in used if "use" in (getattr(item[0].func, n, "") for n in ("id", "attr"))] or used[-1:]
    found = space.inference.callees(chosen[-1][0].func, chosen[-1][1])
    assert {getattr(item.node, "name", "") for item in found} == wanted

"""Where values come from: one case for each way a value travels."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from phalanx.lint.context import Workspace

CASES = {
    "name": ("x = 7\nuse(x)", "7"),
    "tuple": ("def f():\n    return 1, 7\na, b = f()\nuse(b)", "7"),
    "item": ("c = {'x': 7}\nuse(c['x'])", "7"),
    "item that is set": ("c = {}\nc['x'] = 7\nuse(c['x'])", "7"),
    "get": ("c = dict(x=7)\nuse(c.get('x', 1))", "7"),
    "parameter": ("def f(x):\n    use(x)\nf(7)", "7"),
    "default": ("def f(x=7):\n    use(x)\nf()", "7"),
    "lambda": ("f = lambda: 7\nuse(f())", "7"),
    "class attribute": ("class C:\n    x = 7\nuse(C.x)", "7"),
    "field": ("class C:\n    def __init__(self, v):\n        self.x = v\nc = C(7)\nuse(c.x)", "7"),
    "property": ("class C:\n    @property\n    def x(self):\n        return 7\nuse(C().x)", "7"),
    "record": ("from dataclasses import dataclass\n@dataclass\nclass C:\n    x: int\nuse(C(7).x)", "7"),
    "record's default": ("from dataclasses import dataclass\n@dataclass\nclass C:\n    x: int = 7\nuse(C().x)", "7"),
    "class method": (
        "from dataclasses import dataclass\n@dataclass\nclass C:\n    x: int\n    @classmethod\n    def make(cls):\n"
        "        return cls(x=7)\nuse(C.make().x)",
        "7",
    ),
    "annotation": ("class C:\n    x = 7\ndef f(c: 'C'):\n    use(c.x)", "7"),
    "namespace": ("from types import SimpleNamespace\nc = SimpleNamespace(x=7)\nuse(c.x)", "7"),
    "base class": (
        "class B:\n    def __init__(self, v):\n        self.x = v\nclass C(B):\n    def __init__(self):\n"
        "        super().__init__(7)\nuse(C().x)",
        "7",
    ),
    "method of a subclass": (
        "class B:\n    def make(self):\n        raise NotImplementedError\n    def run(self):\n        use(self.make())\n"
        "class C(B):\n    def make(self):\n        return 7",
        "7",
    ),
    "context manager": (
        "from contextlib import contextmanager\n@contextmanager\ndef f():\n    yield 7\nwith f() as x:\n    use(x)",
        "7",
    ),
    "loop": ("for x in [7]:\n    use(x)", "x"),
    "changed": ("x = 7\nx += 1\nuse(x)", "?"),
    "unknown parameter": ("def f(x):\n    use(x)", "?"),
}


@pytest.mark.parametrize("case", CASES)
def test_value_is_followed_to_where_it_was_written(tmp_path: Path, case: str) -> None:
    text, wanted = CASES[case]
    path = tmp_path / "train.py"
    path.write_text(text)
    space = Workspace()
    module = space.project.load(path)
    call, scope = next((c, s) for c, s in module.calls if getattr(c.func, "id", "") == "use")
    assert wanted in {ast.unparse(made) for made, _ in space.inference.origins(call.args[0], scope)}


def test_both_branches_are_origins(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("if a:\n    x = 1\nelse:\n    x = 2\nuse(x)")
    space = Workspace()
    module = space.project.load(path)
    call, scope = module.calls[0]
    assert {ast.unparse(made) for made, _ in space.inference.origins(call.args[0], scope)} == {"1", "2"}
    assert space.inference.constant(call.args[0], scope) is None

"""Fields of classes and records, and entries of dictionaries: what an attribute or an item may hold."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from phalanx.lint.context import Workspace

RECORD = "from dataclasses import dataclass, field\nimport os\n@dataclass\nclass C:\n"
FIELDS = {
    "assigned in a method": ("class C:\n    def f(self):\n        self.x = 1\nuse(C().x)", ["1"]),
    "assigned twice": ("class C:\n    x = 1\n    def f(self):\n        self.x = 2\nuse(C().x)", ["1", "2"]),
    "from outside": ("class C:\n    pass\nc = C()\nc.x = 3\nuse(c.x)", ["3"]),
    "of a base class": ("class B:\n    x = 4\nclass C(B):\n    pass\nuse(C().x)", ["4"]),
    "own before that of a base": ("class B:\n    x = 4\nclass C(B):\n    x = 5\nuse(C.x)", ["5"]),
    "given to a record": (RECORD + "    x: int = 0\nuse(C(x=6).x)", ["6"]),
    "default of a record": (RECORD + "    x: int = field(default=7)\nuse(C().x)", ["7"]),
    "factory of a record": (RECORD + "    x: int = field(default_factory=lambda: os.getpid())\nuse(C().x)", ["os.getpid()"]),
    "named factory": (
        "def made():\n    return 8\n" + RECORD + "    x: int = field(default_factory=made)\nuse(C().x)",
        ["8"],
    ),
    "factory of a library": (RECORD + "    x: list = field(default_factory=list)\nuse(C().x)", []),
    "unknown object": ("use(thing.x)", []),
}  # fmt: skip
ITEMS = {
    "dictionary": ("use({'x': 1}['x'])", ["1"]),
    "call of dict": ("c = dict(x=2)\nuse(c['x'])", ["2"]),
    "list": ("c = [1, 3]\nuse(c[1])", ["3"]),
    "out of range": ("c = [1]\nuse(c[4])", []),
    "unknown key": ("c = {'x': 1}\nuse(c[name])", []),
}


def argument(path: Path, text: str) -> tuple[Workspace, ast.expr, object]:
    path.write_text(text)
    space = Workspace()
    module = space.project.load(path)
    call, scope = next((c, s) for c, s in module.calls if getattr(c.func, "id", "") == "use")
    return space, call.args[0], scope


@pytest.mark.parametrize("case", FIELDS)
def test_a_field_holds_what_is_assigned_to_it(tmp_path: Path, case: str) -> None:
    text, wanted = FIELDS[case]
    space, node, scope = argument(tmp_path / "train.py", text)
    found = space.inference.fields(node, scope)  # type: ignore[arg-type]
    assert sorted(ast.unparse(b.value) for b, _ in found if b.value is not None) == wanted


@pytest.mark.parametrize("case", ITEMS)
def test_an_item_holds_what_the_container_was_written_with(tmp_path: Path, case: str) -> None:
    text, wanted = ITEMS[case]
    space, node, scope = argument(tmp_path / "train.py", text)
    found = space.inference.items(node, scope)  # type: ignore[arg-type]
    assert [ast.unparse(b.value) for b, _ in found if b.value is not None] == wanted

"""Arguments through `**options`: seen where the dictionary is known, left alone where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.lint.context import Workspace


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("o = {'a': 1, 'b': x}\nuse(**o)", ["a", "b"]),
        ("o = dict(a=1)\nuse(**o)", ["a"]),
        ("o = {'a': 1, 'b': 2}\nuse(b=3, **o)", ["b", "a"]),
        ("o = {'a': 1}\ndef f():\n    use(**o)", ["a"]),
        ("def f(o):\n    use(**o)\nf({'a': 1})", ["a"]),
        ("def f(o):\n    use(**o)\ndef g(name):\n    f({'a': name})", [None]),
        ("o = {'a': 1}\no['b'] = 2\nuse(**o)", [None]),
        ("o = {'a': 1}\no.update(more)\nuse(**o)", [None]),
        ("o = {key: 1}\nuse(**o)", [None]),
        ("use(**unknown)", [None]),
    ],
)
def test_options_become_keywords(tmp_path: Path, text: str, seen: list[str | None]) -> None:
    path = tmp_path / "train.py"
    path.write_text(text)
    space = Workspace()
    module = space.project.load(path)
    space.inference.targets.append(module)
    space.context(module)
    call = next(c for c, _ in module.calls if getattr(c.func, "id", "") == "use")
    assert [item.arg for item in call.keywords] == seen

"""What goes with a function: modules that the nodes would not find, and no installed package."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import pytest

from phalanx.calls.travel import framework_of, modules_to_copy, search_path


def _load(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(parents=True)
    (folder / f"{name}.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, name, raising=False)
    __import__(name)


def _copied(root: Path) -> set[str]:
    return {module.__name__ for module in modules_to_copy(root)}


def test_a_module_outside_of_the_project_travels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _load(tmp_path / "elsewhere", "phx_elsewhere", monkeypatch)
    assert "phx_elsewhere" in _copied(tmp_path / "project")


def test_a_module_of_the_project_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _load(tmp_path / "project" / "lib", "phx_inside", monkeypatch)
    assert "phx_inside" not in _copied(tmp_path / "project")


@pytest.mark.parametrize("folder", ["apps/torch/lib/python3.11/site-packages", "usr/lib/python3/dist-packages"])
def test_packages_that_a_cluster_puts_on_pythonpath_are_installed(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _load(tmp_path / folder, "phx_package", monkeypatch)
    assert "phx_package" not in _copied(tmp_path / "project")


def test_the_interpreters_own_folders_are_not_on_the_search_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    assert str(tmp_path) in search_path()
    assert sysconfig.get_path("stdlib") not in search_path()


def test_a_function_is_of_the_framework_that_it_names() -> None:
    def train() -> None:
        import horovod.torch as hvd  # type: ignore[import-not-found]

        hvd.init()

    assert framework_of(train) == "horovod"


def test_a_function_that_names_none_gets_what_disturbs_nobody() -> None:
    typed_at_a_prompt = eval("lambda: 1", {})  # noqa: S307 (a function without a file)
    assert framework_of(typed_at_a_prompt) == "torch"

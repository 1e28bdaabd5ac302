"""Files and folders are their owner's alone, whatever the umask, until they are shared."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from phalanx import private


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_new_ones_are_private_under_an_open_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        private.make_folder(tmp_path / "a")
        private.write_text(tmp_path / "a" / "b", "text")
    finally:
        os.umask(before)
    assert (mode(tmp_path / "a"), mode(tmp_path / "a" / "b")) == (0o700, 0o600)


def test_a_tree_is_closed_and_shared_and_links_are_left_alone(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("x")
    outside.chmod(0o640)
    tree = tmp_path / "tree"
    (tree / "in").mkdir(parents=True)
    (tree / "in" / "file").write_text("x")
    (tree / "link").symlink_to(outside)
    for path in (tree, tree / "in", tree / "in" / "file"):
        path.chmod(0o777)
    private.make_private(tree)
    assert [mode(path) for path in (tree, tree / "in", tree / "in" / "file")] == [0o700, 0o700, 0o600]
    before = os.umask(0o027)
    try:
        private.share(tree)
    finally:
        os.umask(before)
    assert [mode(path) for path in (tree, tree / "in", tree / "in" / "file")] == [0o750, 0o750, 0o640]
    assert mode(outside) == 0o640

"""The project's files: which travel, and that they arrive only where they may."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from phalanx.remote import packing
from phalanx.remote.packing import PackingError, pack, project_files, safe_path, unpack


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_gitignore_is_respected_at_every_depth(tmp_path: Path) -> None:
    write(
        tmp_path,
        train_dot_py="x", data__big_dot_bin="x", logs__a_dot_log="x", logs__keep_dot_log="x", package__module_dot_py="x",
        package__build__out_dot_py="x", venv__pyvenv_dot_cfg="x", venv__lib_dot_py="x",
    )  # fmt: skip
    (tmp_path / ".gitignore").write_text("/data/\n*.log\n# a comment\n")
    (tmp_path / "logs" / ".gitignore").write_text("!keep.log\n")
    (tmp_path / "package" / ".gitignore").write_text("build\n")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("x")
    (tmp_path / "phalanx-runs" / "old").mkdir(parents=True)
    (tmp_path / "phalanx-runs" / "old" / "manifest.json").write_text("{}")
    found = {str(path) for path in project_files(tmp_path)}
    expected = {".gitignore", "train.py", "logs/keep.log", "logs/.gitignore", "package/.gitignore", "package/module.py"}
    assert found == expected


def test_what_is_packed_is_what_arrives(tmp_path: Path) -> None:
    project, there = tmp_path / "project", tmp_path / "there"
    project.mkdir()
    there.mkdir()
    write(project, train_dot_py="print(1)\n", **{"a b;$(touch x)": "odd"})
    (project / "link.py").symlink_to("train.py")
    assert len(pack(project, tmp_path / "p.tar").files) == 3
    (project / "train.py").write_text("edited after submission")
    unpack(tmp_path / "p.tar", there)
    assert (there / "train.py").read_text() == "print(1)\n"
    assert (there / "a b;$(touch x)").read_text() == "odd"
    assert (there / "link.py").read_text() == "print(1)\n"
    assert not (there / "link.py").is_symlink()


def test_credentials_and_links_out_never_travel(tmp_path: Path) -> None:
    root = tmp_path / "project"
    secret = tmp_path / "outside.txt"
    secret.parent.mkdir(exist_ok=True)
    secret.write_text("outside")
    (tmp_path / "far").mkdir()
    names = [
        ".env", ".env.production", "prod.env", ".netrc", "server.pem", "tls.key", ".ssh/config", "conf/.aws/credentials", "credentials.json", "my-service-account.json",
        "id_ed25519", "secrets.yaml", ".kube/config", "kubeconfig", ".pypirc", "terraform.tfstate", "innocent.dat",
    ]  # fmt: skip
    kept = ["train.py", ".env.example", "id_ed25519.pub", "keys.py", "monkey.txt", "environment.yml"]
    for name in names + kept:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x" if name != "innocent.dat" else "-----BEGIN EC PRIVATE KEY-----\nabc\n")
    (root / "out.txt").symlink_to(secret)
    (root / "away").symlink_to(tmp_path / "far")
    (root / "hidden.txt").symlink_to(".env")
    packed = pack(root, tmp_path / "p.tar")
    assert sorted(name for name, _ in packed.files) == sorted(kept)
    with tarfile.open(tmp_path / "p.tar") as archive:
        assert sorted(archive.getnames()) == sorted(kept)
    assert sorted(packed.links) == ["away/", "out.txt"]
    assert "hidden.txt" in packed.credentials
    assert "left out as credentials" in packed.summary()
    assert "largest: " in packed.summary()


def test_too_much_is_refused_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MOST_FILES", 2)
    write(tmp_path, a="1", b="2", c="3")
    with pytest.raises(PackingError, match="gitignore"):
        pack(tmp_path, tmp_path.parent / "p.tar")


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a/../../evil"])
def test_nothing_is_written_outside(tmp_path: Path, name: str) -> None:
    with tarfile.open(tmp_path / "p.tar", "w") as archive:
        member = tarfile.TarInfo(name)
        member.size = 4
        archive.addfile(member, io.BytesIO(b"evil"))
    there = tmp_path / "deep" / "there"
    there.mkdir(parents=True)
    with pytest.raises(PackingError):
        unpack(tmp_path / "p.tar", there)
    assert [path for path in tmp_path.rglob("*") if path.name == "evil"] == []


def test_links_and_devices_are_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "p.tar", "w") as archive:
        member = tarfile.TarInfo("x")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(member)
    with pytest.raises(PackingError, match="plain"):
        unpack(tmp_path / "p.tar", tmp_path)


@pytest.mark.parametrize("name", ["", "/x", "a/../b", "..", "a\0b", "a\\b", "x" * 300])
def test_unsafe_paths(name: str) -> None:
    with pytest.raises(PackingError):
        safe_path(name)

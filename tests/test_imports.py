"""The layering holds: who may import whom, and that the diagnosis needs no framework."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "phalanx"
# Each package may import itself and what is listed; siblings meet in reports and bundles, not in imports.
ALLOWED = {
    "model": set(),
    "cache": set(),
    "knowledge": {"model", "cache"},
    "frameworks": {"model"},
    "sources": {"model", "cache"},
    "study": {"model", "knowledge"},
    "zoo": {"model", "knowledge"},
    "lab": {"model"},
    "blame": {"model"},
    "diagnosis": {"model", "knowledge", "frameworks", "sources", "blame"},
    "run": {"model", "knowledge", "frameworks", "sources", "blame", "notify"},
    "api": {"model", "calls", "diagnosis", "report"},
    "notify": {"model"},
    "callbacks": {"run"},
    "schedulers": {"model"},
    "attaching": {"model", "sources", "run"},
    "embedded": {"model", "sources", "run", "remote", "attaching", "notify", "callbacks"},
    "preflight": {"model", "knowledge", "frameworks", "sources", "cache"},
    "lint": {"model", "knowledge"},
    "mcp": {"api", "calls"},
    "checkpoint_files": {"model", "knowledge"},
    "backends": {"model"},
    "remote": {"model", "frameworks", "sources", "backends", "run"},
    "calls": {"model", "frameworks", "sources", "backends", "run", "remote"},
    "replay": {"model", "sources"},
    "verification": {"model", "knowledge", "blame"},
    "report": {"model", "knowledge"},
    "cli": {
        "mcp",
        "attaching",
        "cache",
        "notify",
        "schedulers",
        "model",
        "knowledge",
        "frameworks",
        "sources",
        "study",
        "zoo",
        "lab",
        "diagnosis",
        "run",
        "preflight",
        "lint",
        "checkpoint_files",
        "report",
        "backends",
        "remote",
        "replay",
        "verification",
    },
}
FRAMEWORKS = ("torch", "tensorflow", "keras", "horovod", "jax", "ray", "mpi4py", "numpy", "openpyxl")


def imports_of(path: Path) -> set[str]:
    """Full names of the modules a file imports, at whatever depth."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module)
    return found


@pytest.mark.parametrize("package", sorted(path.name for path in SOURCE.iterdir() if any(path.glob("*.py"))))
def test_imports_point_downwards(package: str) -> None:
    assert package in ALLOWED, f"say in this table what {package} may import"
    for path in (SOURCE / package).rglob("*.py"):
        for name in imports_of(path):
            parts = name.split(".")
            if parts[0] == "phalanx" and len(parts) > 1:
                assert parts[1] in ALLOWED[package] | {package}, f"{path.relative_to(SOURCE)} imports {name}"


def test_no_module_imports_a_framework_at_import_time() -> None:
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            assert not {name.split(".")[0] for name in names} & set(FRAMEWORKS), path


def test_diagnose_works_with_every_framework_blocked(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text(
        "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n[rank0]: waiting\n"
    )
    code = f"""
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in {FRAMEWORKS!r}:
            raise ImportError('blocked: ' + name)
sys.meta_path.insert(0, Block())
from phalanx.diagnosis import diagnose_paths
report = diagnose_paths([{str(log)!r}])
assert report.verdict is not None and report.verdict.symptom == 'fail.out-of-memory', report.verdict
print('ok')
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.strip() == "ok", done.stderr

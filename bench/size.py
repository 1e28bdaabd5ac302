"""How large and how tangled the judging code is: `python bench/size.py [REPOSITORY]`, for comparing two checkouts.

Counted wherever judging lives: moving lines to another package does not make them fewer.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

PACKAGES = ("diagnosis", "blame", "sources", "run/watch")
MOST_COMPLEX = 15
MOST_BRANCHES = 20  # where `and`, `or`, conditional expressions and parts of comprehensions count, too
COMPILERS = ("compile", "lazy")  # re.compile and the project's own
INLINE = ("search", "match", "fullmatch", "findall", "finditer", "sub", "split")
# How sentences open that Phalanx itself writes: what the watch, the traces, the metrics and `check` say.
OWN_SENTENCES = re.compile(r"check: |collective trace: |training course: |watch: |phalanx ")


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.IfExp, ast.ExceptHandler, ast.Assert, ast.match_case)


def main() -> None:
    """Print one line a measure."""
    repository = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    source = repository / "src" / "phalanx"
    files = [file for package in PACKAGES for file in sorted((source / package).rglob("*.py"))]
    for package in PACKAGES:
        inside = [file for file in files if file.is_relative_to(source / package)]
        print(f"{package:<44}{sum(map(_lines, inside)):>8} lines{len(inside):>6} modules")
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files]
    rules = list(_rules(source / "knowledge" / "rules"))
    evidence = [item for rule in rules for item in rule.get("evidence", ())]
    measures = {
        "lines": sum(map(_lines, files)),
        "modules": len(files),
        f"functions above complexity {MOST_COMPLEX}": _complex_functions(files),
        f"the same with operators above {MOST_BRANCHES}": sum(
            _branches(node) > MOST_BRANCHES for tree in trees for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)
        ),
        "expressions outside rules": sum(_is_expression(node) for tree in trees for node in ast.walk(tree)),
        "named numeric constants": sum(_constants(tree) for tree in trees),
        "active rules": len(rules),
        "expressions in rules": sum("line" in item for item in evidence),
        "facts in rules": sum("fact" in item for item in evidence),
        "prose evidence": sum("prose" in item for item in evidence),
        "rules that match Phalanx's own sentences": sum(map(_matches_own, rules)),
        "distinct priorities": len({rule.get("priority", 50) for rule in rules}),
        "declared overlaps": sum(len(rule.get("overlaps", ())) for rule in rules),
    }
    for name, figure in measures.items():
        print(f"{name:<44}{figure:>8}")


def _lines(file: Path) -> int:
    return len(file.read_text(encoding="utf-8").splitlines())


def _is_expression(node: ast.AST) -> bool:
    """An expression that is compiled, or given to a function of `re` as text."""
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    if isinstance(function, ast.Name):
        return function.id in COMPILERS[1:]
    if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
        return False
    return function.value.id == "re" and function.attr in (*COMPILERS, *INLINE)


def _constants(tree: ast.Module) -> int:
    """Names in capitals at the top of a module that stand for numbers."""
    count = 0
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for target in targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            values = (
                node.value.elts if isinstance(node.value, ast.Tuple) and len(names) > 1 else [node.value] * len(names)
            )  # type: ignore[attr-defined]
            pairs = zip(names, values, strict=False)
            count += sum(
                isinstance(name, ast.Name) and name.id.isupper() and _is_number(value) for name, value in pairs
            )
    return count


def _is_number(value: ast.AST | None) -> bool:
    if isinstance(value, ast.BinOp):
        return _is_number(value.left) and _is_number(value.right)
    if isinstance(value, ast.UnaryOp):
        return _is_number(value.operand)
    return isinstance(value, ast.Constant) and type(value.value) in (int, float)


def _complex_functions(files: list[Path]) -> int:
    options = ["--isolated", "--select", "C901", "--config", f"lint.mccabe.max-complexity={MOST_COMPLEX}"]
    ruff = [sys.executable, "-m", "ruff", "check", "--output-format", "json", *options, *map(str, files)]
    done = subprocess.run(ruff, capture_output=True, text=True, check=False)
    return len(json.loads(done.stdout))


def _branches(function: ast.AST) -> int:
    """One, and one more for each place where a function can go two ways; functions inside it count for themselves."""
    count, left = 1, list(ast.iter_child_nodes(function))
    while left:
        node = left.pop()
        if isinstance(node, _FUNCTIONS):
            continue
        count += isinstance(node, _BRANCHES)
        count += len(node.values) - 1 if isinstance(node, ast.BoolOp) else 0
        count += 1 + len(node.ifs) if isinstance(node, ast.comprehension) else 0
        left += ast.iter_child_nodes(node)
    return count


def _rules(folder: Path) -> Iterator[dict[str, object]]:
    for file in sorted(folder.rglob("*.md")):
        front = file.read_text(encoding="utf-8").split("\n+++\n", 1)[0].removeprefix("+++\n")
        rule = tomllib.loads(front)
        if rule["status"] != "removed":
            yield rule


def _matches_own(rule: dict[str, object]) -> bool:
    roots = [item for item in rule.get("evidence", ()) if item["role"] == "root"]  # type: ignore[attr-defined]
    return bool(roots) and any(OWN_SENTENCES.match(str(item.get("line", "")).lstrip("^\\b(?:")) for item in roots)


if __name__ == "__main__":
    main()

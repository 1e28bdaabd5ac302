"""A function that PyTorch no longer has.

## What it does
Finds names that were removed from PyTorch and that older training code still uses.

## Why is this bad?
The script stops with AttributeError or ImportError under a current release.

## Example
```diff
 import torch

-solution = torch.gels(torch.randn(8, 2), torch.randn(8, 3))
+solution = torch.linalg.lstsq(torch.randn(8, 3), torch.randn(8, 2))
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LPT005",
    symptom="fail.attribute-not-found",
    cause="removed-framework-name",
    pattern="fix-framework-version",
    do="Use the function that replaced it.",
    needs=("torch",),
    is_distributed=False,
)

_REMOVED = {
    "torch.gels": "torch.linalg.lstsq", "torch.lstsq": "torch.linalg.lstsq", "torch.symeig": "torch.linalg.eigh", "torch.eig": "torch.linalg.eig",
    "torch.solve": "torch.linalg.solve", "torch.matrix_rank": "torch.linalg.matrix_rank", "torch.rfft": "torch.fft.rfft", "torch.irfft": "torch.fft.irfft",
    "torch.ifft": "torch.fft.ifft", "torch.potrf": "torch.linalg.cholesky", "torch.trtrs": "torch.linalg.solve_triangular", "torch.gesv": "torch.linalg.solve",
    "torch.btrifact": "torch.linalg.lu_factor", "torch._six.string_classes": "str", "torch._six.container_abcs": "collections.abc", "torch._six.inf": "math.inf",
    "torch.nn.parallel.DistributedDataParallelCPU": "torch.nn.parallel.DistributedDataParallel", "torch.distributed.reduce_op": "torch.distributed.ReduceOp",
    "torch.distributed.deprecated": "torch.distributed", "torch.onnx.export_to_pretty_string": "torch.onnx.export",
    "torch.distributed.algorithms.join._Join": "torch.distributed.algorithms.join.Join", "torch.utils.ffi.create_extension": "torch.utils.cpp_extension",
}  # fmt: skip


def check(context: Context) -> Iterator[Hit]:
    """Attributes and imports."""
    seen = set()
    for node, scope in context.module.nodes[ast.Attribute]:
        name = context.inference.dotted(node, scope) if isinstance(node, ast.Attribute) else None
        if name in _REMOVED and name not in seen and not _is_fallback(node, context):
            seen.add(name)
            yield Hit(node, f"PyTorch no longer has `{name}`", do=f"Use `{_REMOVED[name]}`.")
    for bindings in context.module.scope.bindings.values():
        for binding in bindings:
            if binding.kind == "import" and binding.target in _REMOVED and not _is_fallback(binding.node, context):
                yield Hit(
                    binding.node, f"PyTorch no longer has `{binding.target}`", do=f"Use `{_REMOVED[binding.target]}`."
                )


def _is_fallback(node: ast.AST, context: Context) -> bool:
    """Code that asks for the version, or catches the error, knows about it."""
    return any(
        isinstance(parent, ast.Try)
        or (
            isinstance(parent, (ast.If, ast.IfExp))
            and ("version" in ast.unparse(parent.test).lower() or "hasattr" in ast.unparse(parent.test))
        )
        for parent, _ in context.module.ancestors(node)
    )

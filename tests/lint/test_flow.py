"""Calls and values that are followed through the project's functions."""

from __future__ import annotations

import ast
from pathlib import Path

from phalanx.lint.context import Context, Workspace
from phalanx.lint.flow import calls_reached, handed_on, made_from, sites, yielded_from
from phalanx.lint.tree import Scope

SCRIPT = """\
import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


class Files:
    def __init__(self, names):
        self.names = names

    def __iter__(self):
        for name in self.names:
            yield open(name)


def setup():
    dist.init_process_group("gloo")


def shard(cfg, net):
    return FSDP(net)


def step(opt):
    opt.step()


def main(model, opt):
    setup()
    wrapped = shard({}, model)
    flat = torch.cat([p.grad for p in model.parameters()])
    packed = flat.clone()
    for item in Files(["a"]):
        step(opt)
    dist.all_reduce(packed)
"""


def read(tmp_path: Path) -> tuple[Context, Scope]:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    space = Workspace()
    module = space.project.load(path)
    assert module is not None
    space.inference.targets.append(module)
    return space.context(module), next(f for f in module.functions if getattr(f.node, "name", "") == "main")


def call_on(context: Context, text: str) -> tuple[ast.Call, Scope]:
    return next((c, s) for c, s in context.module.calls if ast.unparse(c).startswith(text) and s.is_function)


def test_a_call_in_a_helper_happens_where_the_helper_is_called(tmp_path: Path) -> None:
    context, main = read(tmp_path)
    found = [
        (ast.unparse(call), scope is main) for call, scope in sites(context, "torch.distributed.init_process_group")
    ]
    assert found == [("dist.init_process_group('gloo')", False), ("setup()", True)]


def test_an_argument_is_followed_to_the_call_that_uses_it(tmp_path: Path) -> None:
    context, main = read(tmp_path)

    def does(call: ast.Call, scope: Scope) -> ast.expr | None:
        return call.args[0] if context.name(call.func, scope).endswith("FullyShardedDataParallel") else None

    given = handed_on(call_on(context, "shard(")[0], main, context, does)
    assert given is not None
    assert ast.unparse(given) == "model"
    assert handed_on(call_on(context, "step(")[0], main, context, does) is None


def test_methods_are_found_behind_functions(tmp_path: Path) -> None:
    context, main = read(tmp_path)
    loop = next(loop for loop, scope in context.module.loops if scope is main)
    found = [(ast.unparse(a), ast.unparse(b)) for a, b, _ in calls_reached(loop.body, main, context, names=frozenset({"step"}))]  # fmt: skip
    assert found == [("step(opt)", "opt.step()")]


def test_a_value_is_made_from_gradients_over_several_variables(tmp_path: Path) -> None:
    context, main = read(tmp_path)
    call = call_on(context, "dist.all_reduce")[0]

    def asks(item: ast.AST, _: Scope) -> bool:
        return getattr(item, "attr", "") == "grad"

    assert made_from(call.args[0], main, context, asks)
    assert not made_from(call_on(context, "step(")[0].args[0], main, context, asks)


def test_an_object_yields_from_what_its_iterator_loops_over(tmp_path: Path) -> None:
    context, main = read(tmp_path)
    loop = next(loop for loop, scope in context.module.loops if scope is main)
    assert isinstance(loop, ast.For)
    assert [ast.unparse(made) for made, _ in yielded_from(loop.iter, main, context)] == ["self.names"]

"""Versions that have to agree between the ranks of one job: interpreter, framework, communication libraries, driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from phalanx.model import Unchecked
from phalanx.preflight.agreement import split_of
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.host_facts import HostFacts
from phalanx.preflight.options import CheckOptions

# A difference in these breaks or skews jobs: protocols between ranks, pickles, numerics of one rank.
_PACKAGES = (
    "torch", "tensorflow", "keras", "tf-keras", "horovod", "jax", "jaxlib", "deepspeed", "accelerate", "lightning", "pytorch-lightning", "ray",
    "mpi4py", "nvidia-nccl-cu11", "nvidia-nccl-cu12", "nvidia-nccl-cu13", "transformers", "megatron-core",
)  # fmt: skip


def examine(all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """One fact for each thing that differs."""
    told = [one for one in all_facts if one.section("versions")]
    questions: list[tuple[str, Callable[[HostFacts], str | None]]] = [("Python", _python)]
    questions += [(name, lambda one, name=name: _package(one, name)) for name in _PACKAGES]  # type: ignore[misc]
    questions += [
        ("the NVIDIA driver", lambda one: one.section("versions").get("driver") or None),
        ("MPI", lambda one: one.section("versions").get("mpi") or None),
        ("NCCL", lambda one: one.section("versions").get("nccl") or None),
    ]
    for what, value_of in questions:
        split = split_of(told, value_of)
        if split is not None:
            yield observe(
                "versions-differ",
                split.odd,
                what=what,
                confidence="" if options.same_interpreter else "possible",
                **split.fields(),
            )
    yield from _missing(told)


def _python(one: HostFacts) -> str | None:
    """The agent's interpreter stands for the job's only where nobody was asked to use another one."""
    version = str(one.section("versions").get("python") or "")
    return ".".join(version.split(".")[:2]) or None


def _package(one: HostFacts, name: str) -> str | None:
    found: dict[str, str] = one.section("versions").get("packages", {})
    return found.get(name)


def _missing(told: Sequence[HostFacts]) -> Iterable[CheckFact]:
    """A framework that most hosts have and some lack."""
    for name in ("torch", "tensorflow", "horovod", "jax", "keras"):
        lacking = [one.label for one in told if _package(one, name) is None]
        having = [one for one in told if _package(one, name) is not None]
        if lacking and len(having) > len(lacking):
            version = _package(having[0], name)
            yield observe(
                "framework-missing-on-some-hosts",
                tuple(lacking),
                package=name,
                python=_interpreter(told, lacking[0]),
                count=len(having),
                version=version,
            )


def _interpreter(told: Sequence[HostFacts], label: str) -> str:
    return str(next(one for one in told if one.label == label).section("who").get("executable") or "python3")

"""Names of variables that nothing reads, one slip of the hand away from one that is read. Libraries ignore them silently."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from phalanx.model import Unchecked
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.host_facts import HostFacts
from phalanx.preflight.options import CheckOptions
from phalanx.preflight.variables import known_names, load_tables, other_names
from phalanx.preflight.variables.installed import installed_names

# Set in masses by launchers and systems, under rules of their own.
_FOREIGN = ("SLURM_", "PMIX_", "PRTE_", "PRRTE_", "PMI_", "OMPI_", "RAY_", "KUBERNETES_", "AWS_", "NVIDIA_", "CONDA_", "XDG_", "PYTHON", "SSH_", "GRPC_", "MLX")  # fmt: skip
# Without a library's prefix only these are looked for: any other name may be the user's own.
_BARE = (
    "MASTER_ADDR",
    "MASTER_PORT",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "TF_CONFIG",
    "CUDA_VISIBLE_DEVICES",
    "OMP_NUM_THREADS",
)
_SHORTEST = 8
# Words that people write for those of the libraries.
_WORDS = {
    "IFACE": "IFNAME",
    "INTERFACE": "IFNAME",
    "INTERFACES": "IFNAME",
    "INAME": "IFNAME",
    "NIC": "IFNAME",
    "DISABLED": "DISABLE",
    "ENABLED": "ENABLE",
}
_PARAMETER = re.compile(
    r"^(?:OMPI_|MCA_|OMPIMCA_|OPENMPI_MCA_|OMPI_MCA_PARAM_)(?!MCA_)"
)  # of Open MPI, under a prefix that it does not read
_SAME = re.compile(r"[^A-Z0-9]")


def examine(all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """Each wrong name once, with all who have it."""
    found: dict[tuple[str, str], list[str]] = {}
    for one in all_facts:
        names = [*one.variables, *one.section("environment").get("others", ())]
        for name in names:
            meant = meant_by(name, set(names))
            if meant is not None:
                found.setdefault((name, meant), []).append(one.label)
    for (name, meant), labels in found.items():
        reader = known_names().get(meant, "the launcher")
        first = next(one for one in all_facts if one.label == labels[0])
        file, value = first.file_of(name), first.variable(name) or None
        if file is not None:  # as it is written there
            name, meant = name.removeprefix("OMPI_MCA_"), meant.removeprefix("OMPI_MCA_")
        yield observe(
            "variable-misspelt",
            tuple(labels),
            name=name,
            library=reader,
            meant=meant,
            value=value,
            file=file,
            exported=file is None,
        )


def meant_by(name: str, present: set[str]) -> str | None:
    """The name that was meant; None if this one is right, or a name of its own."""
    if (parameter := _PARAMETER.sub("OMPI_MCA_", name)) != name and parameter in known_names():
        return parameter if parameter not in present else None
    foreign = name.startswith(_FOREIGN) and "_MCA_" not in name
    if name in known_names() or name in other_names() or foreign or len(name) < _SHORTEST - 1:
        return None
    wanted = [known for known in _candidates(name) if known not in present and _is_slip(name, known)]
    if not wanted or name in installed_names():
        return None
    return min(wanted, key=lambda known: (distance(name.upper(), known.upper()), known))


def _candidates(name: str) -> Iterable[str]:
    """The names to compare with: those of libraries whose prefix this one has or nearly has."""
    yield from _BARE
    head = name.upper().split("_")[0]
    for table in load_tables():
        heads = {prefix.split("_")[0] for prefix in table.prefixes}
        if any(distance(head, known) <= (1 if len(known) < 6 else 2) for known in heads):
            yield from (known for known in table.names if abs(len(known) - len(name)) <= 3)


def _is_slip(name: str, known: str) -> bool:
    if name == known or len(known) < _SHORTEST:
        return False
    if _SAME.sub("", name.upper()) == _SAME.sub("", known.upper()):
        return True  # another case, or a line too many or too few
    words = [_WORDS.get(word, word) for word in name.upper().split("_")]
    if sorted(words) == sorted(known.upper().split("_")):
        return True  # the right words in another order, or others for them
    if _differs_in_number(name, known):
        return False
    allowed = 1 if len(known) < 12 else 2
    return distance(name.upper(), known.upper()) <= allowed


def _differs_in_number(name: str, known: str) -> bool:
    """`FOO_P2P_1` and `FOO_P2P_2` are two names, not one misspelt."""
    return re.sub(r"\d+", "0", name) == re.sub(r"\d+", "0", known)


def distance(first: str, second: str) -> int:
    """How many letters to change, add, drop or swap with their neighbour."""
    if abs(len(first) - len(second)) > 3:
        return 4
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, here in enumerate(first, 1):
        above, row = row, [i]
        for j, there in enumerate(second, 1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (here != there))
            if i > 1 and j > 1 and here == second[j - 2] and first[i - 2] == there:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before = above
    return row[-1]

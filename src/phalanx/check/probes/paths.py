"""Paths that the job is to write to: there, writable, with space, on every host."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from phalanx.check.options import CheckOptions
from phalanx.check.reading import Reading
from phalanx.check.witness import Witness, name_all
from phalanx.model import Unchecked


def examine(witnesses: Sequence[Witness], options: CheckOptions) -> Iterable[Reading | Unchecked]:
    """Of the paths that the user names."""
    for path in options.paths:
        told = {one.label: one.section("paths")[path] for one in witnesses if path in one.section("paths")}
        absent = tuple(label for label, facts in told.items() if not facts["exists"])
        if absent:
            yield Reading(f"check: {path} does not exist on {name_all(absent)}", accused=absent, values={"path": path})
        refused = tuple(label for label, facts in told.items() if facts["exists"] and not facts["writable"])
        if refused:
            users = ", ".join(
                dict.fromkeys(str(one.section("who").get("user")) for one in witnesses if one.label in refused)
            )
            yield Reading(
                f"check: {path} cannot be written on {name_all(refused)} by {users}",
                accused=refused,
                values={"path": path},
            )
        for label, facts in told.items():
            space = facts["space"]
            if space is not None and facts["exists"] and space["free"] < options.space:
                yield Reading(
                    f"check: {path} on {label} has {space['free'] / (1 << 30):.2f} GiB left ({facts['kind'] or 'unknown file system'})",
                    accused=(label,),
                    values={"path": path},
                )
            elif space is not None and space["files"] and not space["files_free"]:
                yield Reading(
                    f"check: {path} on {label} has no file entries (inodes) left",
                    accused=(label,),
                    values={"path": path},
                )

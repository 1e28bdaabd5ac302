"""Paths that the job is to write to: there, writable, with space, on every host."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from phalanx.model import Unchecked
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.host_facts import HostFacts
from phalanx.preflight.options import CheckOptions


def examine(all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """Of the paths that the user names."""
    for path in options.paths:
        told = {one.label: one.section("paths")[path] for one in all_facts if path in one.section("paths")}
        absent = tuple(label for label, facts in told.items() if not facts["exists"])
        if absent:
            yield observe("path-missing", absent, path=path)
        refused = tuple(label for label, facts in told.items() if facts["exists"] and not facts["writable"])
        if refused:
            users = ", ".join(
                dict.fromkeys(str(one.section("who").get("user")) for one in all_facts if one.label in refused)
            )
            yield observe("path-not-writable", refused, path=path, user=users)
        for label, facts in told.items():
            space = facts["space"]
            if space is not None and facts["exists"] and space["free"] < options.space:
                free = f"{space['free'] / (1 << 30):.2f} GiB"
                yield observe(
                    "disk-almost-full", (label,), path=path, free=free, kind=facts["kind"] or "unknown file system"
                )
            elif space is not None and space["files"] and not space["files_free"]:
                yield observe("disk-almost-full", (label,), path=path, inodes=True)

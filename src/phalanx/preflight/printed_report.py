"""Judges what ranks printed: the facts of all of them, and what the network showed to each group that met."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phalanx.model import Unchecked
from phalanx.model.ranks import name_all
from phalanx.model.report import Report
from phalanx.preflight.check import host_facts_of, judge_facts, make_report
from phalanx.preflight.check_fact import CheckFact
from phalanx.preflight.group_result import GroupResult
from phalanx.preflight.host_facts import HostFacts
from phalanx.preflight.options import CheckOptions

_NOT_HERE = "check.rank-did-not-come-to-the-check"


def examine_printed(
    printed: Sequence[dict[str, Any]], groups: Sequence[GroupResult], broken: int, options: CheckOptions
) -> Report:
    """One report of all ranks, whether they could reach each other or not."""
    hosts = [str(facts.get("who", {}).get("hostname") or "unknown host") for facts in printed]
    all_facts: list[HostFacts] = []
    for host, facts in zip(hosts, printed, strict=True):
        taken = {one.label for one in all_facts}
        all_facts.append(host_facts_of((), host, facts, (None, 0.0), hosts.count(host) == 1, taken))
    check_facts, unchecked = judge_facts(all_facts, options)
    names = {(one.host, one.ranks[0] if one.ranks else None): one.label for one in all_facts}
    known = [group.renamed(names) for group in groups]
    # What one group saw says nothing for those that it did not meet.
    proven = frozenset.intersection(*(group.proven for group in known)) if known else frozenset()
    check_facts = [one for one in check_facts if not one.unless or one.unless not in proven]
    check_facts += _seen(known, check_facts, len(all_facts))
    unchecked += [item for group in known for item in group.unchecked]
    unchecked += _network_not_checked(known, all_facts)
    for one in all_facts:
        missing = one.facts.get("missing", {})
        unchecked += [Unchecked(f"{name} on {one.label}", str(why), essential=True) for name, why in missing.items()]
    if broken:
        what = f"what {broken} rank{'s' if broken > 1 else ''} printed"
        unchecked.append(Unchecked(what, "whole lines: they were cut off", essential=True))
    calls, measured = sum(group.calls for group in known), sum(group.measured for group in known)
    return make_report(check_facts, all_facts, unchecked, calls, measured)


def _seen(groups: Sequence[GroupResult], by_facts: Sequence[CheckFact], count: int) -> list[CheckFact]:
    """What the groups found; that a rank did not come is no finding if it printed, or if its number is missing anyway."""
    is_told = any(one.fact.id == "check.rank-missing" for one in by_facts)
    return [
        one
        for group in groups
        for one in group.facts
        if one.fact.id != _NOT_HERE or not (is_told or count >= int(str(one.fact.fields.get("size", 0))))
    ]


def _network_not_checked(groups: Sequence[GroupResult], all_facts: Sequence[HostFacts]) -> list[Unchecked]:
    """Between groups nothing was probed."""
    if not groups:
        return [Unchecked("the network between the ranks", "ranks that can be asked: --meet DIR, or --hosts")]
    met = {label for group in groups for label in group.labels}
    parts = [sorted(group.labels) for group in groups] + [[one.label] for one in all_facts if one.label not in met]
    if len(parts) < 2:
        return []
    between = name_all([", ".join(part) for part in parts])
    needs = "ranks that can meet: --meet DIR, or --hosts"
    return [Unchecked(f"the network between {between}", needs, essential=True)]

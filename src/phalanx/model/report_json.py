"""Reads the JSON form of a report back: what another process, or an earlier release, wrote by the contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from phalanx.model.finding import Basis, Confidence, Evidence, Finding, Fix, Place, Role, Safety
from phalanx.model.report import Report
from phalanx.model.stage import Stage
from phalanx.model.world import Host, Rank, Unchecked, World


def read_report(document: Mapping[str, Any]) -> Report:
    """The report of a document. Fields that it lacks get their defaults: the contract only grows."""
    return Report(
        world=_world(document.get("world") or {}),
        findings=tuple(_finding(item) for item in document.get("findings") or ()),
        not_checked=tuple(
            Unchecked(item["what"], item["needs"], item.get("weight") == "essential")
            for item in document.get("not_checked") or ()
        ),
        read=tuple(document.get("read") or ()),
        restarts=tuple(document.get("restarts") or ()),
    )


def _world(item: Mapping[str, Any]) -> World:
    return World(
        size=item.get("size"),
        framework=item.get("framework"),
        launcher=item.get("launcher"),
        hosts=tuple(Host(host["name"], tuple(host["ranks"])) for host in item.get("hosts") or ()),
        ranks=tuple(
            Rank(rank["rank"], rank.get("host"), last_step=rank.get("last_step"), exit_code=rank.get("exit_code"))
            for rank in item.get("ranks") or ()
        ),
    )


def _finding(item: Mapping[str, Any]) -> Finding:
    who, why = item.get("culprit_confidence"), item.get("cause_confidence")
    return Finding(
        symptom=item["symptom"],
        stage=Stage(item["stage"]),
        cause=item["cause"],
        rule=item.get("rule"),
        confidence=Confidence(item["confidence"]),
        distributed_specific=item["distributed_specific"],
        distributed_why=item.get("distributed_why", ""),
        culprit_ranks=tuple(item["culprit_ranks"]),
        victim_ranks=tuple(item["victim_ranks"]),
        affected_ranks=tuple(item.get("affected_ranks") or ()),
        title=item["title"],
        summary=item["summary"],
        fixes=tuple(_fix(fix) for fix in item.get("fixes") or ()),
        evidence=tuple(_evidence(piece) for piece in item.get("evidence") or ()),
        culprit_hosts=tuple(item.get("culprit_hosts") or ()),
        victim_hosts=tuple(item.get("victim_hosts") or ()),
        severity=item.get("severity", "error"),
        accused_by=item.get("accused_by", ""),
        because=item.get("because", ""),
        headline=item.get("headline", ""),
        detail=item.get("detail"),
        culprit_confidence=Confidence(who) if who else None,
        cause_confidence=Confidence(why) if why else None,
        place=_place(item.get("place")),
    )


def _fix(item: Mapping[str, Any]) -> Fix:
    return Fix(
        pattern=item["pattern"],
        title=item["title"],
        do=item["do"],
        why=item.get("why", ""),
        confirm=item.get("confirm", ""),
        safety=Safety(item.get("safety", "display")),
        where=_place(item.get("where")),
        study_share=item.get("study_share"),
        shell=item.get("shell", ""),
        basis=Basis(item.get("basis", "rule")),
    )


def _place(item: Mapping[str, Any] | None) -> Place | None:
    return None if item is None else Place(item["file"], item["line"], item.get("function", ""), item.get("text", ""))


def _evidence(item: Mapping[str, Any]) -> Evidence:
    return Evidence(
        rank=item.get("rank"),
        file=item["file"],
        line=item["line"],
        text=item["text"],
        role=Role(item["role"]),
        host=item.get("host"),
        alike=tuple(item.get("alike") or ()),
    )

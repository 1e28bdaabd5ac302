"""The report every verb ends with, and its JSON form: the contract `phalanx.report/1`."""

from dataclasses import dataclass
from typing import Any

from phalanx.model.finding import Evidence, Finding, Fix, Place
from phalanx.model.world import Unchecked, World

SCHEMA = "phalanx.report/1"


@dataclass(frozen=True, slots=True)
class Report:
    """Findings, best first; the first is the verdict unless there are none."""

    world: World
    findings: tuple[Finding, ...] = ()
    not_checked: tuple[Unchecked, ...] = ()
    read: tuple[str, ...] = ()
    without_output: tuple[str, ...] = ()  # of what was read: reports that quote no output of a program
    restarts: tuple[str, ...] = ()  # why earlier attempts of the job ended, oldest first
    scope: str = ""  # what was looked at, where that is not files: `24 steps on 2 ranks`
    jobs: tuple[
        tuple[str, "Report"], ...
    ] = ()  # of a folder that holds several, oldest first; this report is the last one's

    @property
    def verdict(self) -> Finding | None:
        """The finding to act on first."""
        return self.findings[0] if self.findings else None

    @property
    def is_complete(self) -> bool:
        """Whether everything was looked at that "nothing wrong" would have to rest on."""
        return not any(item.essential for item in self.not_checked)

    def to_json(self) -> dict[str, Any]:
        """The contract's form. Fields are only ever added to it, never renamed or removed."""
        findings = [_finding(finding) for finding in self.findings]
        return {
            "schema": SCHEMA,
            "world": {
                "size": self.world.size,
                "framework": self.world.framework,
                "launcher": self.world.launcher,
                "hosts": [{"name": host.name, "ranks": list(host.ranks)} for host in self.world.hosts],
                "ranks": [
                    {"rank": rank.number, "host": rank.host, "last_step": rank.last_step, "exit_code": rank.exit_code}
                    for rank in self.world.ranks
                ],
            },
            "verdict": findings[0] if findings else None,
            "findings": findings,
            "not_checked": [_unchecked(item) for item in self.not_checked],
            "read": list(self.read),
            "restarts": list(self.restarts),
            "scope": self.scope,
            **({"jobs": [{"job": name, **one.to_json()} for name, one in self.jobs]} if self.jobs else {}),
        }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "symptom": finding.symptom,
        "stage": finding.stage.value,
        "cause": finding.cause,
        "rule": finding.rule,
        "confidence": finding.confidence.value,
        "culprit_confidence": finding.culprit_confidence.value if finding.culprit_confidence else None,
        "cause_confidence": (finding.cause_confidence or finding.confidence).value,
        "distributed_specific": finding.distributed_specific,
        "distributed_why": finding.distributed_why,
        "culprit_ranks": list(finding.culprit_ranks),
        "victim_ranks": list(finding.victim_ranks),
        "affected_ranks": list(finding.affected_ranks),
        "culprit_hosts": list(finding.culprit_hosts),
        "victim_hosts": list(finding.victim_hosts),
        "severity": finding.severity,
        "accused_by": finding.accused_by,
        "because": finding.because,
        "headline": finding.first_line,
        "detail": finding.detail,
        "title": finding.title,
        "summary": finding.summary,
        "place": _place(finding.place),
        "fixes": [_fix(fix) for fix in finding.fixes],
        "evidence": [_evidence(item) for item in finding.evidence],
    }


def _unchecked(item: Unchecked) -> dict[str, str]:
    """`weight` says that without it nobody can say that nothing is wrong."""
    found = {"what": item.what, "needs": item.needs}
    return {**found, "weight": "essential"} if item.essential else found


def _fix(fix: Fix) -> dict[str, Any]:
    return {
        "pattern": fix.pattern,
        "title": fix.title,
        "do": fix.do,
        "why": fix.why,
        "confirm": fix.confirm,
        "where": {"file": fix.where.file, "line": fix.where.line} if fix.where else None,
        "safety": fix.safety.value,
        "study_share": fix.study_share,
        "shell": fix.shell,
        "basis": fix.basis.value,
    }


def _place(place: Place | None) -> dict[str, Any] | None:
    if place is None:
        return None
    return {"file": place.file, "line": place.line, "function": place.function, "text": place.text}


def _evidence(item: Evidence) -> dict[str, Any]:
    return {
        "rank": item.rank,
        "host": item.host,
        "file": item.file,
        "line": item.line,
        "text": item.text,
        "role": item.role.value,
        "alike": list(item.alike),
    }

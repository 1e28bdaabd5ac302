"""The safe fixes of a report as a shell script, host by host. It is printed, never executed."""

from __future__ import annotations

import shlex

from phalanx.model import Finding, Report, Safety

_ALIKE = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "PET_RDZV_ENDPOINT", "PET_MASTER_ADDR", "PET_MASTER_PORT")
_PLACEHOLDER = ("ADDRESS-OF-RANK-0", "INTERFACE", "VALUE", "NUMBER", "HOSTS")


def write_fix_script(report: Report) -> str:
    """Commands that only set variables and limits of the shell that the job is started from; what is not safe is named."""
    lines = [
        "#!/bin/sh",
        "# Safe fixes that phalanx check proposes. Read it, then source it where the job is started: . ./fixes.sh",
    ]
    skipped: list[str] = []
    for finding in report.findings:
        fix = next((fix for fix in finding.fixes if fix.safety is Safety.SAFE and fix.shell), None)
        if fix is None or any(mark in fix.shell for mark in _PLACEHOLDER):
            skipped.append(
                _comment(f"by hand: {finding.title}: {finding.fixes[0].do if finding.fixes else finding.summary}")
            )
            continue
        lines += ["", _comment(f"{finding.rule}: {finding.summary}"), _comment(f"on {_hosts(finding)}")]
        command = fix.shell
        # What all ranks must have alike is set everywhere, though one host alone is named.
        is_one_hosts = finding.culprit_hosts and len(finding.culprit_hosts) < len(report.world.hosts)
        if is_one_hosts and not fix.shell.startswith(tuple(f"export {name}=" for name in _ALIKE)):
            names = "|".join(map(shlex.quote, finding.culprit_hosts))
            command = f'case "$(hostname)" in {names}) {fix.shell} ;; esac'
        lines.append(command)
    if len(lines) == 2:
        lines.append("# Nothing here can be mended safely by a command.")
    return "\n".join([*lines, *(["", *skipped] if skipped else [])]) + "\n"


def _comment(text: str) -> str:
    return "# " + " ".join(text.split())


def _hosts(finding: Finding) -> str:
    return ", ".join(finding.culprit_hosts) or "every host"

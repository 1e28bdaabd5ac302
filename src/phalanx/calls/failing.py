"""From what became of a job to the exception that its caller sees: the culprit's, never a victim's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from phalanx.calls.errors import JobFailed, JobTimedOut, RemoteError
from phalanx.remote.job import Outcome
from phalanx.remote.pickles import load
from phalanx.remote.worker import EXCEPTION


def failure_of(outcome: Outcome) -> JobFailed:
    """The exception for a job that failed, chained from the culprit's own."""
    culprits = outcome.culprits
    rank = culprits[0] if culprits else None
    verdict: dict[str, Any] | None = (outcome.report or {}).get("verdict")
    host = outcome.hosts.get(rank) if rank is not None else None
    cause = exception_of(outcome.results, rank, host) if rank is not None else None
    ended = outcome.exits.get(rank) if rank is not None else None
    kind = JobTimedOut if outcome.reason.kind == "timeout" else JobFailed
    failed = kind(
        _message(outcome, rank, host, verdict, cause),
        verdict=verdict,
        rank=rank,
        host=host,
        victims=outcome.victims,
        bundle=outcome.bundle,
        culprits=culprits,
        exit_code=ended.code if ended is not None else None,
    )
    failed.__cause__ = cause
    return failed


def missing_result(outcome: Outcome, rank: int) -> JobFailed:
    """All ranks ended with status 0, and yet one of them did not return."""
    host = outcome.hosts.get(rank)
    return JobFailed(
        f"rank {rank}{_on(host)} ended with status 0 before the function returned (os._exit?); evidence: {outcome.bundle}",
        rank=rank,
        host=host,
        bundle=outcome.bundle,
        culprits=(rank,),
        exit_code=0,
    )


def exception_of(results: Path, rank: int, host: str | None) -> BaseException | None:
    """The exception of a rank, with its traceback as a note; None where it left none."""
    path = results / f"rank{rank}" / EXCEPTION
    if not path.exists():
        return None
    try:
        error, text = load(path)
    except Exception as problem:  # its class needs other arguments, or is not to be found here
        return RemoteError(f"rank {rank}'s exception cannot be shown as it was ({type(problem).__name__}: {problem})")
    if not isinstance(error, BaseException):
        return RemoteError(str(text))
    error.add_note(f"On rank {rank}{_on(host)}:\n{text}")
    return error


def _message(
    outcome: Outcome, rank: int | None, host: str | None, verdict: dict[str, Any] | None, cause: BaseException | None
) -> str:
    who = f"rank {rank}{_on(host)}" if rank is not None else "no single rank"
    if outcome.reason.kind == "timeout":
        said = outcome.reason.text
    elif cause is not None and not isinstance(cause, RemoteError):
        said = f"{type(cause).__name__}: {cause}"
    elif verdict:
        said = f"{verdict['title']}: {verdict['summary']}"
    else:
        said = outcome.reason.text
    known = (
        f" [{verdict['rule'] or verdict['cause']}, {verdict['symptom']}, {verdict['confidence']}]" if verdict else ""
    )
    first = verdict["fixes"][0]["title"] if verdict and verdict.get("fixes") else ""
    fix = f"\nfix: {first}" if first else ""
    return f"{who}: {said}{known}{fix}\nmore: phalanx diagnose {outcome.bundle}"


def _on(host: str | None) -> str:
    return f" ({host})" if host and host != "localhost" else ""

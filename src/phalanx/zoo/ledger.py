"""The ledger of proven cures: when each cured twin was last seen to pass, with which versions, for which files."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from phalanx.zoo.fault import Fault, FaultError

FILE = "proven.json"


@dataclass(frozen=True, slots=True)
class Proof:
    """One passed run. `files` is the fault's fingerprint: other files, no proof."""

    on: str
    seconds: float
    files: str
    versions: Mapping[str, str]


def read(zoo: Path) -> dict[str, Proof]:
    """All proofs by fault. Raises FaultError where the ledger is damaged."""
    file = zoo / FILE
    if not file.is_file():
        return {}
    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
        return {name: Proof(**proof) for name, proof in raw.items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise FaultError(f"{file}: not a ledger: {error}; restore it, or delete it and run the cures again") from None


def note(zoo: Path, fault: Fault, seconds: float, versions: Mapping[str, str]) -> None:
    """Write down that the cure of a fault, or a healthy job, passed today."""
    proofs = read(zoo)
    known = {"python": platform.python_version(), **versions}
    proofs[fault.name] = Proof(date.today().isoformat(), round(seconds, 1), fault.fingerprint(), known)
    text = json.dumps({name: asdict(proof) for name, proof in sorted(proofs.items())}, indent=1)
    draft = zoo / f"{FILE}.new"
    draft.write_text(text + "\n", encoding="utf-8")
    draft.replace(zoo / FILE)


def unproven(zoo: Path, faults: list[Fault]) -> list[str]:
    """Faults whose cure was never seen to pass in the form it has now."""
    proofs = read(zoo)
    return [one.name for one in faults if one.name not in proofs or proofs[one.name].files != one.fingerprint()]

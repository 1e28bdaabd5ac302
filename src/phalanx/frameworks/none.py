"""A program that runs several times and does not know of it."""

from phalanx.frameworks.launching import Meeting, Seat

NAME = "none"
IMPORTS: tuple[str, ...] = ()


def ports_needed(size: int) -> int:
    """None."""
    return 0


def variables(seat: Seat, meeting: Meeting) -> dict[str, str]:
    """Only who it is among how many."""
    return {"RANK": str(seat.rank), "WORLD_SIZE": str(seat.size)}

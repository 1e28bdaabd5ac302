"""The job as far as it is known: its ranks, hosts, framework and launcher."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Host:
    """A machine of the job, and the ranks known to run on it."""

    name: str
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Rank:
    """What was seen of one rank: how far it came, and how it ended where that is known."""

    number: int
    host: str | None = None
    files: tuple[str, ...] = ()
    last_step: float | None = None
    last_line: str = ""
    exit_code: int | None = None
    finished: bool = False


@dataclass(frozen=True, slots=True)
class World:
    """The whole job. `size` is None where nothing tells how many ranks there were."""

    size: int | None = None
    framework: str | None = None
    launcher: str | None = None
    hosts: tuple[Host, ...] = ()
    ranks: tuple[Rank, ...] = ()

    @property
    def seen(self) -> frozenset[int]:
        """The ranks that left any trace."""
        return frozenset(rank.number for rank in self.ranks)

    @property
    def all_ranks(self) -> frozenset[int]:
        """Every rank the job had, as far as is known."""
        return frozenset(range(self.size)) | self.seen if self.size is not None else self.seen


@dataclass(frozen=True, slots=True)
class Unchecked:
    """Something that could not be looked at, and what it would need."""

    what: str
    needs: str
    essential: bool = False  # without it nobody can say that nothing is wrong
    about: str = ""  # `traces`: of no use where the verdict does not rest on who waited for whom

"""Open MPI's daemon, which mpirun starts on every host over SSH before any rank: found there, or not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from phalanx.model import Unchecked
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.host_facts import HostFacts, one_per_network
from phalanx.preflight.options import CheckOptions

_DAEMONS = ("prted", "orted")  # of Open MPI 5 and of earlier ones


def examine(all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """Only where mpirun is to start the job from one of the hosts, and not yet has."""
    hosts = [one for one in one_per_network(all_facts) if one.section("programs")]
    if options.launch.program != "mpirun" or len(hosts) < 2:
        return
    prefix = options.launch.prefix
    if prefix:
        asked = [f"{prefix}/bin/{name}" for name in _DAEMONS]
        lacking = [one for one in hosts if not any(one.section("programs")["asked"].get(path) for path in asked)]
        if lacking:
            yield observe("mpi-daemon-missing", tuple(one.label for one in lacking), daemon=asked[1], prefix=prefix)
        return
    # What mpirun starts is of its own release: the one that stands beside it where it is called.
    caller = next((one for one in hosts if one.section("programs").get("mpirun")), None)
    if caller is None:
        return
    daemon = next((name for name in _DAEMONS if caller.section("programs").get(name)), None)
    lacking = [one for one in hosts if daemon is not None and not one.section("programs").get(daemon)]
    if lacking:
        folder = str(caller.section("programs")["mpirun"]).rpartition("/bin/")[0]
        yield observe(
            "mpi-daemon-missing",
            tuple(one.label for one in lacking),
            daemon=daemon,
            caller=caller.label,
            advised=folder or None,
            path=lacking[0].variable("PATH"),
        )

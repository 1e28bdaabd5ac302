"""A port that is taken, and by whom."""

from __future__ import annotations

from ..conftest import Diagnose

_REFUSED = "E0000 00:00:1.493201   14225 add_port.cc:83] Failed to add port to server: No address added out of total 1 resolved for '0.0.0.0:40445'\n"
_LISTENS = "I0000 00:00:1.572770   14226 grpc_server_lib.cc:467] Started server with target: grpc://localhost:{}\n"


def test_who_comes_second_to_a_port_of_the_job_is_not_accused(diagnose: Diagnose) -> None:
    verdict = diagnose({"worker-0.log": _REFUSED, "worker-1.log": _LISTENS.format(40445)}).verdict
    assert verdict is not None
    assert (verdict.symptom, verdict.culprit_ranks) == ("comm.setup-failure", ())


def test_a_port_that_a_stranger_holds(diagnose: Diagnose) -> None:
    verdict = diagnose({"worker-0.log": _REFUSED, "worker-1.log": _LISTENS.format(40446)}).verdict
    assert verdict is not None
    assert (verdict.symptom, verdict.culprit_ranks) == ("comm.setup-failure", (0,))


def test_who_takes_the_place_of_another_is(diagnose: Diagnose) -> None:
    own = "I0000 00:00:1.968573 5307 coordination_service.h:529] /job:worker/replica:0/task:1 has connected to coordination service.\n"
    verdict = diagnose({"worker-0.log": _REFUSED, "worker-1.log": _LISTENS.format(40445) + own}).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == (0,)

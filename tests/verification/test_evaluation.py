"""What ranks tell each other after an evaluation."""

from __future__ import annotations

from phalanx.verification.evaluation import calls_after, combines, evaluations
from phalanx.verification.samples import passes_of
from tests.verification.made import call
from tests.verification.passes import job, loader, one_pass


def test_calls_up_to_the_next_training_pass() -> None:
    events = [call("", "barrier"), call("", "allgather"), ["forward", {}], call("", "allreduce")]
    records = [loader(1, num_replicas=2), *one_pass(range(4), 1, trains=False, calls=events)]
    evidence = job(records, records)
    (done,) = passes_of(evidence.ranks[0])
    calls = calls_after(evidence.ranks[0], done)
    assert [one["op"] for one in calls] == ["allgather"]
    assert not combines({0: calls})
    assert combines({0: [{"op": "allreduce", "red": "SUM"}]})
    assert len(list(evaluations(evidence, (0, 1)))) == 1

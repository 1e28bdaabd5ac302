"""A check that could not look at everything never says that nothing is wrong."""

from __future__ import annotations

from typing import Any

from phalanx.preflight.channels import LocalChannel
from phalanx.preflight.check import examine
from phalanx.preflight.options import CheckOptions
from phalanx.preflight.targets import AgentTimeoutError, Target, this_machine

QUIET = CheckOptions(network=False)


class MuteChannel(LocalChannel):
    """An agent that was reached and then says nothing."""

    def ask(self, verb: str, args: dict[str, Any], timeout: float) -> list[dict[str, Any]]:
        """No answer, as when packets are lost."""
        raise AgentTimeoutError("no answer within 7 s")


class CutChannel(LocalChannel):
    """An agent of which one section was cut off."""

    def ask(self, verb: str, args: dict[str, Any], timeout: float) -> list[dict[str, Any]]:
        """Its facts without the interfaces."""
        answers = super().ask(verb, args, timeout)
        if verb == "facts":
            del answers[0]["interfaces"]
            answers[0]["missing"]["interfaces"] = "no answer within 3 s"
        return answers


def test_a_rank_that_does_not_answer_is_a_finding_that_names_it() -> None:
    mute = Target("", "node1", (1,), MuteChannel())
    report = examine([this_machine("node0"), mute], QUIET)
    (finding,) = [one for one in report.findings if one.cause == "host-stopped-answering"]
    assert finding.culprit_hosts == ("node1",)
    assert "rank 1 on node1" in finding.summary.lower()


def test_nobody_answers() -> None:
    report = examine([Target("", "node1", (1,), MuteChannel())], QUIET)
    assert [finding.cause for finding in report.findings] == ["host-stopped-answering"]


def test_a_section_that_was_cut_off_makes_the_check_incomplete() -> None:
    whole = examine([this_machine("node0")], QUIET)
    assert whole.is_complete
    cut = examine([Target("node0", "node0", (), CutChannel())], QUIET)
    assert cut.findings == whole.findings
    assert not cut.is_complete
    assert {"what": "interfaces on node0", "needs": "no answer within 3 s", "weight": "essential"} in cut.to_json()[
        "not_checked"
    ]

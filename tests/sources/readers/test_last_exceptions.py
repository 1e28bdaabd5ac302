"""An exception's message without its traceback, at the end of a log."""

from __future__ import annotations

from phalanx.model import EventKind

from ...conftest import Diagnose
from .test_tracebacks import events

STEPS = "".join(f"step {step} loss {1 / (step + 1):.3f}\n" for step in range(12))
LAST = "RuntimeError: No Adasum operation enabled\n"


def test_the_last_words() -> None:
    (event,) = events(STEPS + LAST)
    assert (event.kind, event.text, event.frames) == (EventKind.EXCEPTION, LAST.strip(), ())
    assert event.data["type"] == "RuntimeError"


def test_a_shell_may_say_more() -> None:
    assert events(STEPS + LAST + "\nmake: *** [train] Error 1\n")[0].text == LAST.strip()


def test_what_the_job_went_on_after_is_no_end() -> None:
    assert not events(STEPS + LAST + STEPS)
    assert not events(STEPS + LAST + "Training finished\n")


def test_a_warning_and_a_word_are_none() -> None:
    assert not events(STEPS + "UserWarning: the scheduler was stepped first\n")
    assert not events(STEPS + "Validation: 0.4\n")


def test_the_verdict_says_what_is_not_known(diagnose: Diagnose) -> None:
    verdict = diagnose({"job.log": STEPS + "ValueError: quux\n"}).verdict
    assert verdict is not None
    assert (verdict.rule, str(verdict.confidence), verdict.culprit_ranks) == (None, "possible", ())

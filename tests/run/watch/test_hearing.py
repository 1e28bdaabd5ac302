"""What the watch makes of a rank's output."""

from __future__ import annotations

from phalanx.run.watch.hearing import Hearing


def hear(hearing: Hearing, *lines: str, now: float = 0.0) -> int:
    before = hearing.news
    for line in lines:
        hearing.line(line.encode())
    hearing.digest(now)
    return hearing.news - before


def test_steps_are_progress_and_give_a_rate() -> None:
    hearing = Hearing()
    assert hear(hearing, "epoch 1 step 10 loss 0.5", now=0) == 1
    assert hear(hearing, "epoch 1 step 30 loss 0.4", now=10) == 1
    assert (hearing.step, hearing.steps_per_second) == (30, 2.0)
    assert hear(hearing, "epoch 1 step 30 loss 0.4", now=11) == 0
    assert hear(hearing, "epoch 2 step 1 loss 0.4", now=12) == 1


def test_the_same_words_again_are_no_news() -> None:
    hearing = Hearing()
    assert hear(hearing, "waiting for shard 12, try 1") == 1
    assert hear(hearing, *(f"waiting for shard 12, try {number}" for number in range(2, 30))) == 0
    assert hear(hearing, "downloading") == 1


def test_a_flood_is_counted_but_not_read() -> None:
    hearing = Hearing()
    for number in range(100_000):
        hearing.line(b"a line of a flood, number %d" % number)
    assert len(hearing.pending) <= 40
    hearing.digest(0.0)
    assert hearing.lines == 100_000
    assert len(hearing.last) <= 120


def test_bytes_that_are_no_text() -> None:
    assert hear(Hearing(), "", "   ") == 0
    hearing = Hearing()
    hearing.line(b"\xff\xfe\x00 step 3")
    hearing.digest(0.0)
    assert hearing.lines == 1


def test_a_bar_within_an_epoch_and_a_loss_without_a_step_are_progress() -> None:
    hearing = Hearing()
    bar = "Epoch 1:  17%|█▋        | {}/30 [00:01<00:05,  4.0it/s]"
    assert hear(hearing, *(bar.format(step) for step in range(5))) == 5
    assert hearing.step == 4
    assert hear(Hearing(), "loss: 0.5", "loss: 0.4", "loss: 0.4") == 3  # the repeated line is a form not heard before

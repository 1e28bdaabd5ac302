"""What the watch makes of a rank's output."""

from __future__ import annotations

from phalanx.run.watch.output_progress import OutputProgress


def hear(output: OutputProgress, *lines: str, now: float = 0.0) -> int:
    before = output.news
    for line in lines:
        output.line(line.encode())
    output.digest(now)
    return output.news - before


def test_steps_are_progress_and_give_a_rate() -> None:
    output = OutputProgress()
    assert hear(output, "epoch 1 step 10 loss 0.5", now=0) == 1
    assert hear(output, "epoch 1 step 30 loss 0.4", now=10) == 1
    assert (output.step, output.steps_per_second) == (30, 2.0)
    assert hear(output, "epoch 1 step 30 loss 0.4", now=11) == 0
    assert hear(output, "epoch 2 step 1 loss 0.4", now=12) == 1


def test_the_same_words_again_are_no_news() -> None:
    output = OutputProgress()
    assert hear(output, "waiting for shard 12, try 1") == 1
    assert hear(output, *(f"waiting for shard 12, try {number}" for number in range(2, 30))) == 0
    assert hear(output, "downloading") == 1


def test_a_flood_is_counted_but_not_read() -> None:
    output = OutputProgress()
    for number in range(100_000):
        output.line(b"a line of a flood, number %d" % number)
    assert len(output.pending) <= 40
    output.digest(0.0)
    assert output.lines == 100_000
    assert len(output.last) <= 120


def test_bytes_that_are_no_text() -> None:
    assert hear(OutputProgress(), "", "   ") == 0
    output = OutputProgress()
    output.line(b"\xff\xfe\x00 step 3")
    output.digest(0.0)
    assert output.lines == 1


def test_a_bar_within_an_epoch_and_a_loss_without_a_step_are_progress() -> None:
    output = OutputProgress()
    bar = "Epoch 1:  17%|█▋        | {}/30 [00:01<00:05,  4.0it/s]"
    assert hear(output, *(bar.format(step) for step in range(5))) == 5
    assert output.step == 4
    assert (
        hear(OutputProgress(), "loss: 0.5", "loss: 0.4", "loss: 0.4") == 3
    )  # the repeated line is a form not heard before

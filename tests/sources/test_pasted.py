"""What programs printed is cut out of a report, under the line numbers it had; a log stays as it is."""

from __future__ import annotations

import io

import pytest

from phalanx.sources.pasted import is_all_words, program_output

TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 3, in main\n    step()\nValueError: bad batch'


def cut(text: str, name: str = "issue.md") -> dict[int, str]:
    stream, reduction = program_output(io.BufferedReader(io.BytesIO(text.encode())), name)
    lines = stream.read().decode().split("\n")
    assert reduction is not None
    assert reduction.kept == sum(map(bool, lines))
    assert len(lines) == text.count("\n") + 1
    return {number: line for number, line in enumerate(lines, 1) if line}


@pytest.mark.parametrize("fence", ["```", "~~~", "```shell", "```text", "`", "> ```"])
def test_a_fenced_block_is_kept_under_its_line_numbers(fence: str) -> None:
    close = fence.removesuffix("shell").removesuffix("text")
    assert cut(f"# It fails\n\nI run this:\n{fence}\nstarting\nall good\n{close}\nWhat now?\n") == {
        5: "starting",
        6: "all good",
    }


def test_source_code_is_not_what_a_program_said() -> None:
    code = 'raise RuntimeError("CUDA out of memory")'
    assert cut(f"My script:\n```python\n{code}\n```\n") == {}
    assert cut(f"My script:\n```\nimport torch\n\nif torch:\n    {code}\n```\n") == {}
    assert cut(f"It said\n```\n{code}\n```\n") == {3: code}


def test_output_below_code_in_one_fence_is_kept() -> None:
    assert cut("See\n```\nimport torch\ntrain()\n[rank0]: ValueError: bad batch\n```\n") == {
        5: "[rank0]: ValueError: bad batch"
    }


def test_what_looks_like_code_in_the_middle_of_output_stays() -> None:
    lines = ["starting", "", "with two ranks", "done"]
    assert list(cut("See\n```\n" + "\n".join(lines) + "\n```\n").values()) == [line for line in lines if line]


def test_lines_of_ray_need_no_fence() -> None:
    line = "(RayWorkerWrapper pid=4009) [rank1]:[E ProcessGroupNCCL.cpp:563] [Rank 1] Watchdog caught it"
    assert cut(f"Hello there, it hangs\n\n{line}\n") == {3: line}


def test_output_in_a_fence_of_another_language_is_kept() -> None:
    kept = cut(f"I get\n```python\n{TRACEBACK}\n```\n")
    assert list(kept.values()) == TRACEBACK.split("\n")


def test_tracebacks_and_log_lines_need_no_fence() -> None:
    kept = cut(f"Hello all\n\nI get this error:\n{TRACEBACK}\n\nThe loss was fine.\n[rank1]: loading\n")
    assert kept == dict(enumerate(TRACEBACK.split("\n"), 4)) | {10: "[rank1]: loading"}


def test_an_indented_block_is_kept_and_an_indented_sentence_is_not() -> None:
    assert cut("It says\n\n    cudaErrorLaunchFailure\n\n    and then nothing happens any more at all\n") == {
        3: "    cudaErrorLaunchFailure"
    }


def test_what_a_person_quotes_in_a_sentence_is_no_output() -> None:
    assert (
        cut("I saw `RuntimeError: NCCL error` last week, which I fixed. Now it is CUDA out of memory on rank 3.\n")
        == {}
    )


def test_code_within_a_line_opens_no_fence() -> None:
    assert cut("Use ```loss.item()``` instead\n\nThanks for all the help\n") == {}


def test_a_page_keeps_its_preformatted_text() -> None:
    assert cut("<p>It fails</p>\n<pre><code>\nSegfault\n</code></pre>\n<p>Why is that so?</p>\n", "question.html") == {
        3: "Segfault"
    }


@pytest.mark.parametrize(
    "log",
    [
        "Loading the model from disk\nstep 1 loss 2.0\nsome words of a program without any mark\n",
        "Failed to load the native TensorFlow runtime.\n\nSee https://www.tensorflow.org/install/errors\n",
        "[rank0]: sample\n```\nhello\n```\nsome words of a program without any mark\n",
    ],
)
def test_a_log_is_left_as_it_is(log: str) -> None:
    stream, reduction = program_output(io.BufferedReader(io.BytesIO(log.encode())), "job.log")
    assert reduction is None
    assert stream.read() == log.encode()


def test_a_text_with_a_fence_that_opens_with_words_is_a_report_whatever_its_name() -> None:
    assert cut("My training does not start\n```\nfoo\n```\nPlease help me with this\n", "<stdin>") == {3: "foo"}


def test_sentences_only() -> None:
    assert is_all_words(["My training hangs after two epochs.", "", "What should I do about that?"])
    assert is_all_words(["训练卡住了怎么办"])
    assert not is_all_words(["My training hangs after two epochs.", "step 3 loss 0.2"])
    assert not is_all_words([""])

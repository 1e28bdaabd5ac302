"""Python tracebacks in every shape they come in."""

from __future__ import annotations

import pytest

from phalanx.diagnosis.match import patterns_of
from phalanx.model import Event, EventKind
from phalanx.sources import Collector, from_text

COLLECTOR = Collector(patterns_of(()), {})


def events(text: str, name: str = "job.log") -> list[Event]:
    return COLLECTOR.collect([from_text(name, text)]).events


PLAIN = """\
before
Traceback (most recent call last):
  File "/home/user/train.py", line 88, in <module>
    main()
    ~~~~^^
  File "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1736, in _call_impl
    return forward_call(*args, **kwargs)
RuntimeError: sizes differ
expected 3
  got 4
2024-01-02 10:00:00 INFO next record
"""


def test_plain() -> None:
    (event,) = events(PLAIN)
    assert event.kind is EventKind.EXCEPTION
    assert event.text == "RuntimeError: sizes differ expected 3 got 4"
    assert event.line == 8
    assert [frame.function for frame in event.frames] == ["<module>", "_call_impl"]
    assert event.frames[0].source == "main()"
    assert event.user_frame is not None
    assert (event.user_frame.file, event.user_frame.line) == ("/home/user/train.py", 88)


@pytest.mark.parametrize("behind", ["", "████▉| 7587/7588 [1:42:01<00:00,  1.26it/s]"])
def test_the_first_letter_was_lost(behind: str) -> None:
    (event,) = events(
        f'raceback (most recent call last):{behind}\n  File "/home/user/train.py", line 8, in main\nValueError: no\n'
    )
    assert (event.text, event.frames[0].line) == ("ValueError: no", 8)


def test_interleaved_ranks() -> None:
    one = [f"[rank0]: {line}" for line in PLAIN.splitlines()]
    two = [f"[rank1]: {line.replace('sizes differ', 'other thing')}" for line in PLAIN.splitlines()]
    mixed = "\n".join(line for pair in zip(one, two, strict=True) for line in pair)
    found = {event.rank: event.text for event in events(mixed)}
    assert found == {0: "RuntimeError: sizes differ expected 3 got 4", 1: "RuntimeError: other thing expected 3 got 4"}


def test_chained() -> None:
    text = (
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    x\nKeyError: 'a'\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "a.py", line 3, in g\n    y\nValueError: b\n'
    )
    assert [event.text for event in events(text)] == ["KeyError: 'a'", "ValueError: b"]


def test_grouped() -> None:
    text = (
        "  + Exception Group Traceback (most recent call last):\n"
        '  |   File "a.py", line 1, in <module>\n  |     run()\n'
        "  | ExceptionGroup: many (2 sub-exceptions)\n"
        "  +-+---------------- 1 ----------------\n"
        "    | Traceback (most recent call last):\n"
        '    |   File "a.py", line 5, in one\n    |     boom()\n'
        "    | ValueError: first\n"
        "    +------------------------------------\n"
    )
    texts = [event.text for event in events(text)]
    assert texts[0].startswith("ExceptionGroup: many")
    assert "ValueError: first" in texts[1]


def test_from_a_worker_process() -> None:
    text = (
        'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    for x in loader:\n'
        "RuntimeError: Caught ValueError in DataLoader worker process 0.\n"
        "Original Traceback (most recent call last):\n"
        '  File "data.py", line 4, in __getitem__\n    raise ValueError("bad record")\n'
        "ValueError: bad record\n"
    )
    outer, inner = events(text)
    assert outer.text == "RuntimeError: Caught ValueError in DataLoader worker process 0."
    assert inner.text == "ValueError: bad record"
    assert inner.data["is_nested"]


def test_spawned_process_gives_the_rank() -> None:
    text = (
        "-- Process 2 terminated with the following error:\n"
        'Traceback (most recent call last):\n  File "train.py", line 9, in worker\n    x\nValueError: b\n'
    )
    assert [event.rank for event in events(text) if event.kind is EventKind.EXCEPTION] == [2]


def test_interruption_is_a_stack() -> None:
    text = (
        'Traceback (most recent call last):\n  File "train.py", line 9, in f\n    dist.barrier()\nKeyboardInterrupt\n'
    )
    (event,) = events(text)
    assert event.kind is EventKind.STACK


@pytest.mark.parametrize("lines", range(2, 9))
def test_cut_off_anywhere(lines: int) -> None:
    cut = "\n".join(PLAIN.splitlines()[:lines])
    found = events(cut)
    assert found or lines < 3, "a frame was there to be read"
    assert all(event.frames or event.text for event in found)


def test_the_header_alone_is_nothing() -> None:
    assert events("Traceback (most recent call last):\n") == []
    assert events("it printed Traceback (most recent call last): and went on\nepoch 1\n") == []


def test_quoted_and_in_bold() -> None:
    text = '> Traceback (most recent call last):\n>   File "train.py", line 9, in main\n>     model(x)\n> **RuntimeError: sizes differ**\n> more\n'
    (event,) = events(text)
    assert event.text.startswith("RuntimeError: sizes differ")
    assert event.frames[0].function == "main"


def test_a_forum_took_the_indentation_and_bent_the_quotes() -> None:
    lines = ["Traceback (most recent call last):", "File “/data/train.py”, line 438, in", "main()"]
    lines += ["File “/data/train.py”, line 374, in main", "accelerator.backward(loss)", "RuntimeError: sizes differ"]
    (event,) = events("".join(f"[rank1]: {line}\n" for line in lines))
    assert (event.rank, event.text) == (1, "RuntimeError: sizes differ")
    assert [(frame.line, frame.source) for frame in event.frames] == [
        (438, "main()"),
        (374, "accelerator.backward(loss)"),
    ]


def test_stamps_of_a_collector_do_not_hide_it() -> None:
    stamped = "".join(
        f"2024-01-02T10:00:00.{number:03}Z stderr F {line}\n" for number, line in enumerate(PLAIN.splitlines())
    )
    (event,) = events(stamped)
    assert event.text.startswith("RuntimeError: sizes differ")
    assert event.frames[0].source == "main()"
    assert event.time is not None


def test_indented_within_other_output() -> None:
    text = "      -- Found MPI\n      Traceback (most recent call last):\n        File \"<string>\", line 1, in <module>\n      ModuleNotFoundError: No module named 'tensorflow'\n      -- done\n"
    (event,) = events(text)
    assert event.text.startswith("ModuleNotFoundError: No module named 'tensorflow'")
    assert event.data["type"] == "ModuleNotFoundError"


def test_an_ignored_exception_is_marked() -> None:
    text = (
        "Exception ignored in: <function Cursor.__del__ at 0x7f898a56fce0>\n"
        'Traceback (most recent call last):\n  File "train.py", line 5, in __del__\n'
        "RuntimeError: cannot schedule new futures after interpreter shutdown\n"
    )
    (event,) = events(text)
    assert event.data["is_ignored"]
    (event,) = events(text.split("\n", 1)[1])
    assert not event.data["is_ignored"]


def test_more_than_two_hundred_lines() -> None:
    frames = "".join(
        f'  File "/home/user/net.py", line {n}, in forward\n    return self.inner(x)\n' for n in range(150)
    )
    (event,) = events(f"Traceback (most recent call last):\n{frames}RuntimeError: sizes differ\n")
    assert event.text == "RuntimeError: sizes differ"
    assert len(event.frames) == 150


def test_what_a_graph_says_below_the_place_where_its_node_was_made() -> None:
    """TensorFlow 2.8 to 2.11 repeat the lines of code and name the node again; later releases do neither."""
    head = (
        'Traceback (most recent call last):\n  File "/job/train.py", line 24, in <module>\n    coordinator.join()\n'
        "tensorflow.python.framework.errors_impl.OutOfRangeError: Graph execution error:\n\n"
    )
    old = (
        "Detected at node 'IteratorGetNext' defined at (most recent call last):\n"
        '    File "/job/train.py", line 21, in step\n      return strategy.run(one, args=(next(it),))\n'
        "Node: 'IteratorGetNext'\nEnd of sequence\n\t [[{{node IteratorGetNext}}]] [Op:__inference_step_57]\n"
    )
    new = (
        "Detected at node IteratorGetNext defined at (most recent call last):\n"
        '  File "/job/train.py", line 24, in <module>\n\n  File "/job/train.py", line 21, in step\n\n'
        "End of sequence\n\t [[{{node IteratorGetNext}}]] [Op:__inference_step_57]\n\nsomething else\n"
    )
    for listing in (old, new):
        (event,) = events(head + listing)
        assert event.text.endswith(
            "OutOfRangeError: Graph execution error: End of sequence [[{{node IteratorGetNext}}]] [Op:__inference_step_57]"
        )
        assert event.user_frame is not None
        assert event.user_frame.line == 21


def test_a_graph_that_says_nothing_below() -> None:
    (event,) = events(
        'Traceback (most recent call last):\n  File "/job/train.py", line 24, in <module>\n    step()\n'
        "tensorflow.python.framework.errors_impl.InternalError: Graph execution error:\n\nDetected at node A defined at (most recent call last):\n"
    )
    assert event.text == "tensorflow.python.framework.errors_impl.InternalError: Graph execution error:"


IN_USER_CODE = """\
Traceback (most recent call last):
  File "/home/user/train.py", line 40, in <module>
    step(batches)
  File "/opt/venv/lib/python3.11/site-packages/tensorflow/python/autograph/impl/api.py", line 439, in converted_call
    result = converted_f(*effective_args, **kwargs)
  File "/tmp/__autograph_generated_filejuuw78hv.py", line 12, in tf__step
    loss = ag__.converted_call(ag__.ld(tf).reduce_mean, (ag__.ld(x) @ ag__.ld(w),), None, fscope)
  File "/opt/venv/lib/python3.11/site-packages/tensorflow/python/framework/ops.py", line 1081, in _create_c_op
    raise ValueError(e.message)
ValueError: in user code:

    File "/home/user/train.py", line 23, in step  *
        loss = tf.reduce_mean(x @ w)

    ValueError: Dimensions must be equal, but are 1 and 2 for 'matmul'.

done
"""
GRAPH_ERROR = """\
Traceback (most recent call last):
  File "/home/user/train.py", line 29, in <module>
    step(ids)
  File "/opt/venv/lib/python3.11/site-packages/tensorflow/python/eager/execute.py", line 53, in quick_execute
    tensors = pywrap_tfe.TFE_Py_Execute(ctx._handle, device_name, op_name,
tensorflow.python.framework.errors_impl.InvalidArgumentError: Graph execution error:

Detected at node while/GatherV2 defined at (most recent call last):
  File "/tmp/__autograph_generated_filelbvhn18x.py", line 16, in fn

  File "/home/user/train.py", line 14, in lookup

indices = 59 is not in [0, 50)
"""


def test_a_function_that_tensorflow_converted_is_shown_as_the_user_wrote_it() -> None:
    event = events(IN_USER_CODE)[0]
    assert event.text == "ValueError: Dimensions must be equal, but are 1 and 2 for 'matmul'."
    assert event.user_frame is not None
    assert (event.user_frame.place, event.user_frame.source) == ("train.py:23", "loss = tf.reduce_mean(x @ w)")
    assert not any("autograph_generated" in frame.file for frame in event.frames)
    assert event.frames[-1].function == "_create_c_op"  # who raised it stays the last


def test_an_error_in_a_graph_is_shown_where_its_node_was_made() -> None:
    (event,) = events(GRAPH_ERROR)
    assert event.user_frame is not None
    assert event.user_frame.place == "train.py:14"
    assert event.text.endswith("indices = 59 is not in [0, 50)")


def test_a_message_ends_where_other_ranks_and_libraries_speak() -> None:
    """c10's times have no zero before the month."""
    head = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    f()\nValueError: bad\n'
    for other in (
        "ncclRemoteError: A call failed",
        "[E313 09:05:13.8 ProcessGroupNCCL.cpp:1794] x",
        "terminate called after throwing",
    ):
        [event] = events(head + other + "\n")
        assert event.text == "ValueError: bad"

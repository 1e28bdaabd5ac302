"""People's words told from programs' words."""

from __future__ import annotations

from phalanx.sources.people import messages_in, split_title, words_of_person

REPORT = """\
# Training is slower with two GPUs

I am training a ResNet with DistributedDataParallel on two GPUs. My epochs take longer than on a single GPU.

```
[rank0]: epoch 1 step 10 loss 0.3
I 0001 kernel something
```
Any help is welcome.
"""


def test_prose_without_the_pasted_log() -> None:
    words = words_of_person(REPORT)
    assert words is not None
    assert "My epochs take longer than on a single GPU." in words
    assert "kernel something" not in words
    assert "\n" not in words


def test_quoted_lines_of_a_program_are_no_prose_and_addresses_no_words() -> None:
    quoted = (
        "> 2018-03-15 19:59:32.30: I tensorflow/core/cpu_feature_guard.cc:140] This binary was not compiled to use AVX2"
    )
    words = words_of_person(
        f"# Crash\nMy worker crashes.\n{quoted}\nIt stuck here: https://host/x.py#L1 (dist.init_process_group)\n",
        "report.md",
    )
    assert words is not None
    assert "compiled" not in words
    assert "init_process_group" in words


def test_issue_form_is_a_report() -> None:
    text = "**Environment:**\n1. Framework: TensorFlow\n**Bug report:**\nhangs at the start\n"
    assert words_of_person(text) is not None


def test_logs_are_not_reports() -> None:
    log = "\n".join(f"2024-01-02 10:00:{n:02d} INFO starting the training of the model on rank {n}" for n in range(30))
    assert words_of_person(log) is None
    assert (
        words_of_person(
            "Traceback (most recent call last):\nValueError: we expected 3 values, please check your data\n"
        )
        is None
    )
    chatty = "To avoid data inconsistency, we are taking the entire process down.\nPlease check your settings, we recommend more workers.\n"
    assert words_of_person("epoch 1 step 2 loss 3\n" * 5 + "2024-01-02 10:00:00 x\n" + chatty) is None
    assert words_of_person("") is None


def test_title_and_rest_are_told_apart() -> None:
    words = words_of_person(REPORT)
    assert words is not None
    title, body = split_title(words)
    assert title == "Training is slower with two GPUs"
    assert body.startswith("I am training a ResNet")
    assert split_title("no mark here") == ("", "no mark here")


def test_messages_are_found_in_quotes_titles_and_bold() -> None:
    text = "# RuntimeError: bad\n> **ValueError: worse**\nfine here\nop failed at line 3\n"
    assert messages_in(text) == ("RuntimeError: bad", "ValueError: worse", "op failed at line 3")


def test_an_error_line_is_no_report() -> None:
    line = "tensorflow.python.framework.errors_impl.DataLossError: not an sstable: perhaps your file is in a different file format?\n"
    assert words_of_person(line) is None


def test_what_a_language_model_says_in_a_log_is_no_report() -> None:
    steps = "".join(f"step {n} loss {3 - n / 100:.2f} lr 1e-4\n" for n in range(60))
    said = (
        "sample: I think my car has a problem and it does not start.\nsample: I am stuck and I can not find my keys.\n"
    )
    assert words_of_person(steps + said + steps) is None


def test_a_title_above_sentences_makes_a_report_without_i_and_without_a_form() -> None:
    ours = (
        "# Scaling is poor on one server\n\nWhen we train on 4 GPUs the speed is lower than on one.\n\n1. CUDA: 10.1\n"
    )
    nobody = "# hvd.size() is always 1 when using Docker\n\nGPU: 2080ti * 8\n\nThe server has 8 GPUs. However, the result of hvd.size() is always 1.\n"
    code = "# Hang at the wrapping of the model\n\n```python\nmodel = DDP(model)\n```\n"
    plain = "Only one of my GPUs is used\n\nI have two GPUs, but one is idle:\n" + "| 0  Tesla V100 | 42 % |\n" * 9
    for text in (ours, nobody, code, plain):
        assert words_of_person(text) is not None, text


def test_tables_prompts_and_listings_that_open_with_a_hash_are_no_reports() -> None:
    table = "# nThread 1 nGpus 4 minBytes 8 maxBytes 134217728\n#\n# Using devices\n2024-01-02 10:00:00 all ranks are waiting for the first rank here\n"
    prompt = "# horovodrun -np 2 python train.py\nFiltering local host names.\n2024-01-02 10:00:00 INFO we are taking the process down now\n"
    listing = "# packages in environment at /opt/conda:\n#\nnumpy 1.18\n2024-01-02 10:00:00 INFO done\n"
    for text in (table, prompt, listing):
        assert words_of_person(text) is None, text


def test_answers_to_a_form_are_no_complaints() -> None:
    words = words_of_person(
        "# Two cards are slow\n\n**Checklist:**\n2. If your question is about hang, did you read the doc?\nno, not hang\n\nI see half the speed.\n"
    )
    assert words is not None
    assert "hang" not in words
    assert "half the speed" in words


def test_a_report_in_chinese_is_a_report() -> None:
    text = "DDP训练，一直卡在评估不动\n\nEvaluating the results...\n[E ProcessGroupNCCL.cpp:821] [Rank 3] Watchdog caught collective operation timeout\n"
    words = words_of_person(text)
    assert words is not None
    assert "卡在" in words
    assert words_of_person("2024-01-02 10:00:00 第 1 轮 损失 0.5\n" * 5) is None


def test_a_short_post_below_a_title_and_a_fence_of_single_ticks_are_reports() -> None:
    assert (
        words_of_person("import error\n\nlibtorch_cuda.so: undefined symbol: ncclCommRegister\n\nplease suggest\n")
        is not None
    )
    pasted = "NCCL INFO NET/IB : GPU Direct RDMA Disabled\n\nI see this on my two machines.\n\n`\nnode0:31:40 [0] NCCL INFO Using network IB\n`\n"
    assert words_of_person(pasted) is not None


def test_a_title_that_tells_of_trouble_makes_a_report_of_what_was_pasted_below() -> None:
    pasted = '  File "/site-packages/keras/engine/training.py", line 634, in compile\n    for loss in self.losses:\n'
    words = words_of_person("The strategy returns AssertionError when run with my layer\n\n" + pasted)
    assert words is not None
    assert "AssertionError" in split_title(words)[0]
    assert words_of_person("Starting the training of the model on two hosts\n\n" + pasted) is None


def test_words_that_a_form_puts_into_a_fence_are_the_persons() -> None:
    form = "### Current Behaviour?\n\n```shell\nIt falls over in the second epoch without a word.\n```\n"
    code = "### Standalone code\n\n```shell\nprint the second thing over there please\n```\n"
    words = words_of_person(f"# It fails\n\n{form}\n{code}", "report.md")
    assert words is not None
    assert "falls over in the second epoch" in words
    assert "second thing" not in words


def test_who_writes_before_the_steps_is_a_person() -> None:
    steps = "Epoch: [0][100/167] Time: 0.539s loss 0.3\n" * 5
    assert words_of_person("out of memory again\n\nI get it whenever I go on with training:\n" + steps) is not None
    assert words_of_person("训练到一半不跑了\n\n请问有没有遇到过：\n" + steps) is not None
    assert words_of_person(steps + "Sample: I am my own answer, thanks to you\n" + steps) is None


def test_a_title_that_is_an_exception_needs_a_fence_or_a_person_below() -> None:
    error = "TypeError: reduce() missing 1 required positional argument\n\n"
    assert words_of_person(error + "```\nwith strategy.scope():\n    model = build()\n```\n") is not None
    assert words_of_person(error + "Hi, how should I fix it?\n") is not None
    assert words_of_person(error + 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n') is None


def test_two_whole_sentences_below_a_title_make_a_report() -> None:
    said = "The fine-tuning stands completely still when it comes to saving a checkpoint there.\n"
    table = "Size: 0 B\nStatus: Invalid\nPath: /workspace/out\n" * 5
    assert words_of_person(f"Saving of checkpoints under FSDP\n\n{said}\n{table}\n{said}") is not None


def test_sentences_in_other_languages_are_words_and_get_their_english() -> None:
    words = words_of_person("多卡训练报错怎么解决\n\n采用这个配置进行训练时，loss为NaN\n")
    assert words is not None
    assert "error" in split_title(words)[0]
    assert "loss 为 NaN" in words


def test_a_message_above_an_empty_line_is_the_title_that_is_asked_about() -> None:
    words = words_of_person("RuntimeError: boom\n\nI get this with two GPUs, but not with one.\n```\ncode\n```\n")
    assert words is not None
    assert split_title(words) == ("RuntimeError: boom", "I get this with two GPUs, but not with one.")


def test_an_exceptions_bare_name_may_be_a_title() -> None:
    words = words_of_person("torch.x.ChildFailedError:\n\nmay I know what this is? I have no idea.\n")
    assert words is not None
    assert words.startswith("torch.x.ChildFailedError:")


def test_what_forms_ask_is_not_said_by_the_person() -> None:
    form = (
        "# A question\n\nModel I am using (Bert, XLNet ...): Bart\nThe problem arises when using: a script\n"
        "- [x] My own modified scripts\nThe bug has not been fixed in the latest version.\nAre you willing to submit a PR?\n"
        "I want to know how the loss is averaged.\n"
    )
    words = words_of_person(form, "report.md")
    assert words is not None
    assert split_title(words)[1] == "I want to know how the loss is averaged."


def test_a_post_that_breaks_off_within_its_fence_is_a_report() -> None:
    log = "\n".join(f'  File "/lib/python3/{number}.py", line {number}, in run' for number in range(30))
    assert words_of_person(f"NCCL error\n\nThanks for the code!\nI get this after an epoch:\n```\n{log}\n") is not None

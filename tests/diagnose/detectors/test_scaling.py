"""Numbers of few and of many devices, of one rank and of all, side by side."""

from __future__ import annotations

from pathlib import Path

from phalanx.diagnose import diagnose_paths

STEPS = "step 0 loss 2.30\nstep 1 loss 2.20\nstep 2 loss 2.10\nstep 3 loss 2.00\n"


def symptom(folder: Path, text: str) -> tuple[str, str] | None:
    log = folder / "job.log"
    log.write_text(text)
    verdict = diagnose_paths([str(log)]).verdict
    return None if verdict is None else (verdict.symptom, verdict.cause)


def test_sections_of_a_benchmark_are_compared(tmp_path: Path) -> None:
    slower = "=== 1 process ===\nthroughput 120.0 samples/s\n=== 4 processes ===\nthroughput 90.0 samples/s\n"
    assert symptom(tmp_path, slower) == ("perf.low-efficiency", "parallel-overhead-exceeds-gain")
    assert symptom(tmp_path, slower.replace("90.0", "390.0")) is None


def test_what_each_device_reaches_may_fall_a_little(tmp_path: Path) -> None:
    text = "1 GPU: 120.0 images/sec per GPU\n4 GPUs: 101.0 images/sec per GPU\n"
    assert symptom(tmp_path, text) is None
    assert symptom(tmp_path, text.replace("101.0", "21.0")) is not None


def test_a_loss_that_rank_0_alone_reports_for_all_is_a_sum(tmp_path: Path) -> None:
    rows = [f"world size: 4 | step {n} loss={loss:.4f} global_loss={4.03 * loss:.4f}" for n, loss in enumerate((2.3, 2.2, 2.0, 1.9, 1.8))]  # fmt: skip
    verdict = symptom(tmp_path, "\n".join(rows) + "\n")
    assert verdict == ("perf.unexpected-intermediate-result", "loss-summed-over-replicas")


def test_a_total_of_several_terms_is_no_sum_over_ranks(tmp_path: Path) -> None:
    rows = [f"step {n} loss={loss:.4f} total_loss={loss + 0.4 * n:.4f}" for n, loss in enumerate((2.3, 2.2, 2.0, 1.9, 1.8))]  # fmt: skip
    assert symptom(tmp_path, "\n".join(rows) + "\n") is None


def test_the_same_loss_with_more_devices(tmp_path: Path) -> None:
    one, two = ("".join(f"replicas {n} {line}\n" for line in STEPS.splitlines()) for n in (1, 2))
    assert symptom(tmp_path, one + two) is None
    assert symptom(tmp_path, one + two.replace("loss 2.", "loss 4.")) is not None


def test_a_number_before_the_unit_is_no_rate_where_one_follows(tmp_path: Path) -> None:
    text = "ngpus=1 images/sec: 420.1\nngpus=2 images/sec: 395.0\nngpus=4 images/sec: 310.2\n"
    assert symptom(tmp_path, text) == ("perf.low-efficiency", "parallel-overhead-exceeds-gain")
    assert symptom(tmp_path, text.replace("395.0", "810.0").replace("310.2", "1590.0")) is None


def test_one_loss_for_each_number_of_devices(tmp_path: Path) -> None:
    table = "1 GPUs: initial loss 8.252\n2 GPUs: initial loss 16.505\n4 GPUs: initial loss 33.009\n"
    assert symptom(tmp_path, table) == ("perf.unexpected-intermediate-result", "loss-summed-over-replicas")
    assert symptom(tmp_path, table.replace("33.009", "8.311").replace("16.505", "8.262")) is None
    assert symptom(tmp_path, "".join(table.splitlines(keepends=True)[:2])) is None  # of two it may be chance

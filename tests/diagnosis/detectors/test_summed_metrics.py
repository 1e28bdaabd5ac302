"""A reduced loss beside the ranks' own ones: a sum where a mean was meant."""

from __future__ import annotations

from pathlib import Path

from phalanx.diagnosis import diagnose_paths


def symptom(folder: Path, text: str) -> tuple[str, str] | None:
    log = folder / "job.log"
    log.write_text(text)
    verdict = diagnose_paths([str(log)]).verdict
    return None if verdict is None else (verdict.symptom, verdict.cause)


def test_a_loss_that_rank_0_alone_reports_for_all_is_a_sum(tmp_path: Path) -> None:
    rows = [f"world size: 4 | step {n} loss={loss:.4f} global_loss={4.03 * loss:.4f}" for n, loss in enumerate((2.3, 2.2, 2.0, 1.9, 1.8))]  # fmt: skip
    verdict = symptom(tmp_path, "\n".join(rows) + "\n")
    assert verdict == ("perf.unexpected-intermediate-result", "loss-summed-over-replicas")


def test_a_total_of_several_terms_is_no_sum_over_ranks(tmp_path: Path) -> None:
    rows = [f"step {n} loss={loss:.4f} total_loss={loss + 0.4 * n:.4f}" for n, loss in enumerate((2.3, 2.2, 2.0, 1.9, 1.8))]  # fmt: skip
    assert symptom(tmp_path, "\n".join(rows) + "\n") is None

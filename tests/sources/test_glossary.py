"""English behind the words of other languages."""

from __future__ import annotations

from phalanx.sources.glossary import has_ideograms, with_english


def test_known_words_get_their_english_and_names_stand_apart() -> None:
    said = with_english("采用FSDP训练，loss为NaN，多卡卡住")
    assert "training" in said
    assert "multi-gpu" in said
    assert "hangs" in said
    assert " NaN" in said  # an expression that asks for a whole word finds it
    assert "卡住" in said


def test_waits_and_leftovers_have_their_english() -> None:
    assert "waits forever" in with_english("一直在等待")
    assert "does not change" in with_english("损失保持不变")
    assert "not released" in with_english("显存仍然未释放")


def test_english_is_left_alone() -> None:
    text = "the loss is NaN after 3 steps"
    assert with_english(text) is text
    assert with_english("naïve résumé") == "naïve résumé"


def test_the_longest_word_is_taken() -> None:
    assert "does not converge" in with_english("损失不收敛")
    assert "cannot" not in with_english("损失不收敛")


def test_a_sentence_is_told_from_a_name() -> None:
    assert has_ideograms("训练", 2)
    assert not has_ideograms("训练", 6)
    assert not has_ideograms("training")

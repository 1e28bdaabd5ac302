from pathlib import Path

import pytest

from phalanx.knowledge import FIX_PATTERNS, SYMPTOMS
from phalanx.zoo.consoles.excerpts import load_excerpts
from phalanx.zoo.fault import FaultError

ZOO = Path(__file__).parents[3] / "faults"


def test_every_excerpt_has_a_source_and_is_in_the_vocabulary():
    found = load_excerpts(ZOO)
    assert len(found) >= 10
    for console in found:
        assert {console.truth.symptom, *console.truth.also} <= set(SYMPTOMS)
        assert set(console.truth.fixes) <= set(FIX_PATTERNS)
        assert len(console.files["job.log"].splitlines()) < 20, "short"


def test_a_misspelt_key_is_refused(tmp_path):
    (tmp_path / "consoles").mkdir()
    (tmp_path / "consoles" / "x.toml").write_text('source = "u"\nsymptoms = []\nfixes = []\ntext = ""\nculprit = [1]\n')
    with pytest.raises(FaultError, match="culprit"):
        load_excerpts(tmp_path)

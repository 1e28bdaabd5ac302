"""`phalanx rules explain` knows all that a verdict prints in brackets."""

import pytest
from typer.testing import CliRunner

from phalanx.cli import app


@pytest.mark.parametrize(
    ("name", "said"), [("perf.hang", "Hang in training"), ("fix-dataset", "Repair the data set"), ("hng001", "HNG001")]
)
def test_codes_symptoms_and_classes_of_fixes_are_explained(name: str, said: str) -> None:
    done = CliRunner().invoke(app, ["rules", "explain", name])
    assert done.exit_code == 0
    assert said in done.output


def test_what_is_none_of_them_is_refused() -> None:
    assert CliRunner().invoke(app, ["rules", "explain", "nothing"]).exit_code == 2

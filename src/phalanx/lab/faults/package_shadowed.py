"""A folder of PYTHONPATH holds a package with the name of a framework, on every host."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="framework-shadowed", symptom="build.import-error", hosts=("h0", "h1", "h2"), held_back=True)


def apply(bed: Bed) -> None:
    """A checkout without its compiled parts."""
    folder = bed.folder / "checkouts"
    (folder / "numpy").mkdir(parents=True)
    (folder / "numpy" / "__init__.py").write_text("raise ImportError('not built')\n", encoding="utf-8")
    bed.set_variables({"PYTHONPATH": str(folder)})

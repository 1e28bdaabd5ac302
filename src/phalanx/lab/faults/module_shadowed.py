"""A folder of PYTHONPATH on one host holds a file with the name of a framework."""

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="framework-shadowed", symptom="build.import-error", hosts=("h1",), held_back=True)


def apply(bed: Bed, host: str = "h1") -> None:
    """Somebody saved an experiment under the name numpy.py."""
    folder = bed.folder / "experiments"
    folder.mkdir(exist_ok=True)
    (folder / "numpy.py").write_text("print('an experiment')\n", encoding="utf-8")
    bed[host].variables["PYTHONPATH"] = str(folder)

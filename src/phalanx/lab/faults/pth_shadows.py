"""A .pth file puts a folder before the packages that are installed, with a file of a framework's name in it."""

import sysconfig
from pathlib import Path

from phalanx.lab.bed import Bed
from phalanx.lab.errors import LabError
from phalanx.lab.fault import Expected

EXPECTED = Expected(cause="framework-shadowed", symptom="build.import-error", hosts=("h1",))


def apply(bed: Bed, host: str = "h1") -> None:
    """Left by a tool for development installs."""
    place = next(iter(sorted(Path(sysconfig.get_path("purelib")).glob("*.pth"))), None)
    if place is None:
        raise LabError("this Python has no .pth file that could be changed for the host")
    folder = bed.folder / "development"
    folder.mkdir()
    (folder / "numpy.py").write_text("print('a trial')\n", encoding="utf-8")
    changed = bed.folder / "changed.pth"
    line = f"import sys; sys.path.insert(0, {str(folder)!r})\n"
    changed.write_text(line + place.read_text(encoding="utf-8"), encoding="utf-8")
    bed[host].run(["mount", "--bind", str(changed), str(place)])

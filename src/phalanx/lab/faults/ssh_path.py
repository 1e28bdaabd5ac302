"""The PATH of the non-interactive shell of one host lacks Python."""

import shutil

from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected
from phalanx.lab.ssh import start_ssh

EXPECTED = Expected(cause="ssh-path-incomplete", only_outside=True, hosts=("h1",), also=("ssh-path",))
_KEPT = ("sh", "bash", "env", "cat", "ls", "sed", "uname")


def apply(bed: Bed, host: str = "h1") -> None:
    """It is set in a file that only login shells read."""
    folder = bed.folder / "few-programs"
    folder.mkdir()
    for name in _KEPT:
        if (found := shutil.which(name)) is not None:
            (folder / name).symlink_to(found)
    start_ssh(bed, {host: str(folder)})

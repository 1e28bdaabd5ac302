"""Draws the verdict on some logs as an SVG, as a terminal shows it.

python site/picture.py LOGS docs/verdict.svg
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich.console import Console

from phalanx.diagnosis import diagnose_paths
from phalanx.report import print_text

# Rich's own page loads a font from the network; a reader's own monospaced font serves.
_FONT_FACE = re.compile(r"@font-face \{.*?\}\s*", re.S)


def main() -> int:
    """Draw it; the exit status."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    logs, target = sys.argv[1:]
    console = Console(record=True, width=108, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    print_text(diagnose_paths([logs]), console=console)
    drawn = console.export_svg(title=f"phalanx diagnose {Path(logs).name}")
    Path(target).write_text(_FONT_FACE.sub("", drawn).replace("Fira Code", "monospace"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

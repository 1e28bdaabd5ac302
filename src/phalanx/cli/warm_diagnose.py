"""A diagnosis that is made ready while it is not yet known whether it will be wanted: `python -m phalanx.cli.warm_diagnose BUNDLE`.

Most of the time that a diagnosis of a small bundle takes goes into loading. `phalanx run` has that done while it still looks closer
at a job that seems to stand, or waits for the last words of ranks; the verdict is then there a moment after it is asked for.
"""

from __future__ import annotations

import contextlib
import gc
import select
import sys

from phalanx.cli.diagnosing import Request
from phalanx.report import Format, render


def main() -> None:
    """Diagnose for practice, wait for a line on standard input, and do it in earnest; without such a line, end."""
    gc.set_threshold(100_000, 20, 50)
    request = Request((sys.argv[1],), Format.JSON)
    from phalanx.diagnosis import diagnose_paths

    if not select.select([sys.stdin], [], [], 0)[0]:
        with contextlib.suppress(Exception):  # what is wrong will be so in earnest, too
            render(diagnose_paths(list(request.paths)), request.form)
    if not sys.stdin.readline():
        sys.exit(2)
    sys.exit(request.run())


if __name__ == "__main__":
    main()

"""The command line. One thin file a verb; what they do is in the packages they call."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from phalanx.cli.verbs import app as app


def __getattr__(name: str) -> object:
    """`app`, the verbs as one application: loaded when asked for, since a plain diagnosis does without."""
    if name == "app":
        from phalanx.cli.verbs import app as made

        return made
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def main() -> None:
    """Entry point: 0 nothing wrong, 1 findings, 2 the tool could not do its work."""
    # What is loaded at the start stays: looking through it for garbage again and again takes a fifth of the start.
    gc.set_threshold(100_000, 20, 50)
    try:
        if sys.argv[1:2] == ["diagnose"]:
            from phalanx.cli.diagnosing import plain_request

            request = plain_request(sys.argv[2:])
            if request is not None:
                sys.exit(request.run())
        if sys.argv[1:2] == ["check"] and len(sys.argv) > 2:
            from phalanx.cli.linting import lint_request

            lint = lint_request(sys.argv[2:])
            if lint is not None:
                sys.exit(lint.run())
        from phalanx.cli.verbs import app as whole

        whole()
    except BrokenPipeError:
        # The reader of a pipe went away (`| head`): that is no error of ours.
        sys.stderr.close()
        sys.exit(1)

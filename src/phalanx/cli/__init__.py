"""The command line. One thin file a verb; what they do is in the packages they call."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from phalanx.cli.terminal import install

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
    _complete_streams()
    install()
    try:
        try:
            _run()
        finally:
            sys.stdout.flush()  # here, where an error can still be said
    except BrokenPipeError:
        # The reader of a pipe went away (`| head`): that is no error of ours.
        _leave(1)
    except OSError as error:  # a disk that is full, a folder that cannot be read
        place = f"{error.filename}: " if error.filename else ""
        with suppress(OSError):
            sys.stderr.write(f"phalanx: {place}{error.strerror or error}\n")
            sys.stderr.flush()
        _leave(2)


def _run() -> None:
    if sys.argv[1:2] == ["diagnose"]:
        from phalanx.cli.diagnosing import plain_request

        request = plain_request(sys.argv[2:])
        if request is not None:
            sys.exit(request.run())
    if sys.argv[1:2] == ["check"] and any(map(_may_be_a_file, sys.argv[2:])):
        if not all(word.startswith("-") or word.endswith((".py", ".ipynb")) for word in sys.argv[2:]):
            from phalanx.cli.checkpoints import checkpoint_request

            examination = checkpoint_request(sys.argv[2:])
            if examination is not None:
                sys.exit(examination.run())
        from phalanx.cli.linting import lint_request

        lint = lint_request(sys.argv[2:])
        if lint is not None:
            sys.exit(lint.run())
    from phalanx.cli.verbs import app as whole

    whole()


def _may_be_a_file(word: str) -> bool:
    """Whether a word may name a script or a checkpoint: without one, what examines them need not be loaded."""
    if word.startswith("-"):
        return False
    if word.endswith((".py", ".ipynb")) or os.path.isdir(word):  # noqa: PTH112 (a word that is too long for a path is none)
        return True
    return os.path.isfile(word) and not os.access(word, os.X_OK)  # noqa: PTH113


def _complete_streams() -> None:
    """Put /dev/null where a standard stream is closed (`>&-`): the next file opened would take its place."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115


def _leave(status: int) -> NoReturn:
    """End without another try to write what could not be written."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nothing, number)
    sys.exit(status)

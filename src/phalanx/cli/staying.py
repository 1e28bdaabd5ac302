"""`phalanx attach --watch`: stays with a job and says when it hangs and when it goes on, here and where people look."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from phalanx.attaching.investigation import Seen
    from phalanx.attaching.target import Target
    from phalanx.notify.outlets import Outlets


@dataclass(slots=True)
class Watcher:
    """Tells what a look saw: `show` prints the verdict of a hang, the outlets send it."""

    say: Callable[[str], None]
    show: Callable[[Seen], object]
    outlets: Outlets | None = None
    clock: Callable[[], float] = time.monotonic
    _moved: dict[int, float] = field(default_factory=dict)  # when each rank was last seen to get on

    def noted(self, seen: Seen) -> Seen:
        """Export where every rank is; a rank of a job that hangs has not got on."""
        if self.outlets is not None and self.outlets.metrics is not None:
            from phalanx.attaching.groups import grouped_stacks
            from phalanx.notify.metrics import RankFigures

            doing = {rank: group.doing for group in grouped_stacks(seen.motion) for rank in group.ranks}
            now = self.clock()
            for rank in doing:
                self._moved[rank] = self._moved.get(rank, now - seen.quiet) if seen.hangs else now
            self.outlets.metrics.stalled(seen.hangs)
            self.outlets.metrics.note(
                {rank: RankFigures(phase, idle=now - self._moved[rank]) for rank, phase in doing.items()}
            )
        return seen

    def hung(self, seen: Seen) -> None:
        """Show the verdict, and send it."""
        self.show(seen)
        if self.outlets is not None:
            report, text = _verdict(seen, self.say)
            self.outlets.verdict(report, text)

    def recovered(self, seen: Seen) -> None:
        """Say that the job goes on."""
        self.say("the job goes on")
        if self.outlets is not None:
            self.outlets.recovered("the job goes on")


def _verdict(seen: Seen, say: Callable[[str], None]) -> tuple[dict[str, object], str]:
    """The report of a look as a document, and as text."""
    import io

    from rich.console import Console

    from phalanx.attaching.investigation import keep
    from phalanx.attaching.origins import with_origins
    from phalanx.diagnosis import diagnose_paths
    from phalanx.report import Format, print_text, render

    with tempfile.TemporaryDirectory(prefix="phalanx-attach-") as folder:
        keep(seen, Path(folder), say, for_good=False)
        report = with_origins(diagnose_paths([folder]), seen.evidence)
    shown = io.StringIO()
    print_text(report, console=Console(file=shown, width=100, highlight=False))
    return json.loads(render(report, Format.JSON)), shown.getvalue()


def stay(
    target: Target,
    every: float,
    say: Callable[[str], None],
    show: Callable[[Seen], object],
    notify: Sequence[str] = (),
    metrics: str | None = None,
) -> int:
    """Until the job is gone; 1 if it hung at the last look. Raises AttachError for a channel that cannot be used."""
    from phalanx.attaching.investigation import investigate
    from phalanx.attaching.jobs import AttachError
    from phalanx.attaching.vigil import Vigil
    from phalanx.notify.channels import ChannelError
    from phalanx.notify.metrics import MetricsError
    from phalanx.notify.outlets import open_outlets

    try:
        outlets = open_outlets(target.job.script, None, say, notify, metrics)
    except (ChannelError, MetricsError) as error:
        raise AttachError(str(error)) from None
    watcher = Watcher(say, show, outlets)

    def quietly(text: str) -> None:
        """Between two looks there is nothing to say."""

    try:
        vigil = Vigil(lambda: watcher.noted(investigate(target, quietly)), watcher.hung, watcher.recovered, every)
        hangs = vigil.keep()
    finally:
        if outlets is not None:
            outlets.close()
    say("the job has ended")
    return int(hangs)

"""The watch with an ear at it: what it sees goes to metrics and channels, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from phalanx.notify.metrics import RankFigures
from phalanx.notify.outlets import Outlets
from phalanx.run.observer import GIVEN_UP, Guarded, Observation, Observer


class Exporting(Guarded):
    """An observer whose findings are told elsewhere as well."""

    def __init__(self, inner: Observer, say: Callable[[str], None], outlets: Outlets) -> None:
        super().__init__(inner, say)
        self._outlets = outlets

    def tick(self) -> Sequence[Observation]:
        """As the watch says."""
        found = super().tick()
        metrics = self._outlets.metrics
        for seen in found:
            if seen.kind == "recovered":
                self._outlets.recovered(seen.text)
            elif metrics is not None and seen.kind == "stall" and seen.data.get("kind") != GIVEN_UP:
                metrics.stalled(True)
            elif metrics is not None and seen.kind == "straggler" and len(seen.ranks) == 1:
                metrics.straggler(seen.ranks[0], float(seen.data.get("factor") or 0.0))
        if metrics is not None:
            metrics.note(
                {
                    rank: RankFigures(one.phase, one.step, one.steps_per_second, one.idle, one.memory, one.behind)
                    for rank, one in self.status().items()
                }
            )
        return found

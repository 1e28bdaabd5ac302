"""The score as a picture: an SVG of bars by symptom and by framework, readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from phalanx.zoo.score import Mark, groups, total

_ROW = 22
_LEFT = 300
_WIDTH = 340
_SERIES = (("symptom first", "#2a78b5"), ("fix in three", "#3f9b57"), ("innocent accused", "#c9403a"))
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#24292f}.faint{fill:#6e7781}.line{stroke:#8c959f;stroke-width:.5}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.faint{fill:#9198a1}}"
)


def draw(marks: Sequence[Mark]) -> str:
    """An SVG document; three bars a row: symptom first, an accepted fix among three, an innocent accused."""
    parts: list[str] = []
    y = 54
    for kind, heading in (("split", "by split"), ("framework", "by framework"), ("symptom", "by symptom")):
        parts.append(f'<text class="faint" x="12" y="{y}">{heading}</text>')
        y += 10
        for name, some in groups(marks)[kind].items():
            parts += _row(name, some, y)
            y += _ROW
        y += 26
    bottom = y - 20
    grid = [_tick(share, bottom) for share in (0, 25, 50, 75, 100)]
    legend = []
    for number, (name, colour) in enumerate(_SERIES):
        x = _LEFT + 150 * number
        legend.append(f'<rect x="{x}" y="14" width="12" height="12" rx="2" fill="{colour}"/>')
        legend.append(f'<text x="{x + 18}" y="25">{name}</text>')
    healthy = sum(one.healthy for one in marks)
    what = f"{len(marks) - healthy} faults, {healthy} healthy jobs, {total(marks).false_alarms} false alarms"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {bottom + 24}" role="img" aria-label="{what}">',
            f"<title>{what}</title>",
            f"<style>{_STYLE}</style>",
            *legend,
            *grid,
            *parts,
            "</svg>",
            "",
        ]
    )


def _row(name: str, marks: Sequence[Mark], y: int) -> list[str]:
    score = total(marks)
    values = (score.symptom_first, score.fix_in_three, score.innocent_accused)
    drawn = [f'<text x="12" y="{y + 14}">{escape(name)}</text>']
    drawn.append(f'<text class="faint" x="{_LEFT - 8}" y="{y + 14}" text-anchor="end">{score.faults}</text>')
    for number, ((_, colour), value) in enumerate(zip(_SERIES, values, strict=True)):
        width = max(0.0, _WIDTH * value)
        drawn.append(
            f'<rect x="{_LEFT}" y="{y + 2 + 6 * number}" width="{width:.1f}" height="5" rx="1.5" fill="{colour}"/>'
        )
    drawn.append(f'<text class="faint" x="{_LEFT + _WIDTH + 10}" y="{y + 14}">{values[0]:.0%} / {values[1]:.0%}</text>')
    return drawn


def _tick(share: int, bottom: int) -> str:
    x = _LEFT + _WIDTH * share / 100
    return (
        f'<line class="line" x1="{x:g}" y1="40" x2="{x:g}" y2="{bottom}"/>'
        f'<text class="faint" x="{x:g}" y="{bottom + 16}" text-anchor="middle">{share}%</text>'
    )

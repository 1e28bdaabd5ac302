"""Draws a figure as SVG without any script or outside reference."""

from __future__ import annotations

import math

from markupsafe import Markup, escape

from phalanx.model.figure import Figure

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 860, 260, 70, 36, 12
_COLOURS = ("#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#0891b2", "#be185d", "#65a30d")
_FLOOR = 1e-9  # values by their magnitude: what is smaller is drawn as zero


def draw(figure: Figure) -> Markup:
    """The picture; empty where there is nothing to draw."""
    points = [point for line in figure.lines for point in line.points]
    if not points:
        return Markup("")
    first, last = min(x for x, _ in points), max(x for x, _ in points)
    most = max(_up(figure, y) for _, y in points)
    least = min(_up(figure, y) for _, y in points)
    bottom = math.log10(_FLOOR) if figure.is_log else min(0.0, least)
    top = max(most, bottom + 1e-12) if not figure.is_log else max(0.0, math.ceil(most))

    def place(x: float, y: float) -> str:
        across = _LEFT + (_WIDTH - _LEFT - 10) * ((x - first) / (last - first) if last > first else 0.5)
        height = _HEIGHT - _BOTTOM - _TOP
        return f"{across:.1f},{_TOP + height * (1 - (_up(figure, y) - bottom) / (top - bottom)):.1f}"

    parts = [
        Markup(
            '<svg viewBox="0 0 {} {}" role="img" style="width:100%;height:auto" font-size="12" fill="currentColor">'
        ).format(_WIDTH, _HEIGHT)
    ]
    parts.append(_axes(figure, first, last, bottom, top))
    for number, line in enumerate(figure.lines):
        colour = _COLOURS[number % len(_COLOURS)]
        path = " ".join(place(x, y) for x, y in line.points)
        parts.append(
            Markup(
                '<polyline points="{}" fill="none" stroke="{}" stroke-width="1.8"><title>{}</title></polyline>'
            ).format(path, colour, line.label)
        )
        parts += [
            Markup('<circle cx="{}" cy="{}" r="2.2" fill="{}"/>').format(*place(x, y).split(","), colour)
            for x, y in line.points[:200]
        ]
        parts.append(
            Markup('<text x="{}" y="{}" fill="{}">{}</text>').format(
                _LEFT + 10 + 110 * (number % 7), _HEIGHT - 4, colour, line.label
            )
        )
    parts.append(Markup("</svg>"))
    return Markup("").join(parts)


def _up(figure: Figure, value: float) -> float:
    return math.log10(max(value, _FLOOR)) if figure.is_log else value


def _axes(figure: Figure, first: float, last: float, bottom: float, top: float) -> Markup:
    height = _HEIGHT - _BOTTOM - _TOP
    found = []
    for part in range(4):
        value = bottom + (top - bottom) * part / 3
        shown = f"{10**value:.0e}" if figure.is_log and part else "0" if figure.is_log else f"{value:.3g}"
        y = _TOP + height * (1 - part / 3)
        found.append(Markup('<line x1="{}" x2="{}" y1="{}" y2="{}" stroke="currentColor" opacity="0.15"/><text x="{}" y="{}" text-anchor="end">{}</text>').format(
            _LEFT, _WIDTH - 10, y, y, _LEFT - 6, y + 4, shown))  # fmt: skip
    found.append(Markup('<text x="{}" y="{}">{} {:g}</text><text x="{}" y="{}" text-anchor="end">{:g}</text>').format(
        _LEFT, _HEIGHT - _BOTTOM + 15, figure.across, first, _WIDTH - 10, _HEIGHT - _BOTTOM + 15, last))  # fmt: skip
    found.append(
        Markup('<text x="12" y="{}" transform="rotate(-90 12 {})" text-anchor="middle">{}</text>').format(
            _TOP + height / 2, _TOP + height / 2, escape(figure.up)
        )
    )
    return Markup("").join(found)

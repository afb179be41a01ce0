"""Line charts of an experiment, as SVG without a script: a few series over the same points."""

from collections.abc import Mapping, Sequence
from html import escape
from math import floor, log10

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 680, 300, 70, 44, 46
COLOURS = ("#1f6feb", "#b35900", "#2d8a4e", "#8250df", "#7d8590", "#cf222e")


def lines(title: str, unit: str, points: Sequence[str], series: Mapping[str, Sequence[float | None]]) -> str:
    """Return a chart with a logarithmic axis; a None is not drawn."""
    known = [value for values in series.values() for value in values if value]
    low, high = 10 ** floor(log10(min(known))), max(known) * 1.1
    right = WIDTH - 150

    def x(place: int) -> float:
        return LEFT + (right - LEFT) * (place + 0.5) / len(points)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * log10(value / low) / log10(high / low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12"><rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{LEFT}" y="22" font-size="15">{escape(title)}</text>',
        f'<text x="{LEFT - 8}" y="{TOP - 8}" text-anchor="end" fill="#57606a">{escape(unit)}</text>',
    ]
    tick = low
    while tick <= high:
        parts.append(f'<path d="M{LEFT} {y(tick):.1f}H{right}" stroke="#d0d7de"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:,g}</text>')
        tick *= 10
    for place, point in enumerate(points):
        parts.append(f'<text x="{x(place):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{escape(point)}</text>')
    ends = []
    for number, (name, values) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        drawn = [(x(place), y(value)) for place, value in enumerate(values) if value]
        if not drawn:
            continue
        path = "L".join(f"{at:.1f} {height:.1f}" for at, height in drawn)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{at:.1f}" cy="{height:.1f}" r="3.5" fill="{colour}"/>' for at, height in drawn]
        ends.append([drawn[-1][1], colour, name])
    lowest = TOP
    for height, colour, name in sorted(ends):
        lowest = max(lowest, height)  # names of lines that end near each other stand below one another
        parts.append(f'<text x="{right + 8}" y="{lowest + 4:.1f}" fill="{colour}">{escape(name)}</text>')
        lowest += 16
    return "\n".join([*parts, "</svg>\n"])

"""The recovery as a picture: calls begun in each second, and how many were under way; plain SVG, without a library."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 900, 420, 60, 40, 50


def svg(begun: Sequence[int], under_way: Sequence[int], rate: float, ceiling: float, marks: Sequence[tuple[float, str]]) -> str:
    """One bar a second for what began, a line for what was under way, dashed lines for what is allowed; marks are (second, text)."""
    seconds = max(len(begun), 1)
    top = max(*begun, *under_way, rate, ceiling, 1) * 1.1
    wide, high = WIDTH - LEFT - 20, HEIGHT - TOP - BOTTOM

    def x(second: float) -> float:
        return LEFT + wide * second / seconds

    def y(value: float) -> float:
        return TOP + high * (1 - value / top)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="20" font-size="14">Calls begun in each second (bars), and under way (line)</text>',
    ]
    for second, count in enumerate(begun):
        wider = max(wide / seconds - 0.5, 0.5)
        parts.append(
            f'<rect x="{x(second):.1f}" y="{y(count):.1f}" width="{wider:.1f}" height="{y(0) - y(count):.1f}" fill="#7aa6d8"/>'
        )
    line = " ".join(f"{x(second + 0.5):.1f},{y(count):.1f}" for second, count in enumerate(under_way))
    parts.append(f'<polyline points="{line}" fill="none" stroke="#c0392b" stroke-width="1.5"/>')
    for value, text in ((rate, f"rate {rate:g}/s"), (ceiling, f"ceiling {ceiling:g}")):
        parts.append(
            f'<line x1="{LEFT}" y1="{y(value):.1f}" x2="{WIDTH - 20}" y2="{y(value):.1f}" stroke="#555" stroke-dasharray="5 4"/>'
        )
        parts.append(f'<text x="{WIDTH - 24}" y="{y(value) - 4:.1f}" text-anchor="end">{escape(text)}</text>')
    for second, text in marks:
        parts.append(f'<line x1="{x(second):.1f}" y1="{TOP}" x2="{x(second):.1f}" y2="{y(0):.1f}" stroke="#27ae60"/>')
        parts.append(f'<text x="{x(second) + 4:.1f}" y="{TOP + 12}">{escape(text)}</text>')
    parts += [
        f'<text x="{x(step):.1f}" y="{HEIGHT - 30}" text-anchor="middle">{step} s</text>'
        for step in range(0, seconds + 1, max(seconds // 10, 1))
    ]
    parts += [
        f'<text x="{LEFT - 6}" y="{y(step) + 4:.1f}" text-anchor="end">{step}</text>'
        for step in range(0, int(top) + 1, max(int(top) // 6, 1))
    ]
    return "\n".join([*parts, "</svg>", ""])

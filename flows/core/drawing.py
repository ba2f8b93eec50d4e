"""Boxes and arrows as SVG text: rows from top to bottom, arrows that keep apart at the boxes, labels that keep apart from each other.

The SVG needs no script, style sheet or style attribute, so it may stand on a page under a strict content security policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from flows.core.layout import Pair, Placed, place

HEIGHT, WIDE, SMALL, PAD, MARGIN = 46.0, 7.6, 6.2, 16.0, 24.0
LINE, GAP = 13.0, 50.0

LOOK = (
    'role="img" aria-labelledby="outlast-title outlast-desc" '
    'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12"'
)
HEAD = (
    '<defs><marker id="outlast-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0 0 L8 4 L0 8 z" fill="#555555"/></marker></defs>'
)
HALO = 'stroke="#ffffff" stroke-width="3" paint-order="stroke" stroke-linejoin="round"'


@dataclass(frozen=True, slots=True)
class Box:
    """A box with a name, a second line, a colour and rounded corners. `here`: drawn thick."""

    name: str
    detail: str
    fill: str
    radius: float
    here: bool = False

    @property
    def width(self) -> float:
        return max(len(self.name), len(self.detail)) * WIDE + 2 * PAD


@dataclass(frozen=True, slots=True)
class Arrow:
    """All routes from one node to another, under the labels by which they are taken."""

    source: str
    target: str
    labels: tuple[str, ...]

    @property
    def label(self) -> str:
        return ", ".join(label for label in self.labels if label)


def draw(title: str, words: str, boxes: Sequence[Box], arrows: Sequence[Arrow], footer: str = "") -> str:
    """The picture, with a title and a description in words for those who do not see it."""
    by_name = {box.name: box for box in boxes}
    routed = [arrow for arrow in arrows if arrow.source != arrow.target]
    placed = place({box.name: box.width for box in boxes}, [(arrow.source, arrow.target) for arrow in routed])
    ports = _ports(placed, by_name)
    slots = _slots(placed, ports, routed)
    tops = _tops(placed, slots)
    curves = [_curve(arrow, placed, ports, slots, tops) for arrow in routed]
    drawn = [line for line, _ in curves]
    drawn += [_loop(arrow, placed, by_name, tops) for arrow in arrows if arrow.source == arrow.target]
    drawn += [_box(box, placed, tops) for box in boxes]
    drawn += [label for _, label in curves if label]
    width = placed.width + 2 * MARGIN + max((len(arrow.label) for arrow in arrows), default=0) * SMALL
    height = (tops[-1] + HEIGHT if tops else 0) + MARGIN
    if footer:
        drawn.append(_text(MARGIN, height + 8, footer, 'font-size="10" fill="#333333"'))
        height += MARGIN
    size = f'width="{_n(width)}" height="{_n(height)}"'
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(width)} {_n(height)}" {size} {LOOK}>',
        f'<title id="outlast-title">{xml(title)}</title>',
        f'<desc id="outlast-desc">{xml(words)}</desc>',
        HEAD,
        f'<rect {size} fill="#ffffff"/>',
    ]
    return "\n".join([*head, *drawn, "</svg>"]) + "\n"


def _ports(placed: Placed, boxes: Mapping[str, Box]) -> dict[tuple[Pair, int], float]:
    """Where on its box each arrow begins (0) and ends (-1): side by side, in the order in which they lead away."""
    sides: dict[tuple[str, bool], list[tuple[float, int, Pair, int]]] = {}
    for number, (pair, path) in enumerate(placed.paths.items()):
        for end, other in ((0, 1), (-1, -2)):
            below = path[other][1] > path[end][1]
            sides.setdefault((pair[end], below), []).append((path[other][0], number, pair, end))
    ports = {}
    for (name, _), attached in sides.items():
        step = boxes[name].width * 0.8 / len(attached)
        for place_, (_, _, pair, end) in enumerate(sorted(attached)):
            ports[pair, end] = placed.at[name][0] + (place_ - (len(attached) - 1) / 2) * step
    return ports


def _slots(placed: Placed, ports: Mapping[tuple[Pair, int], float], arrows: Sequence[Arrow]) -> dict[Pair, tuple[int, int]]:
    """For each arrow with a label: the gap between rows that its label stands in, and the line there, so that none overlap."""
    taken: dict[int, list[list[tuple[float, float]]]] = {}
    slots = {}
    wanted = []
    for arrow in arrows:
        pair = (arrow.source, arrow.target)
        path = placed.paths[pair]
        if arrow.label:
            middle = (ports[pair, 0] + (path[1][0] if len(path) > 2 else ports[pair, -1])) / 2
            wanted.append((min(path[0][1], path[1][1]), middle, pair, len(arrow.label) * SMALL + 2 * PAD))
    for gap, middle, pair, width in sorted(wanted):
        lines = taken.setdefault(gap, [])
        span = (middle - width / 2, middle + width)
        line = next((i for i, used in enumerate(lines) if all(span[1] < a or b < span[0] for a, b in used)), len(lines))
        lines.extend([[]] if line == len(lines) else [])
        lines[line].append(span)
        slots[pair] = (gap, line)
    return slots


def _tops(placed: Placed, slots: Mapping[Pair, tuple[int, int]]) -> list[float]:
    """The upper edge of each row; a gap is as high as its labels need."""
    tops, y = [], MARGIN
    for row in range(placed.rows):
        tops.append(y)
        y += HEIGHT + max([GAP, *((line + 3) * LINE for gap, line in slots.values() if gap == row)])
    return tops


def _curve(
    arrow: Arrow,
    placed: Placed,
    ports: Mapping[tuple[Pair, int], float],
    slots: Mapping[Pair, tuple[int, int]],
    tops: Sequence[float],
) -> tuple[str, str]:
    pair = (arrow.source, arrow.target)
    path = placed.paths[pair]
    down = path[-1][1] > path[0][1]
    points = [(x + MARGIN, tops[row] + HEIGHT / 2) for x, row in path]
    side = HEIGHT if down else 0.0
    points[0] = (ports[pair, 0] + MARGIN, tops[path[0][1]] + side)
    points[-1] = (ports[pair, -1] + MARGIN, tops[path[-1][1]] + HEIGHT - side)
    line = f"M{_n(points[0][0])} {_n(points[0][1])}"
    for (ax, ay), (bx, by) in pairwise(points):
        half = (by - ay) / 2
        line += f" C{_n(ax)} {_n(ay + half)} {_n(bx)} {_n(by - half)} {_n(bx)} {_n(by)}"
    label = ""
    if pair in slots:
        gap, slot = slots[pair]
        y = tops[gap] + HEIGHT + (slot + 1.6) * LINE
        label = _text(_x_at(y - 4, points[0], points[1]) + 5, y, arrow.label, f'font-size="10" fill="#333333" {HALO}')
    return _path(line), label


def _x_at(y: float, start: tuple[float, float], end: tuple[float, float]) -> float:
    """Where the curve between two points is at height `y`."""
    low, high = 0.0, 1.0
    share = (y - start[1]) / (end[1] - start[1])
    for _ in range(20):
        t = (low + high) / 2
        low, high = (t, high) if 1.5 * t * (1 - t) + t**3 < share else (low, t)
    return start[0] + (end[0] - start[0]) * (3 * low**2 - 2 * low**3)


def _loop(arrow: Arrow, placed: Placed, boxes: Mapping[str, Box], tops: Sequence[float]) -> str:
    x, row = placed.at[arrow.source]
    right, y = x + MARGIN + boxes[arrow.source].width / 2, tops[row]
    line = f"M{_n(right)} {_n(y + 14)} C{_n(right + 26)} {_n(y + 6)} {_n(right + 26)} {_n(y + 40)} {_n(right)} {_n(y + 32)}"
    label = _text(right + 24, y + 26, arrow.label, f'font-size="10" fill="#333333" {HALO}') if arrow.label else ""
    return _path(line) + label


def _box(box: Box, placed: Placed, tops: Sequence[float]) -> str:
    middle, row = placed.at[box.name]
    x, y = middle + MARGIN, tops[row]
    stroke = 'stroke="#0b3d91" stroke-width="4"' if box.here else 'stroke="#333333"'
    frame = (
        f'<rect x="{_n(x - box.width / 2)}" y="{_n(y)}" width="{_n(box.width)}" height="{_n(HEIGHT)}" '
        f'rx="{_n(box.radius)}" fill="{box.fill}" {stroke}/>'
    )
    name = _text(x, y + 20, box.name, 'text-anchor="middle" font-weight="bold"')
    detail = _text(x, y + 36, box.detail, 'text-anchor="middle" fill="#555555" font-size="10"')
    return f"<g>{frame}{name}{detail}</g>"


def _path(line: str) -> str:
    return f'<path d="{line}" fill="none" stroke="#555555" marker-end="url(#outlast-arrow)"/>'


def _text(x: float, y: float, text: str, attributes: str) -> str:
    return f'<text x="{_n(x)}" y="{_n(y)}" {attributes}>{xml(text)}</text>'


def _n(value: float) -> str:
    """A coordinate, the same text on every machine."""
    return f"{round(value, 1):g}"


def clean(text: object) -> str:
    """Text that XML may hold: no control characters, no lone surrogates."""
    return "".join(sign if _is_plain(sign) else "\ufffd" for sign in str(text).replace("\n", " ").replace("\t", " "))


def _is_plain(sign: str) -> bool:
    return " " <= sign < "\x7f" or "\xa0" <= sign < "\ud800" or "\ue000" <= sign <= "\ufffd" or sign > "\uffff"


def xml(text: object) -> str:
    """Text that stands in XML as it is."""
    signs = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}
    return "".join(signs.get(sign, sign) for sign in clean(text))

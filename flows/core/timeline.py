"""The life of a run as a picture: a lane for each way of spending time, from left to right, with long idle times pressed together. Pure.

    spans ──► widths (idle ones capped) ──► rectangles, those of one lane that touch as one ──► SVG text, with title and description

Idle times would leave no room for the work: each is as wide as its time, but at most as wide as its share of the computed time, so at least
half of the picture is work where there was any. What was pressed together has a broken outline and says how long it was. The SVG needs no
script, style sheet or style attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from flows.core.drawing import xml
from flows.core.protocol import Status
from flows.core.stillness import in_words

WIDTH, LEFT, ROW, BAR, TOP, MARGIN = 960.0, 96.0, 26.0, 16.0, 8.0, 12.0
LOOK = (
    'role="img" aria-labelledby="oa-life-title oa-life-desc" '
    'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="11"'
)
#: Narrower ones of a lane are drawn as one.
NEAR = 0.75
#: So wide is a label, about.
TICK, GIVEN = 104.0, 44.0

#: Lane → fill, in the order from top to bottom.
LANES = {
    "computing": "#2f7d4f",
    "queued": "#c98a1b",
    "waiting": "#a9c3ea",
    "paused": "#c9c9c9",
    "servicing": "#b0544f",
}
IDLE = frozenset({"waiting", "paused"})
LANE_OF = {
    Status.RUNNING: "computing",
    Status.RUNNABLE: "queued",
    Status.WAITING: "waiting",
    Status.PAUSED: "paused",
    Status.RECONCILING: "servicing",
    Status.CANCELLING: "servicing",
}


@dataclass(frozen=True, slots=True)
class Span:
    """Time that was spent one way: from and until in seconds, the lane, and the node."""

    start: float
    end: float
    lane: str
    node: str

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Total:
    """How long, and how many times, a node was in a lane."""

    lane: str
    node: str
    seconds: float
    times: int


@dataclass(slots=True)
class _Bar:
    """A rectangle: one span, or several of a lane that touch."""

    left: float
    right: float
    seconds: float
    node: str
    times: int = 1
    pressed: bool = False


def spans(arrows: Sequence[tuple[float, str, str]], now: float) -> list[Span]:
    """Between each arrow (moment, status that it led to, node) and the next one. An end lasts no time; clocks that went back lasted none."""
    found: list[Span] = []
    for number, (at, status, node) in enumerate(arrows):
        lane = LANE_OF.get(Status(status))
        until = arrows[number + 1][0] if number + 1 < len(arrows) else now
        if lane is not None:
            start = max(at, found[-1].end) if found else at
            found.append(Span(start, max(until, start), lane, node))
    return found


def totals(given: Iterable[Span]) -> list[Total]:
    """The time by lane and node, the longest first."""
    sums: dict[tuple[str, str], tuple[float, int]] = {}
    for span in given:
        seconds, times = sums.get((span.lane, span.node), (0.0, 0))
        sums[span.lane, span.node] = (seconds + span.seconds, times + 1)
    return sorted((Total(*key, *value) for key, value in sums.items()), key=lambda one: (-one.seconds, one.lane, one.node))


def words(given: Sequence[Span]) -> str:
    """What the picture shows, for those who do not see it."""
    if not given:
        return "Nothing so far."
    by_lane = {lane: [span.seconds for span in given if span.lane == lane] for lane in LANES}
    parts = [f"{lane} {in_words(sum(times))} in {_counted(len(times))}" for lane, times in by_lane.items() if times]
    return f"{in_words(given[-1].end - given[0].start)} in all: {', '.join(parts)}."


def _counted(number: int) -> str:
    return "1 span" if number == 1 else f"{number} spans"


def draw(given: Sequence[Span], title: str, moment: Callable[[float], str]) -> str:
    """The picture. `moment`: a time as the reader reads it.

    Returns "" where there is nothing to draw.
    """
    if not given:
        return ""
    cap = _cap(given)
    widths = [min(span.seconds, cap) if span.lane in IDLE else span.seconds for span in given]
    scale = (WIDTH - LEFT - MARGIN) / (sum(widths) or 1.0)
    lanes = [lane for lane in LANES if any(span.lane == lane for span in given)]
    bars: dict[str, list[_Bar]] = {lane: [] for lane in lanes}
    ticks = [(LEFT, given[0].start)]
    x = LEFT
    for span, width in zip(given, widths, strict=True):
        pressed = span.seconds > width
        right = x + width * scale
        _add(bars[span.lane], _Bar(x, right, span.seconds, span.node, pressed=pressed))
        if pressed and right - ticks[-1][0] > TICK and WIDTH - MARGIN - right > TICK:
            ticks.append((right, span.end))
        x = right
    height = TOP + len(lanes) * ROW + 34
    drawn = [line for row, lane in enumerate(lanes) for line in _lane(lane, TOP + row * ROW, bars[lane])]
    drawn += _axis(ticks, given[-1].end, TOP + len(lanes) * ROW, moment)
    size = f'width="{_n(WIDTH)}" height="{_n(height)}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(WIDTH)} {_n(height)}" {size} {LOOK}>',
            f'<title id="oa-life-title">{xml(title)}</title>',
            f'<desc id="oa-life-desc">{xml(words(given))}</desc>',
            f'<rect {size} fill="#ffffff"/>',
            *drawn,
            "</svg>",
        ]
    )


def _cap(given: Sequence[Span]) -> float:
    """How wide an idle time is drawn at most: all of them together as wide as the work. Without work each has its own time."""
    idle = [span.seconds for span in given if span.lane in IDLE and span.seconds > 0]
    work = sum(span.seconds for span in given if span.lane not in IDLE)
    return work / len(idle) if idle and work > 0 else max(idle, default=0.0)


def _add(bars: list[_Bar], bar: _Bar) -> None:
    """Next to the ones before it; one with the last, if both can hardly be told apart."""
    last = bars[-1] if bars else None
    if last is not None and bar.left - last.right < NEAR and (bar.right - bar.left < NEAR or last.right - last.left < NEAR):
        last.right, last.seconds, last.times = bar.right, last.seconds + bar.seconds, last.times + bar.times
        last.pressed = last.pressed or bar.pressed
        if bar.node != last.node:
            last.node = ""
        return
    bars.append(bar)


def _lane(lane: str, top: float, bars: Sequence[_Bar]) -> list[str]:
    y, middle = top + (ROW - BAR) / 2, top + ROW / 2 + 4
    drawn = [
        f'<text x="8" y="{_n(middle)}" fill="#333333">{lane}</text>',
        f'<path d="M{_n(LEFT)} {_n(top + ROW)} H{_n(WIDTH - MARGIN)}" stroke="#e4e4e4"/>',
    ]
    for bar in bars:
        wide = max(bar.right - bar.left, NEAR)
        told = f"{bar.node or 'several nodes'}: {in_words(bar.seconds)}" + (f" in {bar.times} spans" if bar.times > 1 else "")
        broken = ' stroke="#555555" stroke-dasharray="3 2"' if bar.pressed and wide > 4 else ""
        drawn.append(
            f'<rect x="{_n(bar.left)}" y="{_n(y)}" width="{_n(wide)}" height="{_n(BAR)}" fill="{LANES[lane]}"{broken}>'
            f"<title>{xml(told)}</title></rect>"
        )
        if bar.pressed and wide > GIVEN:
            at = f'x="{_n(bar.left + wide / 2)}" y="{_n(middle)}" text-anchor="middle"'
            drawn.append(f'<text {at} fill="#222222" font-size="10">{xml(in_words(bar.seconds))}</text>')
    return drawn


def _axis(ticks: Sequence[tuple[float, float]], end: float, top: float, moment: Callable[[float], str]) -> list[str]:
    drawn = [f'<path d="M{_n(x)} {_n(TOP)} V{_n(top + 6)}" stroke="#9a9a9a" stroke-dasharray="1 3"/>' for x, _at in ticks]
    marks = [(x, at, "") for x, at in ticks] + [(WIDTH - MARGIN, end, ' text-anchor="end"')]
    drawn += [
        f'<text x="{_n(x)}" y="{_n(top + 20)}"{anchor} fill="#333333" font-size="10">{xml(moment(at))}</text>'
        for x, at, anchor in marks
    ]
    return drawn


def _n(value: float) -> str:
    return f"{round(value, 1):g}"

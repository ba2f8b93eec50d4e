"""A flow as a picture, in text: Mermaid for documents, SVG for pages. Same definition, same text.

The SVG needs no script, style sheet or style attribute, so it may stand on a page under a strict content security policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from flows.core.definition import Definition
from flows.core.layout import GAP, Pair, Placed, place
from flows.core.nodes import Branch, Decision, End
from flows.core.nodes.base import Node
from flows.core.policies import Deadline

HEIGHT, CHARACTER, PAD, MARGIN = 46.0, 7.6, 16.0, 24.0

#: Kind → fill of its box; unknown kinds get the last one.
FILLS = {
    "decision": "#fff3d6",
    "branch": "#fff3d6",
    "approval": "#fde2e4",
    "event": "#e2ecfb",
    "timer": "#e2ecfb",
    "end": "#e6e6e6",
    "": "#e7f5e8",
}


@dataclass(frozen=True, slots=True)
class Arrow:
    """All routes from one node to another, under the labels by which they are taken."""

    source: str
    target: str
    labels: tuple[str, ...]

    @property
    def label(self) -> str:
        return ", ".join(label for label in self.labels if label)


def arrows(definition: Definition) -> list[Arrow]:
    """The routes of a flow, one arrow for each pair of nodes, in the order of the nodes. Routes to unknown nodes are left out."""
    found: dict[Pair, list[str]] = {}
    for name, node in definition.nodes.items():
        for label, target in node.targets():
            if target in definition.nodes and label not in (labels := found.setdefault((name, target), [])):
                labels.append(label)
    return [Arrow(source, target, tuple(labels)) for (source, target), labels in found.items()]


def details(node: Node) -> str:
    """The second line of a node: its kind, and the time it has."""
    deadline = getattr(node, "deadline", None) or getattr(node, "expires", None)
    if isinstance(node, End):
        return node.outcome.lower()
    if isinstance(deadline, Deadline):
        return f"{node.kind}, {_span(deadline.after)} at most"
    span = getattr(node, "span", None)
    return f"{node.kind}, {_span(span)}" if isinstance(span, timedelta) else node.kind


def mermaid(definition: Definition) -> str:
    """The flow as a Mermaid flowchart."""
    ids = {name: f"n{index}" for index, name in enumerate(definition.nodes)}
    lines = ["---", f"title: {_quoted(_title(definition))}", "---", "flowchart TD"]
    for name, node in definition.nodes.items():
        left, right = _shape(node)
        lines.append(f'    {ids[name]}{left}"{_mermaid(name)}<br/>{_mermaid(details(node))}"{right}')
    for arrow in arrows(definition):
        label = f'|"{_mermaid(arrow.label)}"|' if arrow.label else ""
        lines.append(f"    {ids[arrow.source]} -->{label} {ids[arrow.target]}")
    deadline = definition.deadline
    if deadline is not None:
        then = deadline.then if deadline.expiry is None else None
        lines.append(f'    deadline>"{_span(deadline.after)} after the start:<br/>{_mermaid(deadline.then)}"]')
        if then in ids:
            lines.append(f"    deadline -.-> {ids[then]}")
    return "\n".join(lines) + "\n"


def svg(definition: Definition) -> str:
    """The flow as an SVG picture with a title and a description in words."""
    lines = {name: (name, details(node)) for name, node in definition.nodes.items()}
    widths = {name: max(len(line) for line in both) * CHARACTER + 2 * PAD for name, both in lines.items()}
    drawn = arrows(definition)
    placed = place(widths, [(arrow.source, arrow.target) for arrow in drawn if arrow.source != arrow.target])
    labels = max((len(arrow.label) for arrow in drawn), default=0) * CHARACTER * 0.85
    width = placed.width + 2 * MARGIN + max(labels, GAP)
    height = placed.height + HEIGHT + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(width)} {_n(height)}" width="{_n(width)}" '
        f'height="{_n(height)}" role="img" aria-labelledby="outlast-title outlast-desc" '
        f'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12">',
        f'<title id="outlast-title">{_xml(_title(definition))}</title>',
        f'<desc id="outlast-desc">{_xml(in_words(definition))}</desc>',
        '<defs><marker id="outlast-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" fill="#555555"/></marker></defs>',
        f'<rect width="{_n(width)}" height="{_n(height)}" fill="#ffffff"/>',
    ]
    parts += [_line(arrow, placed, widths) for arrow in drawn]
    parts += [_box(name, node, lines[name], placed, widths) for name, node in definition.nodes.items()]
    return "\n".join([*parts, "</svg>"]) + "\n"


def in_words(definition: Definition) -> str:
    """The flow in sentences, for those who do not see the picture."""
    sentences = [f"Starts at {definition.start}."] if definition.nodes else []
    for name, node in definition.nodes.items():
        ways = [
            f"{arrow.target} ({arrow.label})" if arrow.label else arrow.target
            for arrow in arrows(definition)
            if arrow.source == name
        ]
        sentences.append(f"{name} ({details(node)}) leads to {', '.join(ways)}." if ways else f"{name} ({details(node)}).")
    if definition.deadline is not None:
        sentences.append(f"{_span(definition.deadline.after)} after the start: {definition.deadline.then}.")
    return " ".join(sentences)


def _box(name: str, node: Node, lines: Sequence[str], placed: Placed, widths: Mapping[str, float]) -> str:
    x, y = _at(placed, name)
    fill = FILLS.get(node.kind, FILLS[""])
    radius = HEIGHT / 2 if isinstance(node, End) else 2 if isinstance(node, Branch | Decision) else 8
    return (
        f'<g><rect x="{_n(x - widths[name] / 2)}" y="{_n(y)}" width="{_n(widths[name])}" height="{_n(HEIGHT)}" '
        f'rx="{_n(radius)}" fill="{fill}" stroke="#333333"/>'
        f'<text x="{_n(x)}" y="{_n(y + 20)}" text-anchor="middle" font-weight="bold">{_xml(lines[0])}</text>'
        f'<text x="{_n(x)}" y="{_n(y + 36)}" text-anchor="middle" fill="#555555" font-size="10">{_xml(lines[1])}</text></g>'
    )


def _line(arrow: Arrow, placed: Placed, widths: Mapping[str, float]) -> str:
    if arrow.source == arrow.target:
        x, y = _at(placed, arrow.source)
        right = x + widths[arrow.source] / 2
        path = f"M{_n(right)} {_n(y + 14)} C{_n(right + 26)} {_n(y + 6)} {_n(right + 26)} {_n(y + 40)} {_n(right)} {_n(y + 32)}"
        return _drawn(path, arrow, right + 24, y + 26, "start")
    points = [(x + MARGIN, y + MARGIN + HEIGHT / 2) for x, y in placed.paths[arrow.source, arrow.target]]
    (x0, y0), (x1, y1) = points[0], points[-1]
    side = HEIGHT / 2 if y1 > y0 else -HEIGHT / 2
    points[0], points[-1] = (x0, y0 + side), (x1, y1 - side)
    path = f"M{_n(points[0][0])} {_n(points[0][1])}"
    for (ax, ay), (bx, by) in zip(points, points[1:], strict=False):
        half = (by - ay) / 2
        path += f" C{_n(ax)} {_n(ay + half)} {_n(bx)} {_n(by - half)} {_n(bx)} {_n(by)}"
    (ax, ay), (bx, by) = points[0], points[1]
    share = 0.38 if side > 0 else 0.62  # forward and backward labels between the same rows keep apart
    return _drawn(path, arrow, ax + (bx - ax) * share + 4, ay + (by - ay) * share, "start")


def _drawn(path: str, arrow: Arrow, x: float, y: float, anchor: str) -> str:
    line = f'<path d="{path}" fill="none" stroke="#555555" marker-end="url(#outlast-arrow)"/>'
    if not arrow.label:
        return line
    return f'{line}<text x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}" font-size="10" fill="#333333">{_xml(arrow.label)}</text>'


def _at(placed: Placed, name: str) -> tuple[float, float]:
    """The middle of a box's upper edge."""
    x, y = placed.at[name]
    return x + MARGIN, y + MARGIN


def _shape(node: Node) -> tuple[str, str]:
    if isinstance(node, End):
        return "([", "])"
    if isinstance(node, Branch | Decision):
        return "{{", "}}"
    return ("[/", "/]") if node.kind in ("event", "timer", "approval") else ("[", "]")


def _title(definition: Definition) -> str:
    return f"{definition.verbose_name or definition.name}, version {definition.version}"


def _span(span: timedelta) -> str:
    """A duration in its largest units: `2 d`, `1 h 30 min`."""
    left, words = span.total_seconds(), []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        count, left = divmod(left, size)
        if count:
            words.append(f"{count:.0f} {unit}")
    return " ".join([*words, *([f"{left:g} s"] if left or not words else [])])


def _n(value: float) -> str:
    """A coordinate, the same text on every machine."""
    return f"{round(value, 1):g}"


def _clean(text: object) -> str:
    """Text that XML may hold: no control characters, no lone surrogates."""
    return "".join(sign if _is_plain(sign) else "\ufffd" for sign in str(text).replace("\n", " ").replace("\t", " "))


def _is_plain(sign: str) -> bool:
    return " " <= sign < "\x7f" or "\xa0" <= sign < "\ud800" or "\ue000" <= sign <= "\ufffd" or sign > "\uffff"


def _xml(text: object) -> str:
    signs = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}
    return "".join(signs.get(sign, sign) for sign in _clean(text))


def _mermaid(text: object) -> str:
    """Text inside a quoted Mermaid label: everything that could end it or be markup becomes an entity code."""
    plain = set(" ,.:;_-+/()=?!→…")
    return "".join(sign if sign.isalnum() or sign in plain - {";"} else f"#{ord(sign)};" for sign in _clean(text))


def _quoted(text: str) -> str:
    """A YAML string."""
    return '"' + _clean(text).replace("\\", "\\\\").replace('"', '\\"') + '"'

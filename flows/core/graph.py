"""A flow as a picture, in text: Mermaid for documents, SVG for pages. Same definition, same text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from flows.core.definition import Definition
from flows.core.drawing import HEIGHT, Arrow, Box, clean, draw
from flows.core.nodes import Branch, ContinueAsNew, Decision, End, Sleep
from flows.core.nodes.base import Node
from flows.core.policies import Deadline

#: Kind → fill of its box; unknown kinds get the one of "".
FILLS = {
    "decision": "#fff3d6",
    "branch": "#fff3d6",
    "approval": "#fde2e4",
    "ask": "#fde2e4",
    "event": "#e2ecfb",
    "timer": "#e2ecfb",
    "end": "#e6e6e6",
    "continue": "#e6e6e6",
    "": "#e7f5e8",
}


def arrows(definition: Definition) -> list[Arrow]:
    """The routes of a flow, one arrow for each pair of nodes, in the order of the nodes. Routes to unknown nodes are left out."""
    found: dict[tuple[str, str], list[str]] = {}
    for name, node in definition.nodes.items():
        for label, target in node.targets():
            if target in definition.nodes and label not in (labels := found.setdefault((name, target), [])):
                labels.append(label)
    return [Arrow(source, target, tuple(labels)) for (source, target), labels in found.items()]


def details(node: Node) -> str:
    """The second line of a node: its kind, and the time it has."""
    if isinstance(node, ContinueAsNew):
        return "goes on as a new run"
    if isinstance(node, End):
        return node.outcome.lower()
    deadline = getattr(node, "deadline", None) or getattr(node, "expires", None)
    if isinstance(deadline, Deadline):
        return f"{node.kind}, {_time(deadline)} at most"
    if isinstance(node, Sleep) and node.calendars:
        (calendar,) = node.calendars
        return f"{node.kind}, {_span(node.business)} of {calendar}" if node.business else f"{node.kind}, until {calendar} is open"
    span = getattr(node, "span", None)
    return f"{node.kind}, {_span(span)}" if isinstance(span, timedelta) else node.kind


def mermaid(definition: Definition) -> str:
    """The flow as a Mermaid flowchart."""
    ids = {name: f"n{index}" for index, name in enumerate(definition.nodes)}
    lines = ["---", f"title: {_yaml(_title(definition))}", "---", "flowchart TD"]
    for name, node in definition.nodes.items():
        left, right = _shape(node)
        lines.append(f'    {ids[name]}{left}"{_mermaid(name)}<br/>{_mermaid(details(node))}"{right}')
    for arrow in arrows(definition):
        label = f'|"{_mermaid(arrow.label)}"|' if arrow.label else ""
        lines.append(f"    {ids[arrow.source]} -->{label} {ids[arrow.target]}")
    deadline = definition.deadline
    if deadline is not None:
        lines.append(f'    deadline>"{_mermaid(_deadline(deadline))}"]')
        if deadline.target in ids:
            lines.append(f"    deadline -.-> {ids[deadline.target]}")
    return "\n".join(lines) + "\n"


def svg(definition: Definition, *, here: str = "", visits: Mapping[str, int] | None = None) -> str:
    """The flow as an SVG picture with a title and a description in words.

    Args:
        here: of a run: the node where it is; its box is drawn thick and says so. visits: how many times it came to each.
    """
    boxes = [
        Box(
            name,
            f"{details(node)}{_been(name, here, visits or {})}",
            FILLS.get(node.kind, FILLS[""]),
            _radius(node),
            name == here,
        )
        for name, node in definition.nodes.items()
    ]
    footer = _deadline(definition.deadline) if definition.deadline is not None else ""
    words = in_words(definition) + (f" The run is at {here}." if here else "")
    return draw(_title(definition), words, boxes, arrows(definition), footer)


def _been(name: str, here: str, visits: Mapping[str, int]) -> str:
    """What the box of a node says of the run."""
    times = f", {visits[name]} times" if visits.get(name, 0) > 1 else ""
    return f"{times}, it is here" if name == here else times or (", was here" if visits.get(name) else "")


def in_words(definition: Definition) -> str:
    """The flow in sentences, for those who do not see the picture."""
    sentences = [f"Starts at {definition.start}."] if definition.nodes else []
    ways: dict[str, list[str]] = {name: [] for name in definition.nodes}
    for arrow in arrows(definition):
        ways[arrow.source].append(f"{arrow.target} ({arrow.label})" if arrow.label else arrow.target)
    for name, node in definition.nodes.items():
        leads = f" leads to {', '.join(ways[name])}" if ways[name] else ""
        sentences.append(f"{name} ({details(node)}){leads}.")
    if definition.deadline is not None:
        sentences.append(f"{_deadline(definition.deadline)}.")
    return " ".join(sentences)


def _radius(node: Node) -> float:
    if node.ends:
        return HEIGHT / 2
    return 2.0 if isinstance(node, Branch | Decision) else 8.0


def _shape(node: Node) -> tuple[str, str]:
    if node.ends:
        return "([", "])"
    if isinstance(node, Branch | Decision):
        return "{{", "}}"
    return ("[/", "/]") if node.kind in ("event", "timer", "approval", "ask") else ("[", "]")


def _title(definition: Definition) -> str:
    return f"{definition.verbose_name or definition.name}, version {definition.version}"


def _deadline(deadline: Deadline) -> str:
    return f"{_time(deadline)} after the start: {deadline.word.removeprefix('node:')}"


def _time(deadline: Deadline) -> str:
    """How long a deadline takes, and of which time."""
    return f"{_span(deadline.after)} of {deadline.calendar}" if deadline.business is not None else _span(deadline.after)


def _span(span: timedelta) -> str:
    """A duration in its largest units: `2 d`, `1 h 30 min`."""
    left, words = span.total_seconds(), []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        count, left = divmod(left, size)
        if count:
            words.append(f"{count:.0f} {unit}")
    return " ".join([*words, *([f"{left:g} s"] if left or not words else [])])


def _mermaid(text: object) -> str:
    """Text inside a quoted Mermaid label: everything that could end it or be markup becomes an entity code."""
    return "".join(sign if sign.isalnum() or sign in " ,.:_-+/()=?!→…" else f"#{ord(sign)};" for sign in clean(text))


def _yaml(text: str) -> str:
    return '"' + clean(text).replace("\\", "\\\\").replace('"', '\\"') + '"'

"""Pictures of a flow: every node and route is in them, no text of an author can break out, and the same flow is the same text."""

from __future__ import annotations

import random
import re
from datetime import timedelta
from itertools import combinations
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from flows.core import graph
from flows.core.definition import Definition
from flows.core.errors import StateConflict
from flows.core.layout import place
from flows.core.nodes import COMPLETE, FAILED, Activity, Approval, Branch, Decision, End, Sleep, Wait
from flows.core.policies import ESCALATE, Deadline, Visits
from flows.core.spans import hours
from tests.support.flow_values import declare, work

SVG = "{http://www.w3.org/2000/svg}"
EVIL = '"]; click n0 "javascript:alert(1)" <script>alert(1)</script> & \x1b[31m \u202e end \ud800'


def sample() -> Definition:
    return declare(
        {"deadline": Deadline(days=2, then="gave_up"), "verbose_name": "A sample"},
        propose=Decision(work, choices={"patch": "ci", "give_up": "gave_up"}, visits=Visits(5, then="gave_up")),
        ci=Wait("ci.finished", key="k", choices={"ok": "ask", "bad": "propose"}, deadline=Deadline(hours=2, then="gave_up")),
        ask=Approval(candidate="propose", role="r", approved="nap", denied="gave_up", expires=Deadline(hours=24, then=ESCALATE)),
        nap=Sleep(hours(1.5), then="pick"),
        pick=Branch(work, choices={"again": "act", "end": "done"}),  # type: ignore[arg-type]
        act=Activity(work, then="done", on={StateConflict: "act"}),
        done=End(COMPLETE),
        gave_up=End(FAILED),
    )


def evil() -> Definition:
    return declare(
        {"verbose_name": EVIL},
        first=Decision(work, choices={EVIL: "done", "end": "done"}),
        done=End(COMPLETE),
    )


def boxes(svg: str) -> dict[str, tuple[float, float, float, float]]:
    """Name → left, top, right, bottom."""
    found = {}
    for group in ET.fromstring(svg).iter(f"{SVG}g"):
        rect, name = group.find(f"{SVG}rect"), group.find(f"{SVG}text")
        assert rect is not None
        assert name is not None
        x, y, width, height = (float(rect.attrib[key]) for key in ("x", "y", "width", "height"))
        found[str(name.text)] = (x, y, x + width, y + height)
    return found


def labels(svg: str) -> list[str]:
    return [str(text.text) for text in ET.fromstring(svg).iter(f"{SVG}text")]


def test_several_routes_between_two_nodes_are_one_arrow() -> None:
    drawn = {(arrow.source, arrow.target): arrow.label for arrow in graph.arrows(sample())}
    assert drawn["propose", "gave_up"] == "give_up, after 5 visits"
    assert drawn["ci", "gave_up"] == "deadline"
    assert drawn["act", "act"] == "StateConflict"
    assert drawn["nap", "pick"] == ""


def test_mermaid_has_every_node_and_route() -> None:
    lines = graph.mermaid(sample()).splitlines()
    assert lines[:4] == ["---", 'title: "A sample, version 1"', "---", "flowchart TD"]
    assert '    n0{{"propose<br/>decision"}}' in lines
    assert '    n1[/"ci<br/>event, 2 h at most"/]' in lines
    assert '    n3[/"nap<br/>timer, 1 h 30 min"/]' in lines
    assert '    n5["act<br/>activity"]' in lines
    assert '    n6(["done<br/>complete"])' in lines
    assert '    n0 -->|"give_up, after 5 visits"| n7' in lines
    assert "    n3 --> n4" in lines
    assert '    deadline>"2 d after the start: gave_up"]' in lines
    assert "    deadline -.-> n7" in lines
    assert sum(" --> " in line or " -->|" in line for line in lines) == len(graph.arrows(sample()))


def test_no_text_of_an_author_breaks_out_of_mermaid() -> None:
    text = graph.mermaid(evil())
    body = text.split("flowchart TD")[1]
    for line in body.splitlines():
        assert line.count('"') in (0, 2)
        assert not re.search(r"[\x00-\x1f\x7f<>&]", line.replace("<br/>", "").replace("-->", ""))
    assert re.search(r'^title: ".*"$', text, re.MULTILINE)


def test_svg_is_well_formed_and_described_in_words() -> None:
    root = ET.fromstring(graph.svg(sample()))
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-labelledby"].split() == ["outlast-title", "outlast-desc"]
    title, desc = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert desc is not None
    assert title.text == "A sample, version 1"
    assert str(desc.text).startswith(
        "Starts at propose. propose (decision) leads to ci (patch), gave_up (give_up, after 5 visits)."
    )
    assert str(desc.text).endswith("2 d after the start: gave_up.")


def test_svg_has_every_node_and_route_and_the_deadline() -> None:
    svg = graph.svg(sample())
    assert set(boxes(svg)) == set(sample().nodes)
    drawn = ET.fromstring(svg).findall(f".//{SVG}path[@marker-end]")
    assert len(drawn) == len(graph.arrows(sample()))
    assert {arrow.label for arrow in graph.arrows(sample()) if arrow.label} <= set(labels(svg))
    assert "2 d after the start: gave_up" in labels(svg)


def test_svg_needs_no_exception_from_a_strict_content_security_policy() -> None:
    for definition in (sample(), evil()):
        root = ET.fromstring(graph.svg(definition))
        for element in root.iter():
            assert element.tag.removeprefix(SVG) in {"svg", "title", "desc", "defs", "marker", "path", "rect", "g", "text"}
            for name, value in element.attrib.items():
                assert name != "style"
                assert not name.startswith("on")
                assert "href" not in name
                assert "url(" not in value or value == "url(#outlast-arrow)"


def test_no_text_of_an_author_breaks_out_of_svg() -> None:
    svg = graph.svg(evil())
    assert "<script" not in svg
    assert "\x1b" not in svg
    assert any("<script>alert(1)</script> & �[31m" in label for label in labels(svg))
    svg.encode("utf-8")


def test_boxes_do_not_overlap_and_lie_inside_the_picture() -> None:
    for definition in (sample(), evil(), *(wild(seed) for seed in range(30))):
        svg = graph.svg(definition)
        root = ET.fromstring(svg)
        width, height = float(root.attrib["width"]), float(root.attrib["height"])
        placed = boxes(svg)
        for left, top, right, bottom in placed.values():
            assert left >= 0
            assert top >= 0
            assert right <= width
            assert bottom <= height
        for (one, a), (two, b) in combinations(placed.items(), 2):
            apart = a[2] < b[0] or b[2] < a[0] or a[3] < b[1] or b[3] < a[1]
            assert apart, (one, two)


def wild(seed: int) -> Definition:
    """A flow with arbitrary routes, cycles and unreachable nodes included."""
    dice = random.Random(seed)
    names = [f"node_{number}" for number in range(dice.randint(1, 14))]
    nodes: dict[str, Any] = {}
    for name in names:
        targets = dice.sample([*names, "done"], dice.randint(1, min(4, len(names))))
        nodes[name] = Decision(work, choices={f"c{number}" * dice.randint(1, 8): target for number, target in enumerate(targets)})
    return declare(**nodes, done=End(COMPLETE))


def test_the_same_flow_is_the_same_text() -> None:
    for seed in range(10):
        assert graph.svg(wild(seed)) == graph.svg(wild(seed))
        assert graph.mermaid(wild(seed)) == graph.mermaid(wild(seed))


def test_without_cycles_every_arrow_leads_downwards() -> None:
    flow = declare(
        first=Decision(work, choices={"a": "second", "b": "third", "c": "done"}),
        second=Activity(work, then="third"),
        third=Activity(work, then="done"),
        done=End(COMPLETE),
    )
    placed = boxes(graph.svg(flow))
    for arrow in graph.arrows(flow):
        assert placed[arrow.source][3] < placed[arrow.target][1]


def test_the_start_is_on_top_of_everything_that_it_leads_to() -> None:
    placed = boxes(graph.svg(sample()))
    assert all(placed["propose"][3] < box[1] for name, box in placed.items() if name != "propose")


def test_an_empty_flow_is_an_empty_picture() -> None:
    empty = Definition(name="empty", version=1, nodes={})
    assert boxes(graph.svg(empty)) == {}
    assert graph.mermaid(empty).splitlines() == ["---", 'title: "empty, version 1"', "---", "flowchart TD"]


def test_routes_to_unknown_nodes_are_left_out() -> None:
    flow = declare(first=Activity(work, then="nowhere"), done=End(COMPLETE))
    assert graph.arrows(flow) == []
    assert set(boxes(graph.svg(flow))) == {"first", "done"}


@pytest.mark.parametrize(
    ("span", "words"),
    [
        (timedelta(days=2), "2 d"),
        (timedelta(hours=26, minutes=5), "1 d 2 h 5 min"),
        (timedelta(seconds=90), "1 min 30 s"),
        (timedelta(seconds=0.25), "0.25 s"),
        (timedelta(0), "0 s"),
    ],
)
def test_spans_are_told_in_their_largest_units(span: timedelta, words: str) -> None:
    assert graph._span(span) == words


def test_long_edges_bend_around_and_back_edges_run_upwards() -> None:
    placed = place({"a": 50, "b": 50, "c": 50}, [("a", "b"), ("b", "c"), ("a", "c"), ("c", "a")])
    assert [placed.at[name][1] for name in "abc"] == [0, 1, 2]
    assert [row for _, row in placed.paths["a", "c"]] == [0, 1, 2]
    assert [row for _, row in placed.paths["c", "a"]] == [2, 1, 0]
    assert placed.rows == 3

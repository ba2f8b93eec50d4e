"""The life of a run as a picture: where its time went, with long idle times pressed together; well-formed, bounded, and never code."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from flows.core import graph
from flows.core.protocol import LIVE, TERMINAL, Status
from flows.core.timeline import IDLE, LANE_OF, LANES, LEFT, MARGIN, WIDTH, Span, Total, draw, spans, totals, words
from tests.factories import Line

pytestmark = pytest.mark.req("Q3")

DAY = 86_400.0
EVIL = "<script>alert(1)</script>&\"'"
NS = "{http://www.w3.org/2000/svg}"


def parsed(given: list[Span], title: str = "A life") -> ET.Element:
    return ET.fromstring(draw(given, title, lambda seconds: f"at {seconds:g}"))


def bars(root: ET.Element, fill: str) -> list[ET.Element]:
    return [one for one in root.iter(f"{NS}rect") if one.get("fill") == LANES[fill]]


def width(one: ET.Element) -> float:
    return float(one.get("width", "0"))


def test_a_span_lasts_until_the_next_arrow_and_the_last_until_now() -> None:
    arrows = [(10.0, "runnable", "a"), (11.0, "running", "a"), (15.0, "waiting", "b")]
    assert spans(arrows, 40.0) == [Span(10, 11, "queued", "a"), Span(11, 15, "computing", "a"), Span(15, 40, "waiting", "b")]


def test_an_end_takes_no_time_and_a_clock_that_went_back_neither() -> None:
    found = spans([(10.0, "running", "a"), (30.0, "runnable", "a"), (20.0, "running", "a"), (25.0, "complete", "z")], 99.0)
    assert [(one.start, one.end) for one in found] == [(10, 30), (30, 30), (30, 30)]


def test_every_live_status_has_a_lane_and_no_end_has() -> None:
    assert set(LANE_OF) == LIVE
    assert set(LANE_OF.values()) == set(LANES)
    assert spans([(1.0, status, "z") for status in sorted(TERMINAL)], 9.0) == []


def test_work_has_half_of_the_picture_however_long_the_run_was_idle() -> None:
    given = [
        Span(0, 60, "computing", "a"),
        Span(60, 60 + 9 * DAY, "waiting", "b"),
        Span(60 + 9 * DAY, 120 + 9 * DAY, "computing", "c"),
    ]
    root = parsed(given)
    work, (idle,) = bars(root, "computing"), bars(root, "waiting")
    assert sum(map(width, work)) == pytest.approx((WIDTH - LEFT - MARGIN) / 2, abs=1)
    assert idle.get("stroke-dasharray"), "it was pressed together, and is seen to be"
    assert "9 d" in [text.text for text in root.iter(f"{NS}text")]


def test_what_is_not_long_is_as_wide_as_it_was() -> None:
    root = parsed([Span(0, 75, "computing", "a"), Span(75, 100, "waiting", "b")])
    (work,), (idle,) = bars(root, "computing"), bars(root, "waiting")
    assert width(work) == pytest.approx(3 * width(idle), abs=0.5)
    assert idle.get("stroke-dasharray") is None


def test_a_life_without_work_is_drawn_too() -> None:
    root = parsed([Span(0, DAY, "waiting", "a"), Span(DAY, 3 * DAY, "paused", "a")])
    assert width(bars(root, "paused")[0]) == pytest.approx(2 * width(bars(root, "waiting")[0]), abs=1)
    assert width(parsed([Span(5, 5, "queued", "a")])) == WIDTH


def test_many_arrows_make_no_more_rectangles_than_can_be_seen() -> None:
    lanes = ("queued", "computing", "waiting")
    given = [Span(n, n + 1, lanes[n % 3], "a") for n in range(5_000)]
    drawn = draw(given, "Long", str)
    assert len(ET.fromstring(drawn).findall(f".//{NS}rect")) < 3 * WIDTH
    assert len(drawn) < 400_000
    assert "in 1667 spans" in words(given)


def test_nothing_in_it_is_more_than_text() -> None:
    drawn = draw([Span(0, 1, "computing", EVIL)], EVIL, lambda _seconds: EVIL)
    assert "<script" not in drawn
    assert "style=" not in drawn
    root = ET.fromstring(drawn)
    assert {one.tag.removeprefix(NS) for one in root.iter()} <= {"svg", "title", "desc", "rect", "path", "text"}


def test_it_is_said_in_words() -> None:
    root = parsed([Span(0, 65, "computing", "a"), Span(65, 65 + DAY, "waiting", "b")], "The life of one")
    assert root.findtext(f"{NS}title") == "The life of one"
    assert root.findtext(f"{NS}desc") == "1 d in all: computing 1 min 5 s in 1 span, waiting 1 d in 1 span."
    assert root.get("aria-labelledby") == "oa-life-title oa-life-desc"
    assert (draw([], "", str), words([])) == ("", "Nothing so far.")


def test_the_sums_are_the_spans() -> None:
    given = [
        Span(0, 5, "computing", "a"),
        Span(5, 9, "waiting", "a"),
        Span(9, 10, "computing", "a"),
        Span(10, 30, "computing", "b"),
    ]
    found = totals(given)
    assert found == [Total("computing", "b", 20, 1), Total("computing", "a", 6, 2), Total("waiting", "a", 4, 1)]
    assert sum(one.seconds for one in found) == given[-1].end - given[0].start
    assert frozenset(LANES) > IDLE


def test_the_graph_says_where_the_run_is() -> None:
    definition = Line.definition
    first, *_rest, last = definition.nodes
    drawn = ET.fromstring(graph.svg(definition, here=last, visits={first: 3, last: 1}))
    told = [text.text or "" for text in drawn.iter(f"{NS}text")]
    assert [text for text in told if text.endswith("it is here")]
    assert [text for text in told if text.endswith("3 times")]
    assert f"The run is at {last}." in (drawn.findtext(f"{NS}desc") or "")
    assert len([one for one in drawn.iter(f"{NS}rect") if one.get("stroke-width") == "4"]) == 1
    assert 'stroke-width="4"' not in graph.svg(definition)


@pytest.mark.parametrize("status", sorted(Status))
def test_any_status_may_come(status: str) -> None:
    assert len(spans([(1.0, status, "a")], 2.0)) == (0 if status in TERMINAL else 1)

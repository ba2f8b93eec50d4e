"""Traces and logs: one linked trace for each turn, a span for each attempt, nothing on replay; ids in whatever is logged meanwhile."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import Any

import pytest
from opentelemetry import trace

from flows import telemetry
from flows.errors import Transient
from flows.logs import Ids, working_on
from flows.models import Transition
from flows.services import replay
from flows.testing import LocalWorker
from tests import factories
from tests.factories import Ask, Line, status
from tests.support.spans import Provider
from tests.support.trace import tracing

pytestmark = pytest.mark.req("Q1")


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Provider:
    made = Provider()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: made)
    return made


def test_each_turn_is_a_trace_that_is_linked_to_the_starter(worker: LocalWorker, provider: Provider) -> None:
    with provider.tracer.start_as_current_span("a request") as request:
        run = Ask.start({"key": "k"})
    worker.run()
    asked = [one for one in provider.spans if one.name == "turn t-ask"]
    assert len(asked) == 1
    assert asked[0].parent is None
    assert [(link.trace_id, link.span_id) for link in asked[0].links] == [
        (request.get_span_context().trace_id, request.get_span_context().span_id)
    ]
    assert asked[0].get_span_context().trace_id != request.get_span_context().trace_id
    assert asked[0].attributes == {
        "outlast.flow": "t-ask",
        "outlast.version": 1,
        "outlast.workflow": str(run.id),
        "outlast.queue": "agents",
    }


def test_each_attempt_is_a_span_below_it_and_what_the_author_traces_is_below_that(
    worker: LocalWorker, provider: Provider
) -> None:
    seen: list[Any] = []

    def work(attempt: Any) -> None:
        with provider.tracer.start_as_current_span("the author's"):
            seen.append(attempt.number)
        if attempt.number == 1:
            raise Transient("secret")

    factories.does["two"] = work
    run = Line.start({})
    worker.run()
    attempts = [one for one in provider.spans if one.name == "t-line.two"]
    first = attempts[0]
    assert (first.attributes["outlast.node"], first.attributes["outlast.attempt"], first.attributes["outlast.outcome"]) == (
        "two",
        1,
        "failed",
    )
    assert (first.attributes["outlast.code"], first.status, first.ended) == (Transient.code, Transient.code, True)
    turns = {one.get_span_context().span_id for one in provider.spans if one.name == "turn t-line"}
    assert first.parent is not None
    assert first.parent.span_id in turns
    own = next(one for one in provider.spans if one.name == "the author's")
    assert own.parent is not None
    assert own.parent.span_id == first.get_span_context().span_id
    assert "secret" not in str([one.attributes for one in provider.spans])
    assert status(run)[0] in {"waiting", "complete"}


def test_nothing_is_traced_on_replay(worker: LocalWorker, provider: Provider) -> None:
    with provider.tracer.start_as_current_span("a request"):
        Line.start({})
    worker.run()
    before = len(provider.spans)
    assert [found.drift for found in replay.replay()] == [None]
    assert len(provider.spans) == before


def test_where_nobody_traces_nothing_is_asked_or_kept(worker: LocalWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    Line.start({})
    assert telemetry.tracer() is None
    assert Transition.objects.get(seq=1).note is None
    with tracing(monkeypatch) as traced:
        worker.run(["agents"])
    assert "NOTE" not in traced.names


def test_what_is_no_traceparent_links_nothing(worker: LocalWorker, provider: Provider) -> None:
    Line.start({})  # outside of any span
    worker.run()
    assert [one.links for one in provider.spans if one.name == "turn t-line"] == [[]]
    assert telemetry._links("nonsense") == []


def test_without_the_library_nothing_is_traced() -> None:
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from flows import telemetry\n"
        "assert telemetry.tracer() is None and telemetry.current() == ''\n"
        "with telemetry.turn('t', {}, lambda: ''), telemetry.attempt('a', {}) as ended: ended('failed', 'X')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_what_is_logged_meanwhile_has_the_ids(worker: LocalWorker, caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("shop")
    factories.does["two"] = lambda attempt: logger.warning("hello")
    caplog.handler.addFilter(ids := Ids())
    try:
        with caplog.at_level(logging.INFO, "shop"):
            run = Line.start({})
            worker.run()
            logger.warning("afterwards")
    finally:
        caplog.handler.removeFilter(ids)
    during, after = (record for record in caplog.records if record.name == "shop")
    assert [getattr(during, name) for name in ("flow", "workflow", "node", "attempt")] == ["t-line", run.id, "two", 1]
    assert [getattr(after, name) for name in ("flow", "workflow", "node", "attempt")] == ["-", "-", "-", "-"]


def test_what_a_record_says_itself_stays() -> None:
    record = logging.LogRecord("x", logging.INFO, "f", 1, "m", (), None)
    record.node = "mine"
    with working_on(flow="f", node="theirs"):
        assert Ids().filter(record)
    assert (record.node, record.__dict__["flow"], record.__dict__["attempt"]) == ("mine", "f", "-")

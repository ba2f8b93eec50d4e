"""How a flow does: each figure, the objectives and what they were late by; in Python, by command, and as metrics."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

import flows
from flows import COMPLETE, ESCALATE, FAILED, Activity, Approval, Deadline, End, Objectives, Retry, hours, seconds
from flows import Wait as WaitNode
from flows.core.metrics import METRICS, Metric, Sample, as_text
from flows.core.protocol import WAIT_KINDS
from flows.models import RollUp
from flows.prometheus import Collector
from flows.services import exposing, figures, measures
from flows.services.figures import Figures
from flows.store import measures as store
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.support import measuring
from tests.support.commanding import cli
from tests.support.trace import Trace, tracing

__all__ = ["cli"]

pytestmark = pytest.mark.req("Q1", "C5")

USING = "default"
PROMISED = Objectives(complete_within=hours(4), wake_within=seconds(300), answered_within=hours(1), share=0.9)


@pytest.fixture
def flow(declare: Any) -> Any:
    """Waits for an event, works (the first try fails), asks people."""
    return declare(
        "t-figures",
        meta={"objectives": PROMISED},
        wait=WaitNode("t.figures", key=lambda state: state.input["key"], deadline=Deadline(days=2, then=ESCALATE), then="work"),
        work=Activity(factories.work, retry=Retry(max_attempts=3, initial=seconds(0), jitter=0), then="ask"),
        ask=Approval(
            candidate="work",
            role="r",
            expires=Deadline(days=2, then=ESCALATE),
            approved="done",
            changes="gave_up",
            denied="gave_up",
        ),
        done=End(COMPLETE),
        gave_up=End(FAILED),
    )


@pytest.fixture
def asked(flow: Any, worker: LocalWorker, clock: Clock) -> None:
    """One run has waited two hours for its event and ten minutes for a worker, and now asks people; another waits for its event."""
    factories.does["work"] = factories.failing(1)
    for key in ("a", "b"):
        flow.start({"key": key})
    worker.run()
    clock.move(hours=2)
    flows.signal("e1", "t.figures", key="a")
    clock.move(minutes=10)
    worker.run()
    worker.tick()  # the time of the second try has come
    worker.run()


def figure() -> Figures:
    (found,) = figures.figures(flow="t-figures", hours=48).flows
    return found


def test_the_figures_of_a_flow(asked: None, clock: Clock) -> None:
    clock.move(days=3)
    found = figure()
    assert (found.flow, found.version, found.started, found.ended, found.completion) == ("t-figures", 1, 0, {}, None)
    clock.move(days=-3)
    found = figure()
    assert (found.started, found.ended, found.completion) == (2, {}, None)
    assert (found.attempts, found.visits, found.amplification) == (2, 1, 2.0)
    assert found.wakes == 2  # by the event, and by the retry's end
    assert found.wake[0.99] == 900.0
    assert found.live == {"waiting": 2}
    assert found.oldest is not None
    assert found.oldest >= 7800
    assert {(one.kind, one.count, one.overdue) for one in found.waits} == {("event", 1, 0), ("approval", 1, 0)}
    assert {(one.looks, one.decides) for one in found.waits} == {
        (WAIT_KINDS[kind].alert, WAIT_KINDS[kind].escalation) for kind in ("event", "approval")
    }
    assert (found.in_doubt, found.owed, found.breached, found.breach_rate, found.stale) == (0, 0, 0, None, 0)
    assert set(found.buckets) == {"queued", "computing", "external job", "human", "retry delay"} & set(found.buckets)
    assert round(found.buckets["external job"] / 60) == 250
    measuring.assert_measured(USING)


def kept() -> dict[str, tuple[int, int, dict[str, int], bool]]:
    return {one.objective: (one.of, one.late, one.blame, one.breached) for one in figure().objectives}


def test_what_is_late_is_put_down_to_what_took_the_time(asked: None, worker: LocalWorker, clock: Clock) -> None:
    assert kept() == {
        "complete": (0, 0, {}, False),
        "wake": (2, 1, {"event": 1}, True),
        "answer": (0, 0, {}, False),
    }
    clock.move(hours=3)
    for run in factories.Workflow.objects.filter(flow_name="t-figures"):
        flows.cancel(run.pk, reason="enough")
    worker.run()
    found = kept()
    assert found["complete"] == (2, 2, {"external job": 1, "human": 1}, True)
    assert found["answer"] == (1, 1, {"approval": 1}, True)


def test_they_are_the_same_when_the_hours_are_rolled_up(asked: None, worker: LocalWorker, clock: Clock) -> None:
    clock.move(hours=1)
    before = figure()
    RollUp.objects.update(final=measuring.hour_of(store.state(USING)[2]) - hours(20), looked_at="2026-01-01T00:00Z")
    assert measures.roll_up(USING)
    after = figure()
    assert (after.started, after.attempts, after.wakes, after.wake, after.objectives) == (
        before.started,
        before.attempts,
        before.wakes,
        before.wake,
        before.objectives,
    )
    assert after.buckets.keys() == before.buckets.keys()


def test_a_run_that_completes_is_a_completion(worker: LocalWorker) -> None:
    factories.Line.start({})
    worker.run()
    (found,) = figures.figures(flow=factories.Line.definition.name).flows
    assert (found.ended, found.completion, found.amplification, found.live) == ({"COMPLETE": 1}, 1.0, 1.0, {})


def test_by_command(cli: Any, asked: None) -> None:
    ran = cli("measures", "--flow", "t-figures")
    assert ran.code == 0
    assert re.search(r"t-figures@1 +external job", ran.out)
    assert re.search(r"t-figures@1 +approval +1 ", ran.out)
    assert re.search(r"t-figures@1 +wake +5\.0 min +90\.0% +50\.0% +2 +event \(1\)", ran.out)
    assert "t-figures@1 does not keep its objective: wake" in ran.err
    (found,) = cli("measures", "--flow", "t-figures", "--json").json["flows"]
    assert (found["started"], found["amplification"]) == (2, 2.0)
    assert [(one["kind"], one["looks"]) for one in found["waits"]] == [("approval", "reviewers"), ("event", "operators")]
    assert cli("measures", "--hours", "0").code == 2
    assert cli("measures", "--hours", "100000").code == 1
    assert cli("measures", "--flow", "t-none").out == ""


# ---------------------------------------------------------------- metrics


@pytest.fixture(autouse=True)
def unread() -> Iterator[None]:
    """Nothing is kept from one test to the next."""
    exposing.forget()
    yield
    exposing.forget()


def get(**headers: str) -> Any:
    return Client().get("/flows/metrics", headers=headers)


@pytest.fixture
def secret(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("T_METRICS", "letmein")
    settings.OUTLAST = {**settings.OUTLAST, "METRICS_TOKEN": "env:T_METRICS"}


def test_the_metrics_are_what_the_figures_are(asked: None, secret: None) -> None:
    answer = get(authorization="Bearer letmein")
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    families = {one.name: one for one in text_string_to_metric_families(answer.content.decode())}
    assert set(families) == set(METRICS)
    values = {(one.name, *one.labels.values()): one.value for family in families.values() for one in family.samples}
    assert values["outlast_workflows", "t-figures", "1", "waiting"] == 2
    assert values["outlast_waits", "t-figures", "1", "event", "external job", "operators"] == 1
    assert values["outlast_workers", "agents"] == 1
    assert values["outlast_reviewers_waiting", "role", "r"] == 1
    assert values["outlast_reviewers_oldest_seconds", "role", "r"] >= 0
    assert values["outlast_objective_share", "t-figures", "1", "wake"] == 0.9


def test_the_day_is_what_was_rolled_up(asked: None, secret: None, clock: Clock) -> None:
    clock.move(hours=1)
    RollUp.objects.update(final=measuring.hour_of(store.state(USING)[2]) - hours(20), looked_at="2026-01-01T00:00Z")
    assert measures.roll_up(USING)
    found = {(one.metric, *one.labels): one.value for one in exposing.samples()}
    place = ("t-figures", "1")
    assert found["outlast_day_started", *place] == 2
    assert found["outlast_day_attempts", *place, "failed"] == 1
    assert found["outlast_day_wake_seconds", *place, "0.99"] == 900.0
    assert found["outlast_day_breaches", *place, "wake", "event"] == 1
    assert found["outlast_day_objective", *place, "wake"] == 2
    assert found["outlast_day_seconds", *place, "external job"] > 7000
    assert 0 <= found["outlast_measured_age_seconds",] <= 3600


def test_who_may_read_them(transactional_db: None, secret: None, settings: Any) -> None:
    assert get().status_code == 401
    assert get(authorization="Bearer wrong").status_code == 401
    assert get(authorization="letmein").status_code == 401
    user = get_user_model().objects.create_user("ann")
    client = Client()
    client.force_login(user)
    assert client.get("/flows/metrics").status_code == 401
    user.user_permissions.add(Permission.objects.get(codename="view_measure"))
    assert client.get("/flows/metrics").status_code == 200
    assert client.post("/flows/metrics").status_code == 405
    settings.OUTLAST = {**settings.OUTLAST, "METRICS_TOKEN": ""}
    assert get(authorization="Bearer ").status_code == 401


def test_they_cost_eight_statements_and_nothing_for_ten_seconds(asked: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with tracing(monkeypatch) as trace, CaptureQueriesContext(connection) as queries:
        exposing.samples()
    assert statements(trace) + len(queries) <= 8
    with tracing(monkeypatch) as trace, CaptureQueriesContext(connection) as queries:
        exposing.samples()
    assert statements(trace) + len(queries) == 0


def statements(trace: Trace) -> int:
    return len(trace.names) + len(trace.others)


def test_a_registry_may_have_them_too(asked: None) -> None:
    registry = CollectorRegistry()
    registry.register(Collector())
    labels = {"flow": "t-figures", "version": "1", "status": "waiting"}
    assert registry.get_sample_value("outlast_workflows", labels) == 2


def test_labels_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METRICS, "t_metric", Metric("t_metric", "A test.", ("name",)))
    text = as_text([Sample("t_metric", ('a"b\\c\nd',), 2.5), Sample("t_metric", ("x",), float("inf"))])
    assert 't_metric{name="a\\"b\\\\c\\nd"} 2.5\n' in text
    assert 't_metric{name="x"} +Inf\n' in text


def test_spans_are_said_as_people_do() -> None:
    from flows.management.measures import span

    assert [span(one) for one in (None, 0.25, 90, 7200, 200000, float("inf"))] == [
        "",
        "0.25 s",
        "1.5 min",
        "2.0 h",
        "2.3 d",
        "more than 7 days",
    ]

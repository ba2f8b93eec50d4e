"""Releases as records: registered, made current, pinned at the start, offered by workers, handed to the attempt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

import flows
from flows import MIGRATE, Flow, releases
from flows.core.errors import PayloadError
from flows.core.misuse import UnknownFlow
from flows.models import CurrentRelease, Release, Worker
from flows.services import describe
from flows.testing import LocalWorker
from tests import factories
from tests.factories import Ask, Line, another_worker, row
from tests.support import releasing
from tests.support.releasing import both, now_is, register

pytestmark = pytest.mark.req("I1")


# ------------------------------------------------------------------ records


def test_the_same_again_is_the_same() -> None:
    user = get_user_model().objects.create_superuser("ann")
    one = releases.register("R17", models={"planner": "m-1"}, prompts={"plan": "Plan it."}, note="first", by=user)
    again = releases.register("R17", models={"planner": "m-1"}, prompts={"plan": "Plan it."}, note="another note")
    assert (one.pk, again.note, again.by_label) == (again.pk, "first", "ann")
    assert one.model_hashes == {"planner": releases.digest("m-1")}


def test_another_content_under_the_name_names_what_differs() -> None:
    register("R16")
    releases.register("R17", models={"planner": "m-1"}, prompts={"plan": "Plan it."})
    with pytest.raises(releases.ReleaseTaken, match=r"models planner, tools t.*under a new name.*flows releases show R17"):
        releases.register("R17", models={"planner": "m-2"}, prompts={"plan": "Plan it."}, tools={"t": 1})
    with pytest.raises(releases.ReleaseTaken, match="compatible_with"):
        releases.register("R17", models={"planner": "m-1"}, prompts={"plan": "Plan it."}, compatible_with=["R16"])


def test_what_cannot_be_registered() -> None:
    register("R17")
    with pytest.raises(releases.InvalidRelease, match="is empty"):
        releases.register("R18")
    with pytest.raises(releases.InvalidRelease, match="cannot be the name"):
        releases.register("*", models={"a": 1})
    with pytest.raises(releases.UnknownRelease, match=r"No release R71 is registered \(the newest are: R17\)"):
        releases.register("R18", models={"a": 1}, compatible_with=["R71"])
    with pytest.raises(releases.InvalidRelease, match="takes a list of names"):
        releases.register("R18", models={"a": 1}, compatible_with="R17")
    with pytest.raises(PayloadError):
        releases.register("R18", models={"a": object()})
    with pytest.raises(PayloadError, match="note of release R18"):
        releases.register("R18", models={"a": 1}, note="\x00")
    assert [one.name for one in releases.list()] == ["R17"]


def test_a_release_is_compatible_with_itself_and_says_each_once() -> None:
    register("R17")
    assert register("R18", ["R17", "R18", "R17"]).compatible_with == ["R17"]


def test_releases_are_append_only() -> None:
    register("R17")
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        Release.objects.update(compatible_with=["R1"])
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        Release.objects.all().delete()


def test_current_for_all_and_for_one_flow() -> None:
    both()
    user = get_user_model().objects.create_superuser("ann")
    assert releases.current() == releases.get("R17")
    assert releases.make_current("R18", flow=Line, by=user, reason="a trial")
    assert not releases.make_current("R18", flow="t-line", by=None, reason="again")
    assert (releases.current(Line).name, releases.current("t-ask").name) == ("R18", "R17")  # type: ignore[union-attr]
    own = CurrentRelease.objects.get(flow_name="t-line")
    assert (own.by_label, own.reason) == ("ann", "a trial")
    assert releases.make_current(None, flow=Line, by=user, reason="the trial is over")
    assert not releases.make_current(None, flow=Line, by=user, reason="the trial is over")
    assert releases.current(Line) == releases.get("R17")


def test_current_is_only_what_there_is_and_for_a_reason() -> None:
    register("R17")
    assert releases.current() is None
    with pytest.raises(releases.UnknownRelease):
        releases.make_current("R71", by=None, reason="x")
    with pytest.raises(UnknownFlow):
        releases.make_current("R17", flow="t-none", by=None, reason="x")
    with pytest.raises(UnknownFlow):
        releases.current("t-none")
    with pytest.raises(releases.ReasonMissing, match="Say why another release becomes current"):
        releases.make_current("R17", by=None, reason=" ")


def test_the_async_twins(worker: LocalWorker) -> None:
    run = Line.start({})
    async_to_sync(releases.aregister)("R17", models={"a": 1})
    assert async_to_sync(releases.amake_current)("R17", by=None, reason="x")
    assert async_to_sync(releases.acurrent)().name == "R17"
    assert async_to_sync(releases.amove)(run, to="R17", by=None, reason="x")
    assert row(run).release == "R17"
    worker.run()


# ------------------------------------------------------------------ pinned at the start


def test_a_run_is_pinned_to_what_is_current_when_it_starts(worker: LocalWorker) -> None:
    before = Line.start({}, key="before")
    both()
    now_is("R18", Ask)
    one, (two, three) = Line.start({}), Ask.start_many([("a", {"key": "a"}), ("b", {"key": "b"})])
    assert [row(run).release for run in (before, one, two, three)] == ["", "R17", "R18", "R18"]
    now_is("R18")
    assert row(Line.start({}, key="before")).release == "", "it is the run that there was"
    assert row(Line.start({})).release == "R18"
    worker.run()
    assert row(one).status == "complete"


def test_a_start_asks_nothing_further() -> None:
    with CaptureQueriesContext(connection) as none:
        Line.start({})
    both()
    with CaptureQueriesContext(connection) as some:
        Line.start({})
    assert len(some) == len(none)


def test_a_run_for_a_new_goal_is_pinned_to_what_is_current(worker: LocalWorker) -> None:
    both()
    run = Ask.start({"key": "x"})
    now_is("R18")
    superseded = flows.supersede(run.intent_id, goal="better", flow=Ask, input={"key": "y"})
    assert superseded.started is not None
    assert row(superseded.started).release == "R18"


# ------------------------------------------------------------------ who takes it


def offering(*names: str) -> LocalWorker:
    return another_worker(releases=names)


def test_a_pinned_run_is_taken_where_its_release_is_offered(worker: LocalWorker) -> None:
    both()
    run, free = Line.start({}), None
    now_is(None)
    free = Line.start({})
    none, other, own = offering(), offering("R18"), offering("R18", "R17")
    assert none.run() == 1, "a worker without any takes what is pinned to none"
    assert row(free).status == "complete"
    assert other.run() == 0
    assert row(run).status == "runnable"
    assert own.run() == 1
    assert row(run).status == "complete"


def test_a_worker_without_the_setting_takes_whatever_it_is_given(worker: LocalWorker) -> None:
    both()
    run = Line.start({})
    worker.run()
    assert row(run).status == "complete"
    assert Worker.objects.get(pk=worker.incarnation).releases == ["*"]
    assert Worker.objects.get(pk=offering("R17").incarnation).releases == ["R17"]


def test_a_run_in_between_is_not_taken_without_its_release_but_those_behind_it_are(worker: LocalWorker) -> None:
    both()
    Line.start({}, priority=9)
    now_is("R18")
    behind = [Line.start({}) for _ in range(3)]
    other = offering("R18")
    other.batch_size = 10
    assert other.run() == 3
    assert {row(run).status for run in behind} == {"complete"}


# ------------------------------------------------------------------ the attempt


def test_an_attempt_knows_its_release(worker: LocalWorker) -> None:
    seen: list[Any] = []
    factories.does["one"] = lambda attempt: seen.append(attempt.release)
    both()
    Line.start({})
    worker.run()
    (found,) = seen
    assert (found.name, found.prompts) == ("R17", {"plan": releases.digest("Plan it.")})
    assert found.has("prompts", "plan", "Plan it.")
    assert found.has("models", "planner", releases.digest("m-1"))
    assert not found.has("prompts", "plan", "Plan it, and say why.")
    assert not found.has("tools", "plan", "Plan it.")
    with pytest.raises(ValueError, match="there is no 'prompt'"):
        found.has("prompt", "plan", "Plan it.")


def test_a_run_without_a_release_has_none_and_asks_for_none(worker: LocalWorker) -> None:
    seen: list[Any] = []
    factories.does["one"] = lambda attempt: seen.append(attempt.release)
    Line.start({})
    worker.run()
    assert seen == [None]


# ------------------------------------------------------------------ what is shown


def test_a_description_says_under_which_release_and_who_offers_it(worker: LocalWorker) -> None:
    both()
    run = Ask.start({"key": "x"})
    worker.run()
    worker.stop()
    told = describe.describe(run)
    assert told.release == describe.ReleaseView("R17", "R17", "", [], alert=False)
    assert told.legal_moves == ["cancelling", "paused", "runnable", "superseded"]
    other = offering("R17")
    now_is("R18")
    view = describe.describe(run).release
    assert view is not None
    assert (view.current, view.offered_by) == ("R18", [f"local-{other.incarnation}"])
    assert describe.describe(Line.start({})).release is not None


def test_a_run_that_nobody_may_take_says_which_release_it_needs(worker: LocalWorker) -> None:
    both()
    run = Line.start({})
    worker.stop()
    offering("R18")
    needed = "a worker: no live one offers release R17; start one, or move the run (flows releases move)"
    assert describe.describe(run).decision_needed == needed
    offering("R17")
    assert describe.describe(run).decision_needed == "none: it goes on by itself"


def test_a_flow_without_releases_describes_none(worker: LocalWorker) -> None:
    assert describe.describe(Line.start({})).release is None


def test_what_is_due_is_asked_only_of_pinned_runs(worker: LocalWorker, declare: Callable[..., type[Flow]]) -> None:
    """A turn of a run without a release makes no statement about releases."""
    flow = releasing.flow_of(declare, MIGRATE)
    flow.start({"key": "x"})
    with CaptureQueriesContext(connection) as seen:
        worker.run(["agents"])
    assert not [one["sql"] for one in seen.captured_queries if "outlast_release" in one["sql"]]

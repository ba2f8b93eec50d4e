"""No verdict is a dead end: the page of a run that it stopped has a form, or a link that opens, for every step of the way on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

import flows
from flows import COMPLETE, HUMAN, Budget, Decision, End, Visits
from flows.admin.ways import ASK, WAYS
from flows.core.verdicts import WAY_ON, Verdict, Way
from flows.testing import local_worker, movable_clock
from tests import factories
from tests.factories import row
from tests.support import releasing, waking
from tests.support.approving import World
from tests.support.budgeting import ledger, think
from tests.support.waking import BREAKS, Woken

pytestmark = pytest.mark.req("H1", "Q3")

#: These breaks edit the record under the run, which a replay of it finds.
STRAYS = {
    f"test_the_page_leads_on[{verdict}]" for verdict in ("WORKFLOW_MIGRATION_REQUIRED", "CANDIDATE_INVALID", "APPROVAL_REQUIRED")
}


@pytest.fixture
def woken(transactional_db: None, settings: Any) -> Iterator[Woken]:
    settings.OUTLAST = {**settings.OUTLAST, "PLACEMENT": "tests.support.waking.placement"}
    waking.outside.clear()
    waking.acted.clear()
    with movable_clock() as clock, local_worker(placements=["eu"]) as worker:
        made = Woken(worker, clock, "event", waking.make_user())
        made.bring()
        yield made


@pytest.mark.parametrize("verdict", [verdict for verdict in BREAKS if verdict != "INTENT_SUPERSEDED"])
def test_the_page_leads_on(woken: Woken, verdict: str) -> None:
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("root"))
    BREAKS[verdict][0](woken)
    woken.wake()
    assert row(woken.run).status == "waiting"
    response = client.get(reverse("admin:outlast_flows_workflow_change", args=[woken.run.id]))
    steps = response.context["ways"]
    shown = response.content.decode()
    assert [step["way"] for step in steps] == flows.describe(woken.run).ways_on
    assert steps, "no way on"
    if verdict == "POLICY_BLOCKED":
        assert "what lets the run go on" in shown, "the event has come, and is not what it waits for"
    for step in steps:
        if step["here"] and step["way"] != "migrate":
            assert f'id="{step["here"][1:]}"' in shown
        assert step["here"] or step["links"] or step["way"] == "migrate", step
        for link in step["links"]:
            assert client.get(link["url"], follow=True).status_code == 200, link


def test_a_used_up_budget_leads_to_its_ledger_and_a_passed_release_to_its_page(
    world: World,
) -> None:
    client = Client()
    client.force_login(world.sue)
    with factories.declaring(world.worker) as declare:
        thinker = declare(
            "t-used-up",
            meta={"budget": Budget(model_calls=1, cost="2.00")},
            think=Decision(think, choices={"go": "think", "stop": "done"}, visits=Visits(30, then="done")),
            done=End(COMPLETE),
        )
        run = thinker.start({})
        world.worker.run()
        assert row(run).error_code == "BUDGET_EXHAUSTED"
        (allow, cancel) = page_of(client, run)
        assert [link["url"] for link in allow["links"]] == [
            reverse("admin:outlast_flows_budget_change", args=[ledger(run).pk])
        ], "the one that is used up"
        assert cancel["here"] == "#oa-cancel"
        releasing.both()
        passed = releasing.begin(releasing.flow_of(declare, HUMAN), world.worker)
        releasing.now_is("R18")
        releasing.answer(passed)
        world.worker.run()
        assert row(passed).error_code == "RELEASE_INCOMPATIBLE"
        (move, _cancel) = page_of(client, passed)
        (link,) = move["links"]
        assert f'value="{passed.id}"' in client.get(link["url"]).content.decode(), "the form there is about this run"


def page_of(client: Client, run: Any) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = client.get(reverse("admin:outlast_flows_workflow_change", args=[run.id])).context["ways"]
    return steps


def test_every_way_has_its_words_and_every_verdict_that_stops_has_a_way() -> None:
    assert set(WAYS) == set(Way)
    passing = {Verdict.ALLOWED, Verdict.INTENT_SUPERSEDED, Verdict.APPROVAL_REQUIRED}
    general = {Verdict.HUMAN_REQUIRED}  # the reason says what; then resume
    assert set(WAY_ON) == set(Verdict) - passing - general
    assert all(found.ways and found.ways[-1] is Way.CANCEL for found in WAY_ON.values())
    assert {Way.RESUME, Way.CANCEL, Way.ADOPT, Way.MIGRATE} == set(ASK)

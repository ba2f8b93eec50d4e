"""The code of docs/how-to/intents.md does what the page says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import flows
from flows import checks
from flows.core.misuse import IntentClosed
from flows.models import Commitment, Intent
from flows.testing import LocalWorker
from tests.docs.test_code_blocks import ROOT, written_in
from tests.factories import offer, person, status

PAGE: Path = ROOT / "docs" / "how-to" / "intents.md"

pytestmark = pytest.mark.req("D1")


@pytest.fixture
def page(worker: LocalWorker) -> Iterator[dict[str, Any]]:
    with written_in(PAGE) as names:
        offer(worker)
        yield names


@pytest.fixture
def runs(page: dict[str, Any], worker: LocalWorker) -> tuple[Any, Any]:
    found = page["order"](person("robin"))
    worker.run()
    return found[0], found[1]


def test_two_runs_work_for_one_goal_and_are_found(page: dict[str, Any], runs: tuple[Any, Any]) -> None:
    assert checks.check_flows(None) == []
    first, parcel = runs
    assert first.intent_id == parcel.intent_id
    run, same, listed, got = page["look"](person("robin"))
    assert (run.pk, same.id, same.created, got.pk) == (first.id, first.id, False, first.id)
    assert [one.pk for one in listed] == [parcel.id, first.id]


def test_a_new_goal_ends_both_gives_the_vans_back_and_starts_anew(
    page: dict[str, Any], runs: tuple[Any, Any], worker: LocalWorker
) -> None:
    first, parcel = runs
    (ending, _) = flows.preview(first)
    assert (ending.withdrawn, ending.released) == (["event at packed"], ["van v-7"])
    done = page["change_of_mind"](first, person("robin"))
    assert (done.answer, done.version, set(done.ended)) == ("accepted", 2, {first.id, parcel.id})
    assert {status(run)[0] for run in runs} == {"cancelling"}
    worker.run()
    assert {status(run)[0] for run in runs} == {"superseded"}
    assert [one.status for one in Commitment.objects.filter(workflow_id__in=done.ended)] == ["released", "released"]
    assert status(done.started) == ("waiting", "WAITING", "packed")
    assert page["change_of_mind"](first, person("robin")).answer == "already"


def test_an_intent_stays_active_until_somebody_wants_it_no_more(
    page: dict[str, Any], runs: tuple[Any, Any], worker: LocalWorker
) -> None:
    first, parcel = runs
    for order in ("4711", "47112"):
        flows.signal(f"packed-{order}", "order.packed", key=order)
    worker.run()
    assert {status(run)[0] for run in runs} == {"complete"}
    assert Intent.objects.get(pk=first.intent_id).status == "active"
    assert [page["never_mind"](first, person("robin")).answer for _ in range(2)] == ["accepted", "already"]
    with pytest.raises(IntentClosed):
        page["Delivery"].start({"order": 1}, intent=parcel)
    assert flows.supersede(first, goal="x").answer == "too_late"

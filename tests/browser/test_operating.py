"""The ways of an operator: hold and let go, find and end a run, do one thing to many, repair an orphan, say what became of an effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.urls import reverse

from flows.models import Bulk, Finding, Hold, Workflow
from flows.services.liveness import scanning
from tests.factories import Ask, Line, forget, row
from tests.support import doubting
from tests.support.approving import World
from tests.support.browser import Page
from tests.support.hands import Hand, Keyboard, Pointer
from tests.support.sabotage import damage

pytestmark = pytest.mark.req("F5", "P1")

REASON = "Because Olga says so."


def listed(model: str, app: str = "flows") -> str:
    return reverse(f"admin:outlast_{app}_{model}_changelist")


@pytest.fixture(params=["pointer", "keyboard"])
def hand(request: pytest.FixtureRequest, tab: Page) -> Hand:
    tab.screen(1400, 900)
    return Keyboard(tab) if request.param == "keyboard" else Pointer(tab, finger=False)


@pytest.fixture(autouse=True)
def operator(world: World, address: str, log_in: Callable[..., None], hand: Hand) -> Iterator[None]:
    """Rita may everything here, and is logged in."""
    forget()
    world.rita.is_superuser = True
    world.rita.save()
    log_in()
    yield
    forget()


def said(tab: Page) -> str:
    return str(tab.do("document.querySelector('.messagelist').innerText"))


def test_a_flow_is_held_and_let_go(world: World, address: str, tab: Page, hand: Hand) -> None:
    tab.goto(address + listed("hold"))
    hand.use('.object-tools a[href*="/hold/add/"]')
    hand.write("#id_hold_name", "t-lime")
    hand.write("#id_hold_reason", REASON)
    hand.use(".oa-form button[type=submit]")
    assert "t-lime" in tab.do(
        "document.querySelector('#id_hold_scope_error, #id_hold_name_error, .errornote').closest('section').innerText"
    )
    assert Hold.objects.count() == 0, "a name that is no flow is no hold"
    tab.do("document.querySelector('#id_hold_name').value = ''; 0")
    hand.write("#id_hold_name", "t-line")
    hand.use(".oa-form button[type=submit]")
    assert (Hold.objects.get().name, Hold.objects.get().by_label) == ("t-line", "rita")
    run = Line.start({})
    world.worker.run()
    assert row(run).status == "runnable"
    tab.goto(address + listed("hold"))
    hand.use("#result_list tbody th a")
    tab.shoot("operating-held")
    hand.write("#id_lift_reason", REASON)
    hand.use(".oa-answer button[type=submit]")
    assert "It is lifted" in said(tab)
    world.worker.run()
    assert row(run).status == "complete"
    assert tab.complaints == []


def test_a_run_is_found_understood_and_ended(world: World, address: str, tab: Page, hand: Hand) -> None:
    runs = [Ask.start({"key": f"k{number}"}, key=f"order-{number}") for number in range(3)]
    Line.start({})
    world.worker.run()
    tab.goto(address + listed("workflow"))
    hand.use(".oa-chips a.oa-chip-waiting, .oa-chips a[href*='status=waiting']")
    assert tab.do("document.querySelectorAll('#result_list tbody tr').length") == len(runs)
    hand.write("#searchbar", "order-1")
    hand.use("#changelist-search [type=submit]")
    assert tab.do("document.querySelectorAll('#result_list tbody tr').length") == 1
    hand.use("#result_list tbody th a")
    why = tab.do("document.querySelector('#oa-why').closest('section').innerText")
    assert "WAITING" in why
    assert "t.asked" in why, "what it waits for"
    hand.use("#oa-cancel > summary", loads=False)
    hand.write("#id_cancel_reason", REASON)
    hand.use("#oa-cancel button[type=submit]")
    assert [row(run).status for run in runs] == ["waiting", "cancelled", "waiting"]
    tab.shoot("operating-cancelled")
    assert REASON in tab.do("document.body.innerText"), "the timeline says why"
    assert tab.complaints == []


def test_one_thing_is_done_to_all_that_the_list_shows(world: World, address: str, tab: Page, hand: Hand) -> None:
    runs = [Ask.start({"key": f"k{number}"}) for number in range(3)]
    world.worker.run()
    tab.goto(address + listed("workflow"))
    hand.use(".oa-chips a[href*='status=waiting']")
    hand.use(".oa-chips a[href*='/bulk/add/']")
    assert "3 runs of the list" in tab.do("document.querySelector('.oa-answer').innerText")
    hand.choose("#id_bulk_verb", "pause")
    hand.write("#id_bulk_reason", REASON)
    hand.use(".oa-answer button[type=submit]")
    assert "3 runs are worked off now" in said(tab)
    world.worker.tick()
    world.worker.run()
    tab.goto(address + reverse("admin:outlast_flows_bulk_change", args=[Bulk.objects.get().pk]))
    tab.shoot("operating-bulk")
    assert "3 of 3 are done" in tab.do("document.body.innerText")
    assert {row(run).status for run in runs} == {"paused"}
    assert tab.complaints == []


def test_an_orphan_is_shown_and_repaired(world: World, address: str, tab: Page, hand: Hand) -> None:
    run = Ask.start({"key": "k"})
    world.worker.run()
    damage("DELETE FROM outlast_timer WHERE workflow_id = %(id)s", id=run.id)
    scanning.scan(repair=False)
    tab.goto(address + listed("finding"))
    hand.use("#result_list tbody th a")
    tab.shoot("operating-orphan")
    hand.write("#id_orphan_reason", REASON)
    hand.use(".oa-answer button[type=submit]")
    found = Finding.objects.get()
    assert (found.status, found.kind, found.by_label, found.reason) == ("repaired", "timer_lost", "rita", REASON)
    assert scanning.scan(repair=False)
    assert Finding.objects.filter(status="open").count() == 0
    assert tab.complaints == []


def test_what_became_of_an_effect_is_said(world: World, address: str, tab: Page, hand: Hand) -> None:
    doubting.forget()
    kept = doubting.in_doubt(world.worker, key="order-1")
    tab.goto(address + listed("operation") + "?queue=doubt")
    hand.use("#result_list tbody th a")
    tab.shoot("operating-doubt")
    hand.mark('input[name="verdict"][value="happened"]')
    hand.write("#id_evidence", '"payment 4711 at the bank"')
    hand.write("#id_reason", REASON)
    hand.use(".oa-answer button[type=submit]")
    kept.refresh_from_db()
    assert kept.status == "succeeded"
    world.worker.run()
    assert Workflow.objects.get(pk=kept.workflow_id).status == "complete"
    assert tab.complaints == []

"""Single pages in a real browser: words without a space on a phone, wide lists, and a run that is led on by keyboard and by a finger."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from tests.factories import Ask, forget, row
from tests.support import axe, doubting
from tests.support.approving import World
from tests.support.browser import Page
from tests.support.doubting import HoldThenPay, PayProbed, Unknown, in_doubt, probe_says
from tests.support.scene import EVIL, Scene


@pytest.mark.req("F7")
def test_it_works_on_a_phone(world: World, address: str, tab: Page, log_in: Callable[..., None]) -> None:
    long = "a-word-without-any-space-" * 20
    request = world.ask({"text": long, "files": [long], "patch": f"--- {long}\n+++ b"}, key=long[:200], goal=long)
    tab.screen(390, 844, phone=True)
    log_in()
    tab.goto(address + reverse("admin:outlast_approvals_request_changelist"))
    tab.shoot("phone-inbox")
    assert tab.do("document.documentElement.scrollWidth <= innerWidth"), "the list does not make the page scroll sideways"
    tab.tap(f'a[href$="/{request.pk}/decide/"]')
    tab.shoot("phone-decide")
    assert tab.do("document.documentElement.scrollWidth <= innerWidth")
    sizes = tab.do("[...document.querySelectorAll('.oa-button')].map(b => b.getBoundingClientRect().height)")
    assert len(sizes) == 3
    assert min(sizes) >= 44, "a finger hits the buttons"
    assert tab.do("document.querySelector('#id_comment').getBoundingClientRect().width") > 250
    tab.tap('button[value="approve"]')
    assert world.status(request) == "approved"
    tab.goto(address + reverse("admin:outlast_flows_workflow_change", args=[request.workflow_id]))
    tab.shoot("phone-workflow")
    assert tab.do("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.req("F7")
@pytest.mark.parametrize("query", ["", "?queue=pending", "?queue=answered", "?queue=all"])
def test_no_column_of_the_inbox_is_cut_on_a_usual_screen(filled: Scene, address: str, tab: Page, query: str) -> None:
    tab.screen(1280, 900)
    filled.enter(tab, address)
    tab.goto(address + reverse("admin:outlast_approvals_request_changelist") + query)
    assert tab.do("document.querySelectorAll('#result_list tbody tr').length") > 0
    wide = "[...document.querySelectorAll('#changelist .results')].every(t => t.scrollWidth <= t.clientWidth)"
    assert tab.do(wide), (query, tab.do("document.querySelector('#result_list').scrollWidth"))


@pytest.mark.req("B5", "J1")
def test_what_is_owed_is_listed_by_name_and_nothing_is_cut_on_a_plain_screen(
    world: World, address: str, tab: Page, log_in: Callable[..., None]
) -> None:
    forget()
    doubting.forget()
    world.rita.is_superuser = True
    world.rita.save()
    probe_says.append(Unknown("The provider has been busy since this morning, and asks to be asked later"))
    kept = [
        in_doubt(world.worker, PayProbed, key="order-2026-11-30-customer-004711"),
        in_doubt(world.worker, key="a-key-without-any-space-" * 8),
    ]
    HoldThenPay.start({}, key="release-of-the-website-2026-11")
    world.worker.run()
    tab.screen(1400, 900)
    log_in()
    for name, query in (("operation", "?queue=all"), ("operation", "?queue=doubt"), ("operation", ""), ("commitment", "")):
        tab.goto(address + reverse(f"admin:outlast_flows_{name}_changelist") + query)
        tab.shoot(f"list-{name}{query.replace('?queue=', '-')}")
        assert tab.do("document.querySelectorAll('#result_list tbody tr').length") > 0
        assert tab.do("document.documentElement.scrollWidth <= innerWidth"), name
        wide = "[...document.querySelectorAll('#changelist .results')].every(t => t.scrollWidth <= t.clientWidth)"
        assert tab.do(wide), (name, tab.do("document.querySelector('#result_list').scrollWidth"))
    assert "t-doubt-holding release-of-the-website-2026-11" in tab.do("document.querySelector('#result_list').innerText")
    tab.goto(address + reverse("admin:outlast_flows_operation_changelist") + "?queue=doubt")
    text = tab.do("document.querySelector('#result_list').innerText")
    assert "t-doubt-probed order-2026-11-30-customer-004711" in text
    assert str(kept[0].workflow_id) not in text
    forget()
    doubting.forget()


@pytest.mark.req("Q3")
def test_a_run_is_led_on_by_keyboard_alone_and_by_a_finger(
    world: World, address: str, tab: Page, log_in: Callable[..., None]
) -> None:
    forget()
    world.rita.user_permissions.add(Permission.objects.get(codename="operate_workflow"))
    runs = [Ask.start({"key": EVIL}, key=f"{EVIL} {number}", goal=EVIL) for number in range(2)]
    world.worker.run()
    tab.screen(1280, 900)
    log_in()
    target = address + reverse("admin:outlast_flows_workflow_change", args=[runs[0].id])
    tab.goto(target)
    tab.tab_to("#oa-pause > summary")
    assert tab.do("getComputedStyle(document.activeElement).outlineStyle") != "none", "the focus can be seen"
    tab.press("Enter")
    assert tab.do("document.querySelector('#oa-pause').open")
    tab.press("Tab")
    assert tab.do("document.activeElement.id") == "id_pause_reason"
    tab.press("Tab")
    tab.press("Enter", loads=True)
    assert "Say why" in tab.do("document.getElementById('id_pause_reason_error').innerText")
    assert tab.do("document.title").startswith("Error:")
    assert row(runs[0]).status == "waiting"
    tab.shoot("pause-refused")
    tab.tab_to("#id_pause_reason")
    tab.type(EVIL)
    tab.press("Tab")
    tab.press("Space", loads=True)
    assert row(runs[0]).status == "paused"
    assert "its status is paused" in tab.do("document.querySelector('.messagelist').innerText")
    assert tab.do("document.title !== 'owned'")
    tab.do("document.querySelector('.oa-ways a[href=\"#oa-resume\"]').focus()")
    tab.press("Enter")
    assert tab.do("location.hash") == "#oa-resume"
    assert tab.complaints == []
    tab.dark(on=True)
    tab.goto(target)
    tab.shoot("dark-paused")
    assert axe.violations(tab) == []
    tab.dark(on=False)
    tab.screen(390, 844, phone=True)
    tab.goto(address + reverse("admin:outlast_flows_workflow_change", args=[runs[1].id]))
    tab.do("document.querySelector('#oa-cancel').open = true")
    tab.shoot("phone-cancel")
    assert tab.do("document.documentElement.scrollWidth <= innerWidth")
    assert (
        min(tab.do("[...document.querySelectorAll('.oa-button')].map(b => b.getBoundingClientRect().height).filter(h => h)"))
        >= 44
    )
    tab.do("document.querySelector('#id_cancel_reason').focus()")
    tab.type("Not wanted any more.")
    tab.tap("#oa-cancel button[type=submit]")
    assert row(runs[1]).status == "cancelled"
    forget()

"""The budgets' pages, through HTTP: how each ledger stands, and that only a permitted POST with a reason allows more."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from flows import COMPLETE, Budget, Decision, End, Kept, Visits, budgets
from flows.models import Budget as Ledger
from tests import factories
from tests.factories import row
from tests.support.approving import PASSWORD, World
from tests.support.budgeting import intent_of, ledger, think

pytestmark = pytest.mark.req("N1")

EVIL = "<script>alert(1)</script>\u202e"
LIST = "admin:outlast_flows_budget_changelist"


def client_of(name: str, **options: Any) -> Client:
    client = Client(**options)
    assert client.login(username=name, password=PASSWORD)
    return client


@pytest.fixture
def run(world: World) -> Any:
    """A run whose budget of calls is used up. Rita may raise it; Vera may look; Otto may do neither."""
    factories.forget()
    world.rita.user_permissions.add(Permission.objects.get(codename="raise_budget"))
    world.otto.user_permissions.clear()
    with factories.declaring(world.worker) as declare:
        flow = declare(
            "t-page",
            meta={"budget": Budget(model_calls=4, kept=Kept(model_calls=1))},
            think=Decision(think, choices={"go": "think", "stop": "done"}, visits=Visits(30, then="done")),
            done=End(COMPLETE),
        )
        started = flow.start({}, key=EVIL)
        world.worker.run()
        assert row(started).error_code == "BUDGET_EXHAUSTED"
        yield started


def url(run: Any) -> str:
    return reverse("admin:outlast_flows_budget_change", args=[ledger(run).pk])


def said(response: Any) -> str:
    return " ".join(str(message) for message in response.context["messages"])


def test_the_list_says_how_each_stands(run: Any) -> None:
    budgets.limit(run, cost="5.00", reason=EVIL)
    shown = client_of("vera").get(reverse(LIST)).content.decode()
    assert "75 % spent, 0 % reserved, 25 % kept" in shown
    assert "<script>alert(1)" not in shown
    assert "U+202E" in shown
    assert ' style="' not in shown.split('id="result_list"')[1].split("</table>")[0]
    used = client_of("vera").get(reverse(LIST), {"state": "used_up"}).context["cl"].result_list
    assert [one.kind for one in used] == ["model_calls"]
    assert [one.kind for one in client_of("vera").get(reverse(LIST), {"kind": "cost"}).context["cl"].result_list] == ["cost"]
    found = client_of("vera").get(reverse(LIST), {"q": str(run.id)}).context["cl"].result_list
    assert {one.kind for one in found} == {"model_calls", "cost"}, "a new intent has the id of its first run"
    assert not client_of("vera").get(reverse(LIST), {"q": "nonsense"}).context["cl"].result_list


def test_a_page_shows_the_entries_and_who_may_raise_a_form(run: Any) -> None:
    shown = client_of("vera").get(url(run)).content.decode()
    assert shown.count("<td>reserved</td>") == shown.count("<td>settled</td>") == 3
    assert "Raise the limit" not in shown
    assert "somebody with the permission outlast_flows.raise_budget" in shown
    assert "model_calls: 3 of 4" in shown
    response = client_of("rita").get(url(run))
    assert "Raise the limit" in response.content.decode()
    assert "somebody with the permission" not in response.content.decode()
    assert response.headers["Cache-Control"].startswith("no-store")
    assert client_of("otto").get(url(run)).status_code == 403
    assert client_of("rita").get(reverse("admin:outlast_flows_budget_change", args=["x"])).status_code == 404


def test_a_raise_lets_the_run_go_on(run: Any, world: World) -> None:
    response = client_of("rita").post(url(run), {"to": "6", "reason": EVIL}, follow=True)
    assert said(response) == "The limit is 6 now; 1 run goes on."
    assert "<script>alert(1)" not in response.content.decode()
    assert row(run).status == "runnable"
    assert (ledger(run).allowance, LogEntry.objects.get().get_change_message()) == (6, "Limit raised.")
    again = client_of("rita").post(url(run), {"to": "6", "reason": "x"})
    assert "The limit of model_calls is 6 already" in again.content.decode(), "sent twice, it is the same"
    world.worker.run()
    assert ledger(run).spent == 5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"to": "", "reason": "x"}, "Say up to what."),
        ({"to": "6", "reason": " "}, "Say why: the reason is part of the record."),
        ({"to": "many", "reason": "x"}, "which is no number"),
        ({"to": "3", "reason": "x"}, "The limit of model_calls is 4 already"),
    ],
)
def test_what_is_no_raise_changes_nothing_and_says_why(run: Any, given: dict[str, str], message: str) -> None:
    response = client_of("rita").post(url(run), given)
    assert response.status_code == 200
    assert message in response.content.decode().replace("&#x27;", "'")
    assert (ledger(run).allowance, row(run).status) == (4, "waiting")


def test_only_a_permitted_post_raises(run: Any) -> None:
    given = {"to": "9", "reason": "x"}
    assert client_of("vera").post(url(run), given).status_code == 403
    assert client_of("otto").post(url(run), given).status_code == 403
    assert Client().post(url(run), given).status_code == 302
    assert client_of("rita", enforce_csrf_checks=True).post(url(run), given).status_code == 403
    assert client_of("rita").put(url(run)).status_code == 405
    assert ledger(run).allowance == 4


def test_a_limit_of_an_intent_is_raised_on_its_page(run: Any) -> None:
    budgets.limit(run, model_calls=3)
    response = client_of("rita").post(url(intent_of(run)), {"to": "9", "reason": "x"}, follow=True)
    assert said(response).startswith(
        f"The limit is 9 now; 0 runs go on. {run.id} still lacks: the workflow's budget of model_calls"
    )
    assert (ledger(intent_of(run)).allowance, Ledger.objects.count()) == (9, 2)


def test_who_may_raise_may_look(run: Any, world: World) -> None:
    world.otto.user_permissions.add(Permission.objects.get(codename="raise_budget"))
    world.otto.is_staff = True
    world.otto.save()
    assert client_of("otto").get(url(run)).status_code == 200
    assert client_of("otto").get(reverse(LIST)).status_code == 200

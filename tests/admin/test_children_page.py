"""Children on a workflow's page: counted, the first that went wrong, a page at a time; and the way to the run that started it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

import flows
from flows import COMPLETE, End, Flow, Parallel
from flows.admin import children as page_of_children
from flows.models import Branch
from tests import factories
from tests.support.approving import PASSWORD, World
from tests.support.branching import DAY, Leaf, acts, children, failing, fan, keys, mapping, over_slow, settle
from tests.support.continuing import chain, chaining

pytestmark = pytest.mark.req("O1", "G4")

Declare = Callable[..., type[Flow]]
EVIL = "<script>alert(1)</script>"


def page(run: Any, query: str = "", user: str = "vera") -> str:
    client = Client()
    assert client.login(username=user, password=PASSWORD)
    response = client.get(reverse("admin:outlast_flows_workflow_change", args=[getattr(run, "pk", run.id)]) + query)
    assert response.status_code == 200
    return response.content.decode()


def link_to(run: Any) -> str:
    return f'href="{reverse("admin:outlast_flows_workflow_change", args=[run.pk])}"'


@pytest.fixture
def declare(world: World) -> Any:
    acts.clear()
    with factories.declaring(world.worker) as found:
        yield found
    factories.forget()


def test_children_are_counted_and_the_first_that_went_wrong_is_named(
    world: World, declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_of_children, "ROWS", 2)
    acts["b"] = failing
    run = mapping(declare, tolerate=1).start({"items": list("abcde")})
    settle(world.worker)
    kids, group = children(run), fan(run).pk
    shown = page(run)
    assert '<progress max="5" value="5"' in shown
    assert "5 of 5" in shown
    assert shown.count(link_to(kids[1])) == 2, "in the list, and as the first that went wrong"
    assert "RETRIES_EXHAUSTED:UNCLASSIFIED_ERROR" in shown
    assert link_to(kids[2]) not in shown
    assert f'href="?fan={group}&amp;after=2#oa-children-list"' in shown
    second = page(run, f"?fan={group}&after=2")
    assert (link_to(kids[2]) in second, link_to(kids[4]) in second) == (True, False)
    assert link_to(kids[4]) in page(run, f"?fan={group}&after=4")
    for odd in ("?fan=x&after=-1", "?fan=99999999999999999999&after=²", f"?fan={group}&after=99999999999999999999"):
        assert link_to(kids[0]) in page(run, odd)


def test_a_child_leads_to_the_run_that_started_it_and_names_are_no_markup(world: World, declare: Declare) -> None:
    flow = declare(
        "t-several-children", ask=Parallel({EVIL: Leaf}, then="done", failed="done", deadline=DAY), done=End(COMPLETE)
    )  # fmt: skip
    run = flow.start({}, key=EVIL)
    settle(world.worker)
    (kid,) = children(run)
    shown = page(run) + page(kid)
    assert "Started by" in page(kid)
    assert f'href="{reverse("admin:outlast_flows_workflow_change", args=[run.id])}"' in page(kid)
    assert EVIL not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown


def test_what_has_not_begun_is_no_link(world: World, declare: Declare) -> None:
    run = over_slow(declare, concurrency=1).start(keys("a", "b"))
    world.worker.run()
    first = children(run)[0]
    planned = Branch.objects.get(number=2).workflow_id
    shown = page(run)
    assert (link_to(first) in shown, str(planned) in shown) == (True, False)
    assert '<progress max="2" value="0"' in shown
    assert "Relatives of this run" not in shown


def test_a_run_that_goes_on_leads_to_the_next_one_and_back(world: World, declare: Declare) -> None:
    run = chaining(declare).start({"key": "a"})
    world.worker.run()
    flows.signal("e", "t.chain", key="a", payload={})
    world.worker.run()
    first, second = chain(run)
    assert "Goes on as" in page(first)
    assert link_to(second) in page(first)
    assert "Began as" in page(second)
    assert link_to(first) in page(second)

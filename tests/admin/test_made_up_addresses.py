"""Addresses and forms of a list that nobody was given: they find nothing they were not offered, break nothing, and say so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

import flows
from approvals.models import Pool, Request
from flows.admin.read_only import OfferedFilter
from flows.models import Overview
from tests.support.approving import World
from tests.support.browsing import LIST, Forms, client_of, page, said, url_of

pytestmark = pytest.mark.req("F7")

#: The overview is no list: it takes nothing from its address.
OURS = [model for model in admin.site._registry if model._meta.app_label.startswith("outlast") and model is not Overview]
HUGE = "9" * 5000


def list_of(model: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def order(response: Any) -> list[str]:
    """By what a list is sorted, each once."""
    return list(dict.fromkeys(map(str, response.context["cl"].queryset.query.order_by)))


@pytest.fixture
def root(world: World) -> Client:
    flows.signal("e-1", "nobody.waits", key="k", payload={})
    world.ask(goal="Shown")
    Pool.objects.create(name="lawyers")
    return client_of("sue")


@pytest.fixture
def statements() -> Iterator[CaptureQueriesContext]:
    with CaptureQueriesContext(connection) as captured:
        yield captured


@pytest.mark.parametrize("model", OURS, ids=lambda model: model._meta.label_lower)
@pytest.mark.parametrize("lookup", ["{pk}__regex=(", "{pk}=%00", "{pk}__in=x", "{pk}__gte=0", "nothing=1", "{pk}=" + "9" * 30])
def test_no_list_is_narrowed_by_what_it_does_not_offer(root: Client, model: Any, lookup: str) -> None:
    url = f"{list_of(model)}?{lookup.format(pk=model._meta.pk.name)}"
    response = root.get(url, follow=True)
    assert response.redirect_chain == [(f"{list_of(model)}?e=1", 302)]
    assert response.status_code == 200
    assert "This list cannot be narrowed by" in said(response)


@pytest.mark.parametrize(
    "lookup",
    [
        "candidate__icontains=secret",
        "candidate__value__text=Hello.",
        "candidate__regex=(",
        "requester__password__startswith=pbkdf2",
        "workflow__user__password__startswith=pbkdf2_sha",
        "intent__goal__startswith=Sesame",
        "requester_label=robin",
        "audiences=garbage",
        "expires_at__gte=garbage",
        "workflow__input__icontains=xyzzy",
        "_to_field=candidate&_popup=1",
        "_to_field=id&_popup=1",
    ],
)
def test_nobody_searches_through_candidates_or_passwords_by_an_address(
    root: Client, statements: CaptureQueriesContext, lookup: str
) -> None:
    assert root.get(f"{reverse(LIST)}?{lookup}").status_code in (200, 302, 400)
    asked = lookup.partition("=")[2]
    assert not [one["sql"] for one in statements.captured_queries if f"'{asked}" in one["sql"] or f"%{asked}" in one["sql"]]


@pytest.mark.parametrize("model", OURS, ids=lambda model: model._meta.label_lower)
@pytest.mark.parametrize(
    "query", ["p=0", "p=-1", "p=x", f"p={HUGE}", "all=", "all=1&p=7", "o=1.-2.99.x", "_facets=1", "q=%00", "e=1"]
)
def test_pages_and_orders_that_there_are_not(root: Client, model: Any, query: str) -> None:
    response = root.get(f"{list_of(model)}?{query}", follow=True)
    assert response.status_code == 200
    assert response.context["cl"] is not None


@pytest.mark.parametrize("model", [one for one in OURS if one is not Pool], ids=lambda model: model._meta.label_lower)
def test_a_list_is_sorted_only_as_it_offers(root: Client, model: Any) -> None:
    usual = order(root.get(list_of(model)))
    for number in range(12):
        assert order(root.get(f"{list_of(model)}?o=-{number}")) == usual, number


@pytest.mark.parametrize("model", OURS, ids=lambda model: model._meta.label_lower)
def test_every_default_of_a_filter_has_an_address(root: Client, model: Any) -> None:
    """A theme offers what an address can say, so a default without one would have no name there."""
    shown = root.get(list_of(model)).context["cl"]
    for spec in shown.filter_specs:
        chosen = [one for one in spec.choices(shown) if one["selected"]]
        assert len(chosen) == 1, spec.title
        if isinstance(spec, OfferedFilter) and spec.default is not None:
            assert chosen[0]["query_string"] == f"?{spec.parameter_name}={spec.default[0]}"
            again = root.get(list_of(model) + chosen[0]["query_string"]).context["cl"]
            assert list(again.queryset.values_list("pk")) == list(shown.queryset.values_list("pk"))


@pytest.mark.parametrize("ticked", ["x", "", "-1", "1.5", HUGE, "9" * 30, "\x00", "'; DROP TABLE", "2 OR 1=1"])
@pytest.mark.parametrize("name", ["request", "operation", "pool"])
def test_what_is_ticked_is_of_the_list(root: Client, name: str, ticked: str) -> None:
    app = "outlast_flows" if name == "operation" else "outlast_approvals"
    action = {"request": "deny_selected", "operation": "resolve_selected", "pool": "delete_selected"}[name]
    url = reverse(f"admin:{app}_{name}_changelist")
    response = root.post(url, {"action": action, "_selected_action": [ticked], "index": "0", "post": "yes"}, follow=True)
    assert response.status_code == 200
    assert Pool.objects.count() == 1


def test_what_is_ticked_is_of_the_queue_that_is_shown(world: World) -> None:
    """A row that is not listed for this user cannot be slipped in."""
    own, other = world.ask(by=world.rita), world.ask(goal="Listed")
    client = client_of("rita")
    shown = client.post(reverse(LIST), {"action": "deny_selected", "_selected_action": [own.pk, other.pk]})
    assert [item["row"].pk for item in shown.context["items"]] == [other.pk]


def test_five_thousand_ticks_are_refused_and_change_nothing(world: World) -> None:
    request = world.ask()
    many = {"action": "deny_selected", "_selected_action": list(range(request.pk, request.pk + 5000))}
    assert client_of("rita").post(reverse(LIST), many).status_code == 400
    assert world.status(request) == "pending"


@pytest.mark.parametrize("number", [HUGE, "9" * 4000, "9" * 19, "٣", "²", "0x1", "1_0"])
def test_a_number_that_is_none_of_a_row(world: World, number: str) -> None:
    client = client_of("sue")
    request = world.ask()
    for what in ("request", "delegation", "pool", "notice"):
        assert client.get(f"/admin/outlast_approvals/{what}/{number}/change/", follow=True).status_code in (200, 404), what
        assert client.get(f"/admin/outlast_approvals/{what}/{number}/history/", follow=True).status_code in (200, 404), what
    for what in ("decide", "assign", "claim"):
        assert client.get(f"/admin/outlast_approvals/request/{number}/{what}/", follow=True).status_code in (200, 404, 405), what
    assert page(client, url_of(request), since=number)


def test_who_may_not_view_learns_of_no_request(world: World) -> None:
    request = world.ask()
    world.vera.user_permissions.clear()
    client = client_of("vera")
    of_wait = reverse("admin:outlast_approvals_request_of_wait", args=[request.wait_id])
    assert client.get(of_wait).status_code == 403
    assert client.get(reverse(LIST)).status_code == 403
    history = reverse("admin:outlast_approvals_request_history", args=[request.pk])
    assert client.get(history).status_code == 403


def test_numbers_are_written_for_machines_where_machines_read_them(world: World, settings: Any) -> None:
    """Where a project groups digits, an id of a million is still an id."""
    settings.USE_THOUSAND_SEPARATOR = True
    with connection.cursor() as cursor:
        for table in ("outlast_approval_request", "outlast_delegation", "outlast_approval_notice"):
            cursor.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), 1234567, false)")
    request = world.ask({"text": "one"}, {"text": "two"}, {"text": "three"})
    client = client_of("rita")
    for text in ("Shorter.", "Longer."):
        sent = Forms(page(client, url_of(request))).values
        given = {name: sent[name] for name in ("digest", "step", "delegation")}
        client.post(url_of(request), {**given, "verdict": "changes", "comment": text})
        world.worker.run()
        request = world.request_of(request.workflow)
    assert request.pk == 1234569
    html = page(client, url_of(request))
    assert 'href="?since=1234567"' in html
    assert "revision 1" in page(client, url_of(request), since="1234567")
    listed = client.get(reverse(LIST), {"queue": "all"})
    assert f'href="{url_of(request)}"' in listed.content.decode()
    assert f'value="{request.pk}"' in listed.content.decode()
    assert Request.objects.get(pk=request.pk).revision == 3

"""The pages of webhooks: who may send is described with a reason, a delivery is mapped anew, and nothing that was sent acts on a page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from flows.models import Event, WebhookDelivery, WebhookRefusal, WebhookSource
from flows.services.webhooks import bodies, refusals, sources
from tests.support import hooking, signing
from tests.support.approving import World
from tests.support.browsing import ESCAPED, EVIL, client_of, page, said, words
from tests.support.hooking import post

pytestmark = pytest.mark.req("E4", "Q3")

SOURCES, DELIVERIES, REFUSALS = (f"admin:outlast_flows_webhook{name}_changelist" for name in ("source", "delivery", "refusal"))
ADD = "admin:outlast_flows_webhooksource_add"
GIVEN = {
    "name": "rows", "scheme": "standard", "options": '{"tolerance": 60}', "secrets": "setting:HOOK_SECRET\nsetting:OLD_SECRET",
    "event_type": "t.asked", "event_key": "body.key", "payload": "", "enabled": "on", "reason": EVIL,
}  # fmt: skip


@pytest.fixture(autouse=True)
def one_of_the_setting(world: World, settings: Any) -> Iterator[None]:
    settings.HOOK_SECRET = signing.SECRET
    by_function = {**hooking.SETTING, "EVENT": "tests.support.hooking.by_function", "KEY": ""}
    settings.OUTLAST = {**settings.OUTLAST, "WEBHOOKS": {hooking.SOURCE: by_function, "broken": {"SCHEME": "none"}}}
    sources.forget()
    refusals.tally = refusals.Tally()
    hooking.broken = False
    yield
    sources.forget()


@pytest.fixture
def manager(world: World) -> Client:
    """Vera, who may look, with one more right."""
    world.vera.user_permissions.add(Permission.objects.get(codename="manage_webhooks"))
    return client_of("vera")


def change(row: Any) -> str:
    return reverse(f"admin:outlast_flows_{row._meta.model_name}_change", args=[row.pk])


# ------------------------------------------------------------------ sources


def test_a_source_is_described_and_described_anew(manager: Client) -> None:
    assert "Where they are, a line each" in page(manager, reverse(ADD))
    done = manager.post(reverse(ADD), GIVEN, follow=True)
    row = WebhookSource.objects.get()
    assert done.redirect_chain == [(change(row), 302)]
    assert "rows is described so now" in said(done)
    assert ESCAPED in done.content.decode()
    assert "<script>alert(1)" not in done.content.decode()
    assert (row.options, row.secrets, row.by_label) == ({"tolerance": 60}, ["setting:HOOK_SECRET", "setting:OLD_SECRET"], "vera")
    assert post({"key": "k"}, name="rows").status_code == 202
    form = done.context["decide_form"]
    assert (form["seen"].value(), form["secrets"].value()) == (1, "setting:HOOK_SECRET\nsetting:OLD_SECRET")

    anew = {**GIVEN, "seen": 1, "enabled": "", "reason": "Enough"}
    assert "rows is described so now" in said(manager.post(change(row), anew, follow=True))
    assert post({"key": "k"}, name="rows").status_code == 404
    stale = manager.post(change(row), {**anew, "event_type": "other"}).content.decode()
    assert "has version 2 by now, not 1" in stale
    assert "described so already" in said(manager.post(change(row), {**anew, "seen": 2}, follow=True))
    assert [one.get_change_message() for one in LogEntry.objects.order_by("pk")] == [
        f"Described, version 1: {EVIL}",
        "Described, version 2: Enough",
    ]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"reason": " "}, "Say why"),
        ({"name": "A B"}, "1 to 60 small letters"),
        ({"name": "ci"}, "which wins"),
        ({"scheme": "gitlab"}, "not one of the available choices"),
        ({"options": "{"}, "This is not JSON"),
        ({"options": "[1]"}, "the options are an object"),
        ({"secrets": "whsec_AAAA"}, "it does not stand there itself"),
        ({"secrets": ""}, "Say where the secret is"),
        ({"event_type": "os.system", "event_key": ""}, "This field is required"),
        ({"event_key": "id"}, "no path in it"),
    ],
)
def test_a_source_that_cannot_be_is_refused_and_says_why(manager: Client, changed: dict[str, str], told: str) -> None:
    response = manager.post(reverse(ADD), {**GIVEN, **changed})
    assert response.status_code == 200
    assert told in words(response.content.decode())
    assert "<title>Error:" in response.content.decode()
    assert not WebhookSource.objects.exists()


def test_who_may_look_may_not_describe(world: World, manager: Client) -> None:
    manager.post(reverse(ADD), GIVEN)
    row = WebhookSource.objects.get()
    world.vera.user_permissions.remove(Permission.objects.get(codename="manage_webhooks"))
    viewer = client_of("vera")
    assert "How it is described" not in page(viewer, change(row))
    assert viewer.get(reverse(ADD)).status_code == 403
    assert viewer.post(reverse(ADD), GIVEN).status_code == 403
    assert viewer.post(change(row), {**GIVEN, "seen": 1}).status_code == 403
    assert manager.put(change(row)).status_code in (403, 405)


def test_the_sources_of_the_setting_are_shown_and_not_changed(manager: Client, settings: Any) -> None:
    listed = words(page(manager, reverse(SOURCES)))
    assert "ci standard enabled 1 of 1" in listed
    assert "broken – cannot be – there is no scheme" in listed
    assert signing.SECRET not in page(manager, reverse(SOURCES))
    manager.post(reverse(ADD), GIVEN)
    row = WebhookSource.objects.get()
    settings.OUTLAST = {**settings.OUTLAST, "WEBHOOKS": {"rows": hooking.SETTING}}
    shown = page(manager, change(row))
    assert "the setting wins" in shown
    assert "How it is described" not in shown


# ------------------------------------------------------------------ deliveries


def unmapped(body: Any, **headers: str) -> WebhookDelivery:
    hooking.broken = True
    assert post(body, **headers).status_code == 202
    hooking.broken = False
    return WebhookDelivery.objects.get()


def test_what_was_sent_is_shown_as_data(manager: Client) -> None:
    row = unmapped({"key": "k", "said": EVIL, "raw": "x" * 30_000}, user_agent="<script>alert(1)</script>")
    WebhookDelivery.objects.update(delivery_id=EVIL)
    for shown in (page(manager, reverse(DELIVERIES)), page(manager, change(row))):
        assert "<script>alert(1)" not in shown
        assert ESCAPED in shown
    assert "bytes in all" in shown
    WebhookDelivery.objects.update(body=bodies.packed(b"\xff\xfe\x00"))
    assert r"\xff\xfe" in page(manager, change(row))
    WebhookDelivery.objects.update(body=bodies.SEALED + b'{"$outlast": "gone", "data": ""}')
    assert "was written by the codec" in words(page(manager, change(row)))


def test_a_delivery_is_mapped_anew_with_a_reason(manager: Client) -> None:
    row = unmapped({"key": "k"})
    assert "Map it anew" in page(manager, change(row))
    assert "Say why" in words(manager.post(change(row), {"reason": ""}).content.decode())
    done = manager.post(change(row), {"reason": "The mapping is mended"}, follow=True)
    assert "It is accepted: event ci:d-1." in said(done)
    assert "It is in the inbox." in done.content.decode()
    assert "vera" in words(done.content.decode())
    assert Event.objects.get().event_id == "ci:d-1"
    assert "Map it anew" not in page(manager, change(row))
    assert "It was mapped already (accepted)" in said(manager.post(change(row), {"reason": "again"}, follow=True))
    assert LogEntry.objects.get().get_change_message() == "Mapped anew: accepted, ci:d-1"


def test_a_delivery_that_is_still_unmapped_is_said_to_be(manager: Client) -> None:
    row = unmapped({"key": 5.5})
    assert "Nothing could be made of it still: payload." in said(manager.post(change(row), {"reason": "try"}, follow=True))
    assert not LogEntry.objects.exists()
    WebhookDelivery.objects.update(source="gone")
    assert "is gone" in words(manager.post(change(row), {"reason": "try"}).content.decode())


def test_who_may_look_maps_nothing(world: World) -> None:
    row = unmapped({"key": "k"})
    viewer = client_of("vera")
    assert "Map it anew" not in page(viewer, change(row))
    assert viewer.post(change(row), {"reason": "try"}).status_code == 403


def test_deliveries_are_found_by_source_and_id_and_by_verdict(manager: Client) -> None:
    post({"key": "k"}, sent_id="one")
    post({"other": "k"}, sent_id="two")

    def found(**query: str) -> list[str]:
        return [one.delivery_id for one in manager.get(reverse(DELIVERIES), query).context["cl"].result_list]

    assert found(q="ci:one") == ["one"]
    assert found(q="one") == found(q="other:one") == found(q="ci:o") == []
    assert found(verdict="ignored") == ["two"]
    assert found() == ["two", "one"]


# ------------------------------------------------------------------ refusals


def test_sums_of_what_was_refused_are_listed(manager: Client) -> None:
    post({"key": "k"}, webhook_signature="")
    post({"key": "k"}, name="nobody", webhook_signature="")
    refusals.tally.write("default", now=True)
    listed = words(page(manager, reverse(REFUSALS)))
    assert "ci no_signature" in listed
    assert json.dumps(sorted(WebhookRefusal.objects.values_list("source", "count"))) == '[["", 1], ["ci", 1]]'

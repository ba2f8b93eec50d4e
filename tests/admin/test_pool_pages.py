"""Pools in the admin: an ordinary page, logged by Django, whose name stays."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from approvals.admin import pools
from approvals.models import Pool
from tests.support.approving import World
from tests.support.browsing import EVIL, client_of, page, words

pytestmark = pytest.mark.req("F5", "F7")

ADD, LIST = "admin:outlast_approvals_pool_add", "admin:outlast_approvals_pool_changelist"


def change(pool: Pool) -> str:
    return reverse("admin:outlast_approvals_pool_change", args=[pool.pk])


def test_a_pool_is_made_filled_and_emptied_and_django_logs_it(world: World) -> None:
    client = client_of("sue")
    response = client.post(reverse(ADD), {"name": "lawyers", "note": "Contracts", "members": [world.rita.pk, world.ron.pk]})
    assert response.status_code == 302
    pool = Pool.objects.get()
    assert set(pool.members.all()) == {world.rita, world.ron}
    assert "lawyers 2 Contracts" in words(page(client, reverse(LIST)))
    client.post(change(pool), {"note": "Contracts", "members": []})
    assert "lawyers nobody: it can answer nothing" in words(page(client, reverse(LIST)))
    assert [entry.action_flag for entry in LogEntry.objects.order_by("pk")] == [1, 2]


def test_the_name_stays_for_flows_call_it_so(world: World) -> None:
    pool = Pool.objects.create(name="lawyers")
    client_of("sue").post(change(pool), {"name": "others", "note": "", "members": []})
    assert Pool.objects.get().name == "lawyers"


def test_a_name_with_characters_that_nobody_sees_is_refused(world: World) -> None:
    client = client_of("sue")
    response = client.post(reverse(ADD), {"name": "law\u200byers", "note": "", "members": []})
    assert "characters in it that cannot be seen: law[U+200B]yers" in response.content.decode()
    assert not Pool.objects.exists()


def test_who_may_not_change_pools_cannot(world: World) -> None:
    pool = Pool.objects.create(name="lawyers")
    client = client_of("rita")
    assert client.get(reverse(ADD)).status_code == 403
    assert client.post(change(pool), {"note": "", "members": [world.rita.pk]}).status_code == 403
    assert not pool.members.exists()
    page(client, change(pool))


def test_what_is_written_there_is_data(world: World) -> None:
    pool = Pool.objects.create(name=EVIL, note=EVIL)
    html = page(client_of("sue"), reverse(LIST))
    assert "<script>alert" not in html
    assert "\u202e" not in html
    assert "U+202E" in html
    assert "<script>alert" not in page(client_of("sue"), change(pool))


def widget(client: Client) -> Any:
    return client.get(reverse(ADD)).context["adminform"].form.fields["members"].widget


def test_many_users_are_looked_for_by_name(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    client = client_of("sue")
    assert "FilteredSelectMultiple" in type(widget(client).widget).__name__
    monkeypatch.setattr(pools, "MAX_LISTED", 2)
    assert "AutocompleteSelectMultiple" in type(widget(client).widget).__name__

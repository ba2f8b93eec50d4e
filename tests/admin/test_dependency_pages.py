"""The pages of what is scarce: how it stands, and what a person says of it, with a reason."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from flows import COMPLETE, Activity, Dependency, End, Flow
from flows.core import declared as declarations
from flows.models import Dependency as Row
from flows.models import Limit
from flows.services.capacity import health
from tests import factories
from tests.support.approving import PASSWORD, World

pytestmark = pytest.mark.req("R1")

EVIL = "node:<script>alert(1)</script>"


class Needing(Flow):
    """Needs something that may be down."""

    class Meta:
        name = "t-needing"

    one = Activity(factories.work, needs="admin-payments", then="done")
    done = End(COMPLETE)


@pytest.fixture(autouse=True)
def things() -> Iterator[None]:
    before = list(declarations.DECLARED)
    Dependency("admin-payments", rate=20, ceiling=3)
    yield
    declarations.DECLARED[:] = before


@pytest.fixture
def client(world: World) -> Client:
    made = Client()
    assert made.login(username="vera", password=PASSWORD)
    return made


def page(client: Client, name: str) -> str:
    return client.get(reverse("admin:outlast_flows_dependency_change", args=[name])).content.decode()


def test_it_says_who_waits_and_takes_what_a_person_says(world: World, client: Client) -> None:
    health.down("admin-payments", reason="maintenance")
    Needing.start({})
    world.worker.run()
    listed = client.get(reverse("admin:outlast_flows_dependency_changelist")).content.decode()
    assert "admin-payments" in listed
    assert "0 s at its full rate" in listed
    shown = page(client, "admin-payments")
    assert "maintenance" in shown
    assert "operate_dependency" in shown, "whoever may only look is told what it needs"
    url = reverse("admin:outlast_flows_dependency_change", args=["admin-payments"])
    assert client.post(url, {"what": "up", "reason": "back"}).status_code == 403
    world.vera.user_permissions.add(Permission.objects.get(codename="operate_dependency"))
    assert "Say why" in client.post(url, {"what": "up"}).content.decode()
    assert client.post(url, {"what": "rate", "rate": "5", "ceiling": "2", "reason": "less"}, follow=True).status_code == 200
    assert "It is Recovering now" in client.post(url, {"what": "up", "reason": "back"}, follow=True).content.decode()
    row = Row.objects.get(name="admin-payments")
    assert (row.status, row.rate, row.ceiling, row.by_label, row.reason) == ("recovering", 5, 2, "vera", "back")


def test_names_are_data(world: World, client: Client) -> None:
    health.make(EVIL, "default")
    listed = client.get(reverse("admin:outlast_flows_dependency_changelist")).content.decode()
    limits = client.get(reverse("admin:outlast_flows_limit_changelist")).content.decode()
    for text in (listed, limits, page(client, EVIL)):
        assert "<script>alert(1)" not in text
        assert "&lt;script&gt;alert(1)" in text
    limit = Limit.objects.get()
    assert client.get(reverse("admin:outlast_flows_limit_change", args=[limit.pk])).status_code == 200
    assert client.get(reverse("admin:outlast_flows_dependency_change", args=["nothing"])).status_code == 404

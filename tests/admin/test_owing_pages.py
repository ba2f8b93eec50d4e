"""The pages of what is held: who sees them, and what is kept until something is undone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

import flows
from flows import commitments
from flows.models import Commitment
from tests.factories import forget
from tests.support import doubting
from tests.support.approving import PASSWORD, World
from tests.support.doubting import HoldThenPay, operation_of, refund_does

pytestmark = pytest.mark.req("J1", "B6")


@pytest.fixture(autouse=True)
def people(world: World) -> Iterator[None]:
    """Rita may resolve operations and see nothing else; Vera may look at everything; Otto may do nothing."""
    forget()
    doubting.forget()
    world.rita.user_permissions.set([Permission.objects.get(codename="resolve_operation")])
    world.otto.user_permissions.clear()
    yield
    forget()
    doubting.forget()


def client_of(name: str) -> Client:
    client = Client()
    assert client.login(username=name, password=PASSWORD)
    return client


def stuck(world: World) -> Any:
    """A cancelled run that holds a room; its refund has failed."""
    refund_does.append(doubting.denied)
    run = HoldThenPay.start({})
    world.worker.run()
    flows.cancel(run)
    world.worker.run()
    return run


def test_who_may_not_view_commitments_sees_none(world: World) -> None:
    stuck(world)
    held = Commitment.objects.get()
    for target in (
        reverse("admin:outlast_flows_commitment_changelist"),
        reverse("admin:outlast_flows_commitment_change", args=[held.pk]),
        reverse("admin:outlast_flows_commitment_history", args=[held.pk]),
    ):
        assert client_of("vera").get(target).status_code == 200
        for stranger in ("otto", "rita"):
            assert client_of(stranger).get(target).status_code == 403, (stranger, target)
        assert Client().get(target).status_code == 302, "nobody gets in without a login"
    world.otto.user_permissions.add(Permission.objects.get(codename="view_commitment"))
    assert client_of("otto").get(reverse("admin:outlast_flows_commitment_changelist")).status_code == 200


def test_what_is_kept_until_something_is_undone_is_said_on_both_pages(world: World) -> None:
    run = stuck(world)
    refund, held = operation_of(run, kind="compensation"), Commitment.objects.get()
    assert (refund.status, held.status) == ("failed", "active")
    operation = reverse("admin:outlast_flows_operation_change", args=[quote(refund.pk)])
    commitment = reverse("admin:outlast_flows_commitment_change", args=[held.pk])
    client = client_of("vera")
    shown = client.get(operation).content.decode()
    assert "Holds back" in shown
    assert commitment in shown
    assert "undoing may need it" in shown
    shown = client.get(commitment).content.decode()
    assert "Release held back until" in shown
    assert operation in shown
    assert "until then it keeps room" in flows.describe(run).decision_needed
    commitments.fulfil(held, by=None, reason="used")
    assert "Holds back" not in client.get(operation).content.decode()
    assert operation not in client.get(commitment).content.decode()


def test_a_live_commitment_says_what_could_not_be_read_of_it(world: World) -> None:
    stuck(world)
    Commitment.objects.update(reason="REFERENCE_FAILED:KeyError")
    target = reverse("admin:outlast_flows_commitment_changelist")
    client = client_of("vera")
    assert "REFERENCE_FAILED:KeyError" in client.get(target).content.decode()
    commitments.fulfil(Commitment.objects.get(), by=None, reason="used")
    assert "closed" in client.get(target, {"status": "all"}).content.decode()

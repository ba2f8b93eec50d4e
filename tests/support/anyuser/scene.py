"""What reviewers do in the admin, by accounts of another model. Every page must open, and every act name the account."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from approvals import api
from approvals.models import Delegation, Notice, Pool, Request, Review
from flows.services import notices
from flows.services.clock import now
from flows.testing import local_worker, movable_clock
from tests.support.approving import World, make_people
from tests.support.browsing import LIST, Forms, permit, url_of
from tests.support.filling import OrderParts

FILLED = {"title": "Bolts", "count": "12", "price": "4.50", "urgent": "yes", "size": "l", "wanted_by": "", "note": ""}


def play() -> None:
    """All of it.

    Raises:
        AssertionError: something does not work with such accounts.
    """
    people = make_people()
    assert type(people["rita"].pk).__name__ == "UUID"
    with movable_clock() as clock, local_worker() as worker:
        world = World(worker, clock, **people)
        permit(world.rita, "assign_request", "delegate_own", "delegate_any", "revoke_request")
        answers(world)
        several(world)
        stands_in(world)
        pools(world)
        everybody_is_told(world)
        they_go(world)


def client_of(user: Any) -> Client:
    client = Client(raise_request_exception=True)
    client.force_login(user)
    return client


def opened(client: Client, url: str) -> str:
    response = client.get(url)
    assert response.status_code == 200, (url, response.status_code)
    return str(response.content.decode())


def sent(client: Client, request: Request, **more: Any) -> Any:
    held = Forms(opened(client, url_of(request))).values
    given = {name: held[name] for name in ("digest", "step", "delegation")}
    response = client.post(url_of(request), {**given, **more}, follow=True)
    assert response.status_code == 200
    return response


def answers(world: World) -> None:
    request, form = world.ask(), world.ask(flow=OrderParts)
    client = client_of(world.rita)
    assert url_of(request) in opened(client, reverse(LIST))
    assert "2 approval requests wait for you." in opened(client, reverse("admin:index"))
    client.post(url_of(request, "claim"))
    assert Request.objects.get(pk=request.pk).claimed_by == world.rita
    assert f'value="{world.ron.pk}"' in opened(client, url_of(request, "assign"))
    client.post(url_of(request, "assign"), {"to": str(world.ron.pk)})
    assert Request.objects.get(pk=request.pk).claimed_by == world.ron
    client.post(url_of(request, "release"))
    sent(client, request, verdict="approve")
    client.post(url_of(request, "revoke"), {"reason": "Too early."})
    assert world.status(request) == "revoked"
    sent(client, form, **{f"field-{name}": value for name, value in FILLED.items()})
    assert world.status(form) == "answered"
    world.worker.run()
    assert {(one.by, one.by_label) for one in Review.objects.all()} == {(world.rita, "rita")}
    opened(client, reverse("admin:outlast_approvals_request_history", args=[request.pk]))


def several(world: World) -> None:
    requests = [world.ask() for _ in range(3)]
    client = client_of(world.rita)
    for verb, given in (("assign", {"to": str(world.ron.pk)}), ("deny", {"comment": "No."})):
        chosen = {"action": f"{verb}_selected", "_selected_action": [request.pk for request in requests]}
        shown = client.post(reverse(LIST), chosen)
        frozen = Forms(shown.content.decode()).values["selection"]
        together = reverse("admin:outlast_approvals_request_together", args=[verb])
        assert "3 done, 0 refused" in client.post(together, {"selection": frozen, **given}, follow=True).content.decode()
    world.worker.run()


def stands_in(world: World) -> None:
    client, dora = client_of(world.rita), get_user_model().objects.create_user("dora", "x", is_staff=True)  # type: ignore[attr-defined]
    permit(dora, "answer_request")
    add = reverse("admin:outlast_approvals_delegation_add")
    assert '<option value="dora">' in opened(client, add)
    until = timezone.localtime(now("default") + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M")
    assert client.post(add, {"giver": "rita", "to": "dora", "until": until, "reason": "On leave"}).status_code == 302
    made = Delegation.objects.get()
    assert (made.giver, made.taker) == (world.rita, dora)
    request = world.ask()
    assert url_of(request) in opened(client_of(dora), reverse(LIST))
    sent(client_of(dora), request, verdict="deny", comment="No.")
    assert Review.objects.latest("id").for_user == world.rita
    for name in (dora, world.rita):
        for query in ("", "?whose=given", "?whose=taken", "?holds=all"):
            opened(client_of(name), reverse("admin:outlast_approvals_delegation_changelist") + query)
    client_of(dora).post(reverse("admin:outlast_approvals_delegation_revoke", args=[made.pk]))
    assert Delegation.objects.get().revoked_by_label == "dora"
    world.worker.run()


def pools(world: World) -> None:
    client = client_of(world.sue)
    add = reverse("admin:outlast_approvals_pool_add")
    opened(client, add)
    members = [str(world.rita.pk), str(world.ron.pk)]
    assert client.post(add, {"name": "lawyers", "note": "", "members": members}).status_code == 302
    pool = Pool.objects.get()
    assert set(pool.members.all()) == {world.rita, world.ron}
    opened(client, reverse("admin:outlast_approvals_pool_change", args=[pool.pk]))
    opened(client, reverse("admin:outlast_approvals_pool_changelist"))


def everybody_is_told(world: World) -> None:
    world.ask()
    notices.send_owed("default", 500)
    assert Notice.objects.filter(user=world.rita).exists()
    opened(client_of(world.sue), reverse("admin:outlast_approvals_notice_changelist"))
    api.waiting()
    api.lives([request.workflow_id for request in Request.objects.all()])
    api.backlog()


def they_go(world: World) -> None:
    decided = Review.objects.exclude(by=None).latest("id").request
    for user in (world.rita, world.robin, world.ron):
        user.delete()
    assert not Review.objects.filter(by__isnull=False, by_label="rita").exists()
    assert Review.objects.filter(by=None, by_label="rita").exists()
    client = client_of(world.sue)
    for target in (
        url_of(decided),
        reverse(LIST) + "?queue=all",
        reverse("admin:outlast_approvals_delegation_changelist") + "?holds=all",
    ):
        opened(client, target)

"""Idempotency keys: the same request again gets the same answer, whatever happened between; a key is its user's alone."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection

from approvals.models import Delegation, KeptAnswer, Request, Review
from approvals.services import once as service
from approvals.services.once import Outcome
from approvals.store import kept
from flows.services.clock import now
from tests.support.api import api
from tests.support.approving import World

__all__ = ["api"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.req("F2", "F3")]


def permit(user: Any, *names: str) -> None:
    user.user_permissions.add(*Permission.objects.filter(content_type__app_label="outlast_approvals", codename__in=names))


def test_the_same_again_is_answered_the_same(world: World, api: Any) -> None:
    request, rita = world.ask(), api("rita")
    first = rita.decide(request, key="k-1")
    assert "Idempotency-Replayed" not in first.headers
    world.worker.run()
    assert world.status(request) == "consumed"
    again = rita.decide(request, key="k-1")
    assert (again.status, again.data, again.headers["Idempotency-Replayed"]) == (200, first.data, "true")
    assert (first.data["code"], first.data["request"]["status"]) == ("accepted", "approved")
    assert Review.objects.count() == 1


def test_a_refusal_is_kept_too(world: World, api: Any) -> None:
    """Its answer says what became of that request; who wants to try again takes a new key."""
    request, rita = world.ask(), api("rita")
    refused = rita.decide(request, "deny", key="k")
    assert (refused.status, refused.code) == (422, "COMMENT_REQUIRED")
    again = rita.decide(request, "deny", key="k")
    assert (again.raw, again.headers["Idempotency-Replayed"]) == (refused.raw, "true")
    assert world.refusals(request) == ["COMMENT_REQUIRED"]
    assert rita.decide(request, "deny", comment="No.", key="k-2").status == 200


def test_what_never_reached_the_service_takes_no_key(world: World, api: Any) -> None:
    request, rita = world.ask(), api("rita")
    path = f"/requests/{request.pk}/decide"
    assert rita.post(path, {"verdict": "approve"}, key="k").status == 428
    assert rita.post(path, raw="{", key="k").status == 400
    assert rita.post(path, {"verdict": "approve"}, key="k", csrf="", seen=request.digest).status == 403
    assert not KeptAnswer.objects.exists()
    assert rita.decide(request, key="k").status == 200


def test_another_request_with_the_key_is_refused(world: World, api: Any) -> None:
    request, other, rita = world.ask(), world.ask(), api("rita")
    rita.decide(request, key="k")
    for found in (
        rita.decide(request, "deny", comment="No.", key="k"),
        rita.decide(request, comment="Well.", key="k"),
        rita.decide(request, seen="sha256:0", key="k"),
        rita.decide(other, key="k"),
        rita.post(f"/requests/{request.pk}/revoke", {"reason": "x"}, key="k"),
    ):
        assert (found.status, found.code) == (422, "KEY_REUSED")
    assert (world.status(request), world.status(other)) == ("approved", "pending")


def test_the_order_of_members_is_no_difference(world: World, api: Any) -> None:
    request, rita = world.ask(), api("rita")
    path = f"/requests/{request.pk}/decide"
    rita.post(path, raw='{"verdict": "deny", "comment": "No."}', seen=request.digest, key="k")
    again = rita.post(path, raw='{ "comment":"No.","verdict":"deny" }', seen=request.digest, key="k")
    assert again.headers["Idempotency-Replayed"] == "true"


def test_another_users_key_is_another_key(world: World, api: Any) -> None:
    """Ron neither sees Rita's answer nor is held up by her key."""
    request, other = world.ask(), world.ask()
    api("rita").decide(request, key="k")
    found = api("ron").decide(request, key="k")
    assert (found.status, found.code, "Idempotency-Replayed" in found.headers) == (409, "ANSWERED_BEFORE", False)
    assert api("ron").decide(other, key="k-2").status == 200
    assert set(KeptAnswer.objects.values_list("user__username", "key")) == {("rita", "k"), ("ron", "k"), ("ron", "k-2")}


def test_who_may_not_look_any_more_is_not_told_again(world: World, api: Any) -> None:
    request, rita = world.ask(), api("rita")
    rita.decide(request, key="k")
    world.rita.user_permissions.clear()
    assert rita.decide(request, key="k").status == 404


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 201, "é", "a\tb"])
def test_what_can_be_no_key_is_refused(world: World, api: Any, key: str) -> None:
    request = world.ask()
    found = api("rita").decide(request, key=key)
    assert (found.status, found.code) == (400, "BAD_KEY")
    assert world.status(request) == "pending"


def test_a_delegation_is_made_once(world: World, api: Any) -> None:
    permit(world.rita, "delegate_own")
    new = {"to": "ron", "until": (now("default") + timedelta(days=1)).isoformat(), "reason": "On leave"}
    rita = api("rita")
    made = [rita.post("/delegations", new, key="k") for _ in range(3)]
    assert {one.data["id"] for one in made} == {Delegation.objects.get().pk}
    ended = [rita.post(f"/delegations/{made[0].data['id']}/end", {}, key="e").code for _ in range(2)]
    assert ended == ["accepted", "accepted"]


def test_a_key_is_free_again_after_a_day(world: World, api: Any) -> None:
    request, rita = world.ask(), api("rita")
    for number in range(kept.OLD + 5):
        rita.post(f"/requests/{request.pk}/assign", {"to": "rita"}, key=f"k-{number}")
    world.clock.move(hours=23)
    assert rita.post(f"/requests/{request.pk}/assign", {}, key="k-0").code == "KEY_REUSED"
    world.clock.move(hours=1, seconds=1)
    other = world.ask()
    assert rita.decide(other, key="k-0").status == 200
    assert KeptAnswer.objects.count() == 5, "this one, and those that are left for the next"


def test_an_error_of_ours_keeps_nothing(world: World, api: Any, monkeypatch: Any) -> None:
    request, rita = world.ask(), api("rita")
    from approvals.views import requests

    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("the power is out")

    with monkeypatch.context() as patched:
        patched.setattr(requests, "_now", broken)
        rita.client.raise_request_exception = False
        path = f"/approvals/requests/{request.pk}/decide"
        headers = {"X-CSRFToken": rita.csrf, "If-Match": f'"{request.digest}"', "Idempotency-Key": "k"}
        assert rita.client.post(path, {"verdict": "approve"}, "application/json", headers=headers).status_code == 500
    assert (world.status(request), KeptAnswer.objects.count(), Review.objects.count()) == ("pending", 0, 0)
    assert rita.decide(request, key="k").status == 200


def test_two_at_once_act_once(world: World) -> None:
    """The second waits at the key's row until the first has committed, and then has its answer."""
    started, go, answers, acted = threading.Event(), threading.Event(), [], []

    def act() -> Outcome:
        acted.append(1)
        started.set()
        assert go.wait(30)
        return Outcome(200, {"n": len(acted)})

    def ask() -> None:
        try:
            answers.append(service.once(world.rita.pk, "k", "the same", act, "default"))
        finally:
            connection.close()

    first, second = threading.Thread(target=ask), threading.Thread(target=ask)
    first.start()
    assert started.wait(30)
    second.start()
    waiting_for_a_lock()
    go.set()
    first.join(30)
    second.join(30)
    assert sorted((one.body["n"], one.again) for one in answers) == [(1, False), (1, True)]
    assert acted == [1]


def waiting_for_a_lock() -> None:
    """Until some session of this database waits for another's transaction."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    for _ in range(2000):
        with connection.cursor() as cursor:
            cursor.execute(query)
            if cursor.fetchone()[0]:
                return
            cursor.execute("SELECT pg_sleep(0.01)")
    raise AssertionError("nobody waits")


def test_a_users_answers_go_with_the_user(world: World, api: Any) -> None:
    api("ron").decide(world.ask(), key="k")
    assert Request.objects.count() == 1
    world.ron.delete()
    assert not KeptAnswer.objects.exists()

"""Whose turn it is."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

import flows
from approvals.models import Request
from approvals.services import inbox
from tests.support.approving import AskYesOrNo, World


def mine(user: Any) -> list[int]:
    return list(inbox.eligible(Request.objects.all(), user).order_by(*inbox.SOONEST).values_list("pk", flat=True))


def test_the_inbox_is_what_a_user_may_answer_soonest_to_expire_first(world: World) -> None:
    later = world.ask(flow=AskYesOrNo)
    first = world.ask()
    world.clock.move(hours=1)
    second = world.ask(by=world.rita)
    assert mine(world.ron) == [first.pk, second.pk, later.pk]
    assert mine(world.rita) == [first.pk, later.pk], "not her own work"
    assert mine(world.robin) == [second.pk, later.pk], "his own only where the flow allows it"
    assert mine(world.vera) == mine(world.otto) == mine(world.sue) == []
    assert inbox.next_for(world.ron, other_than=first.pk, using="default") == second.pk


def test_what_is_answered_expired_or_withdrawn_is_not_in_it(world: World) -> None:
    answered, cancelled, late = world.ask(), world.ask(), world.ask()
    world.decide(answered)
    flows.cancel(cancelled.workflow)
    assert mine(world.rita) == [late.pk]
    world.clock.move(hours=25)
    assert mine(world.rita) == [], "expired, though no sweep has said so yet"
    assert inbox.next_for(world.rita, other_than=0, using="default") is None


class OneObject:
    """A backend as guardian or rules bring one: a right on single requests."""

    allowed: set[int] = set()

    def authenticate(self, request: Any, **credentials: Any) -> None:
        return None

    def has_perm(self, user: Any, permission: str, obj: Any = None) -> bool:
        return permission == "outlast_approvals.answer_request" and obj is not None and obj.pk in self.allowed


def test_a_right_on_one_request_is_enough_for_that_one(world: World, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend", f"{__name__}.OneObject"]
    monkeypatch.setattr(
        "django.contrib.auth.load_backend", lambda path: OneObject() if path.endswith("OneObject") else load(path)
    )
    one, other = world.ask(), world.ask()
    monkeypatch.setattr(OneObject, "allowed", {one.pk})
    otto = get_user_model().objects.get(pk=world.otto.pk)
    assert mine(otto) == [one.pk]
    assert world.decide(other, by=otto).code == "NOT_PERMITTED"
    assert world.decide(one, by=otto)


def load(path: str) -> Any:
    from django.utils.module_loading import import_string

    return import_string(path)()


def test_a_user_model_without_groups_is_in_no_role(world: World) -> None:
    from approvals.services import people

    class Bare:
        pk = 1

    assert people.groups(Bare()) == frozenset()
    assert Permission.objects.filter(codename="answer_request").count() == 1

"""A flow whose news two editors and, where they are long, a lawyer must approve; and the people for it, besides those of `approving`."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission

from approvals.models import Pool
from flows import (
    COMPLETE,
    ESCALATE,
    FAILED,
    Activity,
    Approval,
    Deadline,
    Decision,
    End,
    Escalation,
    Flow,
    Gate,
    Reviewers,
    State,
    hours,
)
from tests.support import approving
from tests.support.approving import ROLE, World

POOL = "lawyers of the paper"
MANAGERS = "managing editors"


def is_long(state: State) -> bool:
    return len(state.results["propose"]["value"]["text"]) > 20


def author(state: State) -> str:
    return str(state.input["author"])


class PublishLongNews(Flow):
    """Two editors, then a lawyer where it is long; after eight hours a managing editor may answer too."""

    propose = Decision(approving.propose, choices={"release": "ask"})
    ask = Approval(
        candidate="propose",
        steps=[Reviewers(ROLE, need=2, name="Editors"), Reviewers(pool=POOL, when=is_long)],
        reminders=[hours(4)],
        escalation=[Escalation(MANAGERS, hours=8), Escalation(permission="outlast_approvals.revoke_request", hours=12)],
        expires=Deadline(hours=24, then=ESCALATE),
        approved="publish",
        changes="propose",
        denied="stopped",
    )
    publish = Activity(approving.publish, gate=Gate(approved_by="ask"), then="done")
    done = End(COMPLETE)
    stopped = End(FAILED)


class PublishPersonally(Flow):
    """One person is asked, by name."""

    propose = Decision(approving.propose, choices={"release": "ask"})
    ask = Approval(
        candidate="propose", to=author, expires=Deadline(hours=24, then=ESCALATE), approved="publish", denied="stopped", bulk=True
    )
    publish = Activity(approving.publish, gate=Gate(approved_by="ask"), then="done")
    done = End(COMPLETE)
    stopped = End(FAILED)


LONG = {"text": "News that need more than a glance."}


def somebody(
    name: str, *, role: str = "", pool: str = "", permissions: tuple[str, ...] = ("answer_request",), **fields: Any
) -> Any:
    """A user who may answer, in that role and pool."""
    user = get_user_model().objects.create_user(name, password=approving.PASSWORD, is_staff=True, **fields)
    user.user_permissions.add(*Permission.objects.filter(content_type__app_label="outlast_approvals", codename__in=permissions))
    if role:
        user.groups.add(Group.objects.get_or_create(name=role)[0])
    if pool:
        Pool.objects.get_or_create(name=pool)[0].members.add(user)
    return user


def ask_long(world: World, *values: Any, **more: Any) -> Any:
    """Ask about long news; there is a lawyer, `lena`."""
    if not get_user_model().objects.filter(username="lena").exists():
        somebody("lena", pool=POOL)
    return world.ask(*(values or (LONG,)), flow=PublishLongNews, **more)

"""A flow that asks for approval, and the people around it; the fixture `world` has both, with a worker and a clock."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission

from approvals.api import Decided, decide
from approvals.models import Request, Review
from flows import COMPLETE, ESCALATE, FAILED, Activity, Approval, Candidate, Deadline, Decision, End, Flow, Gate, State, Visits
from flows.models import Workflow
from flows.services.start import Started
from flows.testing import Clock, LocalWorker, local_worker, movable_clock

ROLE = "approval reviewers"
PASSWORD = "a password for tests"


def propose(attempt: Any) -> Candidate:
    """What the test's input says for this visit; what reviewers said before is handed on as evidence."""
    said = attempt.results.get("ask")
    values = attempt.input["values"]
    evidence = attempt.input.get("evidence")
    heard = [said["comment"]] if said else []
    return Candidate(
        "release", values[min(attempt.visit, len(values)) - 1], evidence or {"heard": heard, "reason": "Looks fine."}
    )


def publish(attempt: Any) -> dict[str, Any]:
    """The effect: exactly what was approved."""
    return {"published": attempt.approved["value"], "digest": attempt.approved["digest"]}


def outcome(state: State) -> Mapping[str, Any]:
    return {"publish": state.results["publish"], "ask": state.results["ask"]}


class PublishNews(Flow):
    """Publish a piece of text that a person has approved."""

    propose = Decision(propose, choices={"release": "ask"}, visits=Visits(6, then="stopped"))
    ask = Approval(
        candidate="propose",
        role=ROLE,
        expires=Deadline(hours=24, then=ESCALATE),
        approved="publish",
        changes="propose",
        denied="stopped",
    )
    publish = Activity(publish, gate=Gate(approved_by="ask"), then="done")
    done = End(COMPLETE, result=outcome)
    stopped = End(FAILED)


class AskYesOrNo(Flow):
    """No changes can be asked for; the accountable user may answer; silence is a no."""

    propose = Decision(propose, choices={"release": "ask"})
    ask = Approval(
        candidate="propose",
        role=ROLE,
        expires=Deadline(days=7, then="stopped"),
        approved="done",
        denied="stopped",
        self_approval=True,
    )
    done = End(COMPLETE)
    stopped = End(FAILED)


@dataclasses.dataclass
class World:
    """Robin is accountable; Rita and Ron may answer; Vera may look; Otto is in the role without the permission; Sue is a superuser."""

    worker: LocalWorker
    clock: Clock
    robin: Any
    rita: Any
    ron: Any
    vera: Any
    otto: Any
    sue: Any

    def ask(self, *values: Any, flow: type[Flow] = PublishNews, by: Any = None, **more: Any) -> Request:
        """Start a run and carry it to its question."""
        asked = {"values": list(values) or [{"text": "Hello."}], **more.pop("input", {})}
        run = flow.start(asked, by=by or self.robin, goal=more.pop("goal", "Publish the news"), **more)
        self.worker.run()
        return self.request_of(run)

    def request_of(self, run: Started | Workflow) -> Request:
        """The newest request of a run."""
        return Request.objects.select_related("workflow").filter(workflow_id=run.id).latest("id")

    def decide(self, request: Request, verdict: str = "approve", by: Any = None, **more: Any) -> Decided:
        """Answer as Rita, with the right digest, unless something else is said."""
        given = {"digest": request.digest, "by": by or self.rita, **more}
        return decide(request, verdict=verdict, **given)

    def status(self, request: Request) -> str:
        return str(Request.objects.values_list("status", flat=True).get(pk=request.pk))

    def workflow(self, request: Request) -> Workflow:
        return Workflow.objects.get(pk=request.workflow_id)

    def refusals(self, request: Request) -> list[str]:
        """The codes of the reviews that were not taken, oldest first."""
        rows = Review.objects.filter(request=request).exclude(refused="").order_by("id")
        return list(rows.values_list("refused", flat=True))


def make_people() -> dict[str, Any]:
    users = get_user_model().objects
    answer = Permission.objects.filter(content_type__app_label="outlast_approvals", codename="answer_request")
    view = Permission.objects.filter(
        content_type__app_label__in=("outlast_approvals", "outlast_flows"), codename__startswith="view_"
    )
    role = Group.objects.create(name=ROLE)
    people = {
        name: users.create_user(name, password=PASSWORD, is_staff=True) for name in ("robin", "rita", "ron", "vera", "otto")
    }
    people["sue"] = users.create_superuser("sue", password=PASSWORD)
    for name in ("robin", "rita", "ron"):
        people[name].groups.add(role)
        people[name].user_permissions.add(*answer, *view)
    people["vera"].user_permissions.add(*view)
    people["otto"].groups.add(role)
    people["otto"].user_permissions.add(*view)
    return people


@pytest.fixture
def world(transactional_db: None, settings: Any) -> Iterator[World]:
    """Real commits: what an answer sets going is run by a worker, and activity code may not run inside a test's transaction."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # quick ones
    people = make_people()
    with movable_clock() as clock, local_worker() as worker:
        yield World(worker, clock, **people)

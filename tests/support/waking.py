"""A flow whose last step has everything a gate can ask for, and six ways to be woken before it; used by the tests of the gate."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission

import flows
from approvals.api import decide
from approvals.models import Request
from flows import (
    COMPLETE,
    ESCALATE,
    FAILED,
    Activity,
    Approval,
    Branch,
    Budget,
    Candidate,
    Commits,
    Competence,
    Deadline,
    Decision,
    End,
    Flow,
    Gate,
    Retry,
    Sleep,
    Spend,
    Wait,
    budgets,
    commitments,
    hours,
    policies,
    seconds,
)
from flows.errors import Transient
from flows.models import Verdict, Workflow
from flows.store import gate as store
from flows.store.sql import run as execute
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.support import releasing

ROLE = "wakers"
PERMISSION = "outlast_flows.operate_workflow"

#: What the outside is like now: versions that the probe sees, and the denials of the placement provider.
outside: dict[str, Any] = {}
#: What happened in activity code, in order.
acted: list[str] = []
#: The verdicts for which a node can declare a way on. A goal that is gone leads to its one end.
ROUTED = [one.value for one in flows.Verdict if one.value not in ("ALLOWED", "INTENT_SUPERSEDED", "HUMAN_REQUIRED")]


def probe(attempt: Any) -> Any:
    """The version of main; once it fails, where the test says so."""
    if attempt.node == "act" and outside.pop("fail", None):
        raise Transient("the repository cannot be reached")
    return outside.get("main", "v1")


def placement(run: Any, wanted: Any, offered: Any) -> str:
    """The placement provider of these tests."""
    return str(outside.get("placement", ""))


def propose(attempt: Any) -> Candidate:
    return Candidate("go", {"text": "as proposed"})


def act(attempt: Any) -> Mapping[str, Any]:
    acted.append(attempt.node)
    return {"did": attempt.approved["value"], "versions": dict(attempt.versions)}


def hold(attempt: Any) -> Mapping[str, Any]:
    return {"window": 1}


def way(state: Any) -> str:
    return str(state.input["way"])


def approval(approved: str) -> Approval:
    return Approval(
        candidate="propose",
        role=ROLE,
        expires=Deadline(days=7, then=ESCALATE),
        approved=approved,
        denied="no",
        self_approval=True,
    )


ACTING = Gate(
    approved_by="ask",
    verified_by="check",
    fresh={"main": probe},
    authority=PERMISSION,
    competence=Competence("propose", errors=1),
    placement="eu",
    commitments="window",
)


def acting(**on: str) -> Activity:
    """The step that asks for everything. `on`: verdict → node."""
    return Activity(
        act,
        placement="eu",
        retry=Retry(max_attempts=3, initial=seconds(10), jitter=0),
        gate=ACTING,
        spends=Spend(cost="1"),
        fulfils="window",
        on={flows.Verdict(name): node for name, node in on.items()},
        then="done",
    )


def waiting(**on: str) -> Wait:
    return Wait(
        "t.woken",
        key=lambda state: state.key,
        deadline=Deadline(days=7, then=ESCALATE),
        on={flows.Verdict(name): node for name, node in on.items()},
        then="act",
    )


class Waking(Flow):
    """Proposed, checked, approved; then woken in one of six ways; then everything is asked again."""

    class Meta:
        name = "t-woken"
        policy = "t-policy"
        on_release = flows.HUMAN
        budget = Budget(cost="10")

    propose = Decision(propose, choices={"go": "check"})
    check = Activity(factories.work, verifies="propose", then="hold")
    hold = Activity(hold, commits=Commits("window", release=lambda operation: None), then="ask")
    ask = approval("way")
    way = Branch(way, choices={"event": "wait", "timer": "nap", "approval": "again", "act": "act"})
    wait = waiting()
    nap = Sleep(hours(1), then="act")
    again = approval("act")
    act = acting()
    done = End(COMPLETE, result=lambda state: state.results.get("act"))
    no = End(FAILED)


class Routed(Waking):
    """The same, with a way of its own for every verdict that a node can declare one for; only the event and a recovery wake it."""

    class Meta:
        name = "t-routed-wake"
        policy = "t-policy"
        on_release = flows.HUMAN
        budget = Budget(cost="10")

    wait = waiting(POLICY_BLOCKED="instead", RELEASE_INCOMPATIBLE="instead", WORKFLOW_MIGRATION_REQUIRED="instead")
    act = acting(**dict.fromkeys(ROUTED, "instead"))
    instead = Activity(factories.work, then="done")


@dataclasses.dataclass
class Woken:
    """One run, brought to the edge of `act`; `wake` wakes it."""

    worker: LocalWorker
    clock: Clock
    cause: str
    user: Any
    flow: type[Flow] = Waking
    run: Any = None
    other: Any = None

    def bring(self) -> None:
        """Up to where the cause can wake it, with everything sound."""
        ways = {"event": "event", "timer": "timer", "approval": "approval"}
        policies.publish("t-policy", {"limit": 1})
        releasing.both()
        self.run = self.flow.start({"way": ways.get(self.cause, "act")}, key=f"waking {self.cause}", by=self.user)
        self.worker.run()
        if self.cause == "retry":
            outside["fail"] = True
        self.answer("ask")
        if self.cause == "resume":
            self.user.user_permissions.clear()
        if self.cause == "recovery":
            self.other = factories.another_worker(placements=["eu"])
            factories.enter(factories.take_one(self.other))
            assert factories.status(self.run) == ("running", "", "act")
            return
        self.worker.run()

    def answer(self, node: str) -> None:
        request = Request.objects.filter(workflow_id=self.run.id, node=node).latest("id")
        assert decide(request, verdict="approve", digest=request.digest, by=self.user)

    def arrive(self) -> None:
        """What must come before the facts change: a person is not taken for an answer afterwards."""
        if self.cause == "approval":
            self.answer("again")

    def wake(self) -> None:
        """What the cause is; then the worker goes on."""
        if self.cause == "event":
            flows.signal("woken", "t.woken", key=self.run.key)
        elif self.cause == "timer":
            self.clock.move(hours=2)
        elif self.cause == "retry":
            self.clock.move(seconds=11)
        elif self.cause == "recovery":
            factories.lose(self.other)
        elif self.cause == "resume":
            grant(self.user)
            assert flows.resume(self.run)
        self.worker.tick()
        self.worker.run()

    def verdicts(self) -> list[tuple[str, str, str]]:
        """(node, cause, verdict) of everything that the gate was asked at `act`, oldest first."""
        rows = Verdict.objects.filter(workflow_id=self.run.id).order_by("id")
        return [(row.node, row.cause, row.verdict) for row in rows]


def grant(user: Any) -> None:
    app, name = PERMISSION.split(".")
    user.user_permissions.add(Permission.objects.get(content_type__app_label=app, codename=name))


def make_user() -> Any:
    """Accountable, may answer, may act."""
    user = get_user_model().objects.create_user("wanda", is_staff=True)
    user.groups.add(Group.objects.create(name=ROLE))
    user.user_permissions.add(*Permission.objects.filter(content_type__app_label="outlast_approvals"))
    grant(user)
    return user


def _raw(statement: str, woken: Woken) -> None:
    execute("break", statement, {"id": woken.run.id}, woken.worker.using)


def _policy(woken: Woken) -> None:
    policies.publish("t-policy", {"limit": 0})


def _main(woken: Woken) -> None:
    outside["main"] = "v2"


def _window(woken: Woken) -> None:
    (window,) = commitments.active(kind="window")
    commitments.fulfil(window, by=woken.user, reason="gone")


def _envelope(woken: Woken) -> None:
    for _ in range(2):
        store.burn(woken.flow.Meta.name, "propose", "R17", 1, woken.worker.using)


def _user(woken: Woken) -> None:
    get_user_model().objects.filter(pk=woken.user.pk).update(is_active=False)


def _placement(woken: Woken) -> None:
    outside["placement"] = "not in the east"


def _release(woken: Woken) -> None:
    releasing.now_is("R18")


def _budget(woken: Woken) -> None:
    budgets.limit(woken.run.intent_id, cost="0", by=None, reason="no more")


def _unverified(woken: Woken) -> None:
    candidate = Workflow.objects.get(pk=woken.run.id).verifications.latest("id")
    failed = store.Verified(
        woken.run.id, "check", 2, 1, "propose", candidate.digest, 1, "{}", passed=False, code="VERIFICATION_FAILED"
    )
    store.verify(failed, woken.worker.using)


#: verdict → what happens to the facts while the run sleeps, and the status and outcome that it is left with.
BREAKS: dict[str, tuple[Callable[[Woken], None], str, str]] = {
    "INTENT_SUPERSEDED": (
        lambda woken: _raw(
            "UPDATE outlast_intent SET version = version + 1 "
            "WHERE id = (SELECT intent_id FROM outlast_workflow WHERE id = %(id)s::uuid)",
            woken,
        ),
        "superseded",
        "SUPERSEDED",
    ),
    "POLICY_BLOCKED": (_policy, "waiting", "POLICY_BLOCKED"),
    "WORKFLOW_MIGRATION_REQUIRED": (
        lambda woken: _raw("UPDATE outlast_workflow SET fingerprint = 'another' WHERE id = %(id)s::uuid", woken),
        "waiting",
        "WORKFLOW_MIGRATION_REQUIRED",
    ),
    "CANDIDATE_INVALID": (
        lambda woken: _raw(
            "UPDATE outlast_activity SET result = jsonb_set(result, '{value,text}', '\"another\"') "
            "WHERE workflow_id = %(id)s::uuid AND node = 'propose'",
            woken,
        ),
        "waiting",
        "HUMAN_REQUIRED",
    ),
    "RELEASE_INCOMPATIBLE": (_release, "waiting", "HUMAN_REQUIRED"),
    "BUDGET_EXHAUSTED": (_budget, "waiting", "HUMAN_REQUIRED"),
    "REVALIDATION_REQUIRED": (_main, "waiting", "REVALIDATION_REQUIRED"),
    "COMMITMENT_UNSOUND": (_window, "waiting", "RECONCILIATION_REQUIRED"),
    "COMPETENCE_EXCEEDED": (_envelope, "waiting", "HUMAN_REQUIRED"),
    "AUTHORITY_DENIED": (_user, "waiting", "POLICY_BLOCKED"),
    "VERIFICATION_REQUIRED": (_unverified, "waiting", "HUMAN_REQUIRED"),
    "PLACEMENT_DENIED": (_placement, "waiting", "POLICY_BLOCKED"),
    "APPROVAL_REQUIRED": (
        lambda woken: _raw(
            "UPDATE outlast_approval_request SET status = 'invalidated' WHERE workflow_id = %(id)s::uuid AND node = 'ask'", woken
        ),
        "waiting",
        "WAITING",
    ),
}

CAUSES = ("event", "timer", "approval", "retry", "recovery", "resume")

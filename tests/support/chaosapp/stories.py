"""What a worker and the world around it do to carry one workflow to its end; each may be told again after any crash.

The same story is told by the process that is killed and by the one that comes after it: starts have a key, events an id, answers a digest.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import flows
from flows import Activity
from flows.models import Wait, Worker, Workflow
from flows.services import sweeps
from flows.testing import Clock, LocalWorker, local_worker
from tests.support.chaosapp import moving
from tests.support.chaosapp.flows import Everything, Three
from tests.support.chaosapp.released import released

ROLE, CODING_ROLE, RESEARCH_ROLE = "chaos-reviewer", "release-manager", "research-editor"
COMMENT = "Good. Please mention the new version in the changelog."
ROUNDS = 60
ENDED = {"complete", "failed", "cancelled", "superseded"}


class NotToBeEnded(Exception):
    """The workflow needs a person, or goes round for ever."""


def everything(folder: str, key: str) -> None:
    """Every kind of node; one event comes before anybody waits for it, the other when somebody does."""
    with taking_over() as worker:
        run = Everything.start({"folder": folder}, key=key)
        flows.signal(f"{key}/early", "chaos.early", key=key, payload={"n": 1})
        carry_on(worker, run.id, key)


def bundle(folder: str, key: str) -> None:
    """Three workflows claimed at once; the worker is asked to stop after the first one's turn, and the rest goes back."""
    with taking_over() as worker:
        worker.batch_size = 3
        runs = Three.start_many([(f"{key}/{number}", {"folder": folder}) for number in range(3)])
        worker.took = lambda queue, seconds: setattr(worker, "asked_to_stop", True)  # type: ignore[method-assign]
        worker.run()
        worker.asked_to_stop = False
        del worker.took
        for run in runs:
            carry_on(worker, run.id, key)


def control(folder: str, key: str) -> None:
    """Paused and resumed by people, then overtaken by a new goal, whose run ends."""
    with taking_over() as worker:
        run = Everything.start({"folder": folder}, key=key)
        worker.run()
        if Workflow.objects.get(pk=run.id).status == "waiting":
            flows.pause(run.id)
            flows.resume(run.id)
            worker.run()
        if Workflow.objects.get(pk=run.id).status not in ENDED:
            flows.supersede(run.intent_id, goal="another one", flow=Three, input={"folder": folder}, key=f"{key}/next")
        carry_on(worker, Workflow.objects.get(key=f"{key}/next").pk, key)


def coding(folder: str, key: str) -> None:
    """The demonstration's flow on a real repository: CI answers, the first review asks for changes, the second approves."""
    from project.agents.coding.flows import UpgradeLibrary

    for node in UpgradeLibrary.definition.nodes.values():
        if isinstance(node, Activity):  # killed more often under one activity than any policy would bear
            object.__setattr__(node, "retry", replace(node.retry, max_lost=1000))
    remote = str(Path(folder, "remote.git"))
    request = {"remote": remote, "workspaces": str(Path(folder, "workspaces")), "library": "latchkey", "to": "2.0"}
    with taking_over() as worker:
        run = UpgradeLibrary.start(request, key=key)
        carry_on(worker, run.id, key)


def voyage(end: str) -> Callable[[str, str], None]:
    """A run with effects, to that end."""

    def told(folder: str, key: str) -> None:
        from tests.support.chaosapp.voyage import voyage

        voyage(folder, key, end)

    return told


def metered(folder: str, key: str) -> None:
    """A run under budgets."""
    from tests.support.chaosapp.budgets import metered

    metered(folder, key)


def fanning(folder: str, key: str) -> None:
    """A run with children."""
    from tests.support.chaosapp.fans import fanning as told

    told(folder, key)


def moved(folder: str, key: str) -> None:
    """From one version to the next, by a person."""
    with taking_over() as worker:
        carry_on(worker, moving.move(worker, folder, key), key)


def moved_at_wake(folder: str, key: str) -> None:
    """From one version to the next, by the worker that takes the run up."""
    with taking_over() as worker:
        carry_on(worker, moving.wake(worker, folder, key), key)


def scarce(folder: str, key: str) -> None:
    """Two runs that wait for what is scarce."""
    from tests.support.chaosapp.scarce import scarce as told

    told(folder, key)


def patience(folder: str, key: str) -> None:
    """Its deadlines pass, and nobody answers."""
    from tests.support.chaosapp.patience import patience as told

    told(folder, key)


def asked(folder: str, key: str) -> None:
    """A form is filled in, with a file."""
    from tests.support.chaosapp.asked import asked as told

    told(folder, key)


def town(folder: str, key: str) -> None:
    """The browser agent, on a site of its own."""
    from tests.support.chaosapp.town import town as told

    told(folder, key)


def research(folder: str, key: str) -> None:
    """The research agent, on an archive of its own."""
    from tests.support.chaosapp.research import research as told

    told(folder, key)


def guarded(folder: str, key: str) -> None:
    """Its tools ask people."""
    from tests.support.chaosapp.guarded import guarded as told

    told(folder, key)


def agent(folder: str, key: str) -> None:
    """A turn of an agent, with twelve calls of its model."""
    from tests.support.chaosapp.agent import agent as told

    told(folder, key)


STORIES: dict[str, Callable[[str, str], None]] = {
    "everything": everything,
    "bundle": bundle,
    "control": control,
    "moved": moved,
    "moved at wake": moved_at_wake,
    "coding": coding,
    "metered": metered,
    "fanning": fanning,
    "released": released,
    "scarce": scarce,
    "patience": patience,
    "asked": asked,
    "town": town,
    "research": research,
    "guarded": guarded,
    "agent": agent,
    "voyage": voyage("complete"),
    "voyage cancelled": voyage("cancelled"),
    "voyage cancelled in flight": voyage("cancelled in flight"),
}


def taking_over() -> Any:
    """A worker; whoever was there before is known to be gone, as a supervisor's new process knows of the old one."""
    for dead in Worker.objects.filter(status="alive").values_list("pk", flat=True):
        sweeps.bury("default", dead)
    sweeps.put_back_lost("default")
    return local_worker()


def carry_on(worker: LocalWorker, workflow: Any, key: str) -> None:
    for _ in range(ROUNDS):
        worker.run(dict.fromkeys([Workflow.objects.get(pk=workflow).queue, "cleanup"]))
        worker.tick()
        row = Workflow.objects.get(pk=workflow)
        if row.status in ENDED:
            return
        if row.outcome not in ("", "WAITING", "RECONCILIATION_REQUIRED"):
            raise NotToBeEnded(f"{row.outcome} {row.error_code} at {row.node}")
        for wait in Wait.objects.filter(workflow_id=workflow, status="open"):
            end_wait(wait, key)
    raise NotToBeEnded(f"{row.status} at {row.node} after {ROUNDS} rounds")


def end_wait(wait: Wait, key: str) -> None:
    """What the world does about a wait. Twice is once."""
    if wait.kind in ("timer", "retry_window", "reconciliation"):
        Clock("default").move(minutes=10)
    elif wait.event_type == "ci.finished":
        hear_ci(wait)
    elif wait.event_type == "document.checked" or (wait.kind == "ask" and wait.node == "upload"):
        town_answers(wait)
    elif wait.kind == "event":
        flows.signal(f"{key}/{wait.node}", wait.event_type, key=wait.key, payload={"n": 2})
    elif wait.kind == "approval":
        answer(wait)
    else:
        raise NotToBeEnded(f"a wait of kind {wait.kind} at {wait.node}")


def town_answers(wait: Wait) -> None:
    from tests.support.chaosapp.town import end_wait as answered

    answered(wait)


def hear_ci(wait: Wait) -> None:
    from project.agents.coding import ci

    remote = Workflow.objects.get(pk=wait.workflow_id).input["remote"]
    ci.announce(ci.build(remote, wait.key), flows.signal, times=2)


def answer(wait: Wait) -> None:
    """Approved, by as many people as it takes; by the coding agent's reviewers at the second time only. What is to be escalated is so first."""
    from django.contrib.auth import get_user_model

    from approvals.models import Request
    from approvals.services.decide import decide

    request = Request.objects.get(wait_id=wait.pk)
    if request.escalation and not request.escalated:
        Clock("default").move(minutes=10)
        sweeps.run_tick("default")
    asked_before = Wait.objects.filter(workflow_id=wait.workflow_id, kind="approval", id__lt=wait.pk).exists()
    verdict = "changes" if request.asked == CODING_ROLE and not asked_before else "approve"
    for reviewer in get_user_model().objects.filter(username__startswith=ROLE).order_by("pk"):
        decided = decide(request, verdict=verdict, digest=request.digest, by=reviewer, comment=COMMENT)
        if decided.ends or Request.objects.get(pk=request.pk).status != "pending":
            return
        if decided.code not in ("accepted", "already"):
            raise NotToBeEnded(decided.sentence)
    raise NotToBeEnded("it takes more people than there are")


def make_reviewer() -> None:
    """Once a database: one in the roles, another in the pool."""
    from django.contrib.auth import get_user_model
    from django.contrib.auth.models import Group

    from approvals.models import Pool

    reviewer = get_user_model().objects.create_superuser(ROLE)
    reviewer.groups.add(*(Group.objects.create(name=name) for name in (ROLE, CODING_ROLE, RESEARCH_ROLE)))
    Pool.objects.create(name="chaos-pool").members.add(get_user_model().objects.create_superuser(f"{ROLE}-2"))


def tell(story: str, folder: str, key: str) -> None:
    os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - as short as it is
    STORIES[story](folder, key)

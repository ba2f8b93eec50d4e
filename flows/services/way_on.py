"""What a person has to do so that a run goes on, in words and as steps: one answer for the description, the commands and the admin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models.functions import Now

from flows import registry
from flows.core.effects import OperationKind, OperationStatus
from flows.core.protocol import SUSPENDED, TERMINAL, TOOL_APPROVAL, Outcome, Status
from flows.core.releases import ANY
from flows.core.verdicts import WAY_ON, Verdict, Way
from flows.models import Commitment, Operation, Transition, Worker, Workflow
from flows.models.worker import WorkerStatus
from flows.services import holds, releases, undoing


@dataclass(frozen=True, slots=True)
class Needed:
    """What is needed, in words, and the steps that a person can take, in order; none where it goes on by itself."""

    says: str
    ways: tuple[Way, ...] = ()
    #: It is about what became of effects, or about what is given back.
    servicing: bool = False


def needed(row: Workflow, waits: Sequence[Any], using: str) -> Needed:
    """What a run needs so that it goes on. `waits`: the open ones, each with its kind and node."""
    if row.status in TERMINAL:
        return Needed("none: the workflow has ended")
    if row.owed:
        if asked := _asked_of_people(row, using):
            return replace(asked, servicing=True)
        if row.target or row.status == Status.RECONCILING or _is_asked_about(row, using):
            return replace(_served(using), servicing=True)
    if row.outcome == Outcome.WORKFLOW_MIGRATION_REQUIRED:
        return _migration(row, using)
    if row.status == Status.PAUSED:
        return Needed("a person resumes it (flows.resume) or cancels it", (Way.RESUME, Way.CANCEL))
    if row.outcome in SUSPENDED and row.error_code in WAY_ON:
        found = WAY_ON[Verdict(row.error_code)]
        return Needed("a person " + found.says.replace("{id}", str(row.pk)), found.ways)
    if row.outcome in SUSPENDED:
        return Needed(f"a person looks at {row.error_code}, then resumes or cancels", (Way.RESUME, Way.CANCEL))
    for wait in waits:
        if wait.kind == "approval":
            return Needed(f"an answer to the approval request at {wait.node}", (Way.ANSWER,))
        if wait.kind == "ask":
            return Needed(f"an answer to what is asked at {wait.node}", (Way.ANSWER,))
        if wait.kind == TOOL_APPROVAL:
            return Needed(f"answers to the approval requests of tools at {wait.node}", (Way.ANSWER,))
    if row.status == Status.RUNNABLE and (held := holds.of(row, using)):
        return Needed(f"a person lifts what holds it ({holds.said(held)}): flows.lift", (Way.LIFT,))
    if row.status == Status.RUNNABLE and not _is_offered(row, using):
        return _a_worker(row, using)
    return Needed("none: it goes on by itself")


def _a_worker(row: Workflow, using: str) -> Needed:
    """What a ready run lacks that no live worker may take."""
    if row.release and not releases.offering(row.release, using):
        says = f"a worker: no live one offers release {row.release}; start one, or move the run (flows releases move)"
        return Needed(says, (Way.WORKERS, Way.MOVE))
    where = f"queue {row.queue}" + (f" with placement {row.placement}" if row.placement else "")
    what = f"{row.flow_name}@{row.flow_version} on {where}"
    return Needed(f"a worker: no live one offers {what}; start one, or restart those with older code", (Way.WORKERS,))


def _migration(row: Workflow, using: str) -> Needed:
    """What to do about a run whose definition is not the one that it was started with, as far as this process knows the flow."""
    refused = Transition.objects.using(using).filter(workflow_id=row.pk, error_code=row.error_code, note__isnull=False)
    reason = (refused.order_by("-seq").values_list("note", flat=True).first() or {}).get("reason", "")
    why = f" ({reason})" if reason else ""
    steps = registry.steps(row.flow_name, row.flow_version)
    if steps:
        says = f"a person migrates it to version {steps[-1].version} (flows migrate), or puts its shape back and resumes it{why}"
        return Needed(says, (Way.MIGRATE, Way.RESUME, Way.CANCEL))
    version = row.flow_version
    return Needed(
        f"a version with migrate_from = {{{version}: …}}, then a person migrates it (flows migrate); "
        f"or the shape of version {version} is put back, and a person resumes it{why}",
        (Way.RESUME, Way.CANCEL),
    )


def _asked_of_people(row: Workflow, using: str) -> Needed | None:
    """What only a person can settle of what it owes; None if there is nothing."""
    mine = Operation.objects.using(using).filter(workflow_id=row.pk, due_at__isnull=True, worker_id__isnull=True)
    doubts = list(mine.filter(status=OperationStatus.UNCERTAIN, again=False).values_list("pk", flat=True))
    if doubts:
        return Needed(
            f"a person says whether {', '.join(doubts)} happened (flows resolve){_held_back(row, using)}", (Way.RESOLVE,)
        )
    failed = mine.filter(status=OperationStatus.FAILED).exclude(kind=OperationKind.EFFECT)
    if names := list(failed.values_list("pk", flat=True)):
        ways = "be tried again, says that it was done by hand, or gives it up"
        return Needed(f"a person lets {', '.join(names)} {ways} (flows resolve){_held_back(row, using)}", (Way.RESOLVE,))
    held = Commitment.objects.using(using).filter(
        workflow_id=row.pk, status__in=("active", "breached"), releasable=False, may_defer=False
    )
    if row.target and held.exists():
        listed = ", ".join(held.values_list("name", flat=True))
        return Needed(f"a person says what becomes of {listed}: fulfil, transfer or defer it (flows commitments)", (Way.SETTLE,))
    return None


def _held_back(row: Workflow, using: str) -> str:
    """What is not released before that; it may be needed."""
    names = [one.name for one in undoing.held_back(row.pk, using)]
    return f"; until then it keeps {', '.join(names)}" if names else ""


def _is_asked_about(row: Workflow, using: str) -> bool:
    """Whether a probe is going to ask about an effect of a workflow that stands still because of it."""
    doubts = Operation.objects.using(using).filter(workflow_id=row.pk, status=OperationStatus.UNCERTAIN, due_at__isnull=False)
    return row.status in (Status.WAITING, Status.PAUSED) and doubts.exists()


def _served(using: str) -> Needed:
    """Whether anybody services what is owed."""
    alive = Worker.objects.using(using).filter(status=WorkerStatus.ALIVE, lease_until__gt=Now(), queues__contains=["cleanup"])
    if alive.exists():
        return Needed("none: what it owes is serviced on the cleanup queue")
    return Needed("a worker: no live one serves the cleanup queue; start one (celery worker -Q cleanup,control)", (Way.WORKERS,))


def _is_offered(row: Workflow, using: str) -> bool:
    """Whether a live worker takes this definition from this queue, where it is placed; or one that migrates it when it takes it up."""
    taking = [row.flow_version, *(one.version for one in registry.at_wake(row.flow_name, row.flow_version)[-1:])]
    workers = Worker.objects.using(using).filter(
        status=WorkerStatus.ALIVE,
        lease_until__gt=Now(),  # leases are on real time
        queues__contains=[row.queue],
        definitions__overlap=[f"{row.flow_name}@{version}" for version in taking],
    )
    if row.release:
        workers = workers.filter(releases__overlap=[row.release, ANY])
    return (workers.filter(placements__contains=[row.placement]) if row.placement else workers).exists()

"""Why a run is not moving: the facts behind `flows.core.stillness`, out of what was read of it in one look."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.db.models.expressions import RawSQL

from flows import registry
from flows.core import stillness
from flows.core.holds import Scope, lines
from flows.core.protocol import Status
from flows.core.stillness import Facts, Hold, Reason, Trying, Waiting
from flows.core.verdicts import Way
from flows.models import Activity, Tick, Worker, Workflow
from flows.models import Hold as HoldRow
from flows.models.worker import WorkerStatus
from flows.services.waits_shown import WaitView
from flows.services.way_on import Needed
from flows.store.batch import Batch

#: The row of ticks is made with the first moment that there is, in seconds before now: ten years are never.
NEVER = 10 * 365 * 86_400.0


def looks(row: Workflow) -> dict[str, QuerySet[Any]]:
    """What has to be read beside the run's row."""
    ready = row.status == Status.RUNNABLE
    before = (
        Workflow.objects.filter(status=Status.RUNNABLE.value, queue=row.queue, rank__lt=row.rank)
        if ready
        else Workflow.objects.none()
    )
    # Leases are on real time.
    lives = RawSQL("status = %s AND lease_until > statement_timestamp()", [WorkerStatus.ALIVE.value])
    return {
        "ticks": Tick.objects.annotate(age=RawSQL("extract(epoch FROM statement_timestamp() - ticked_at)::float8", [])),
        "owners": Worker.objects.filter(Q(pk=row.worker_id)).only("name").annotate(lives=lives),
        "active": Activity.objects.filter(workflow_id=row.pk, seq=row.active_seq or 0).only(
            "seq", "attempt", "started_at", "timeout_at"
        ),
        "holds": _over(row),
        "before": before.only("id")[: stillness.MOST_AHEAD],
    }


def _over(row: Workflow) -> QuerySet[HoldRow]:
    """The open holds that it is under: of everything, of its flow, key or tenant, or of what its node needs."""
    node = registry.node(row.flow_name, row.flow_version, row.node)
    needed = [line.partition("\n")[0] for line in lines(row.flow_name, row.flow_version, [(row.node, node)])]
    mine = Q(scope=Scope.ALL.value) | Q(scope=Scope.FLOW.value, name=row.flow_name)
    for scope, name in ((Scope.KEY, row.key), (Scope.TENANT, row.tenant)):
        mine |= Q(scope=scope.value, name=name) if name else Q()
    if needed:
        mine |= Q(scope=Scope.DEPENDENCY.value, name__in=needed)
    return HoldRow.objects.filter(mine, lifted_at__isnull=True).order_by("pk")


def of(row: Workflow, found: Batch, waits: Sequence[WaitView], needed: Needed) -> list[Reason]:
    """The reasons, the first one first; none of a run that has ended. `found`: what `looks` asked for; `needed`: what people have to do."""
    tick = found.first("ticks")
    facts = Facts(
        status=row.status,
        node=row.node,
        now=found.now,
        since=row.updated_at,
        outcome=row.outcome,
        error_code=row.error_code,
        queue=row.queue,
        pausing=row.pause_requested_at is not None,
        owes=needed.servicing,
        needed=needed.says if needed.ways else "",
        unoffered=needed.ways[:1] == (Way.WORKERS,),
        ahead=len(found["before"]),
        unticked=timedelta(seconds=tick.age) if tick is not None and tick.age < NEVER else None,
        trying=_trying(row, found),
        holds=tuple(Hold(f"{one.get_scope_display().lower()} {one.name}".strip(), one.reason) for one in found["holds"]),
        waits=tuple(Waiting(one.kind, one.reason, one.ends, one.since, one.deadline, one.answered) for one in waits),
    )
    return list(stillness.why(facts))


def _trying(row: Workflow, found: Batch) -> Trying | None:
    activity, owner = found.first("active"), found.first("owners")
    if row.status != Status.RUNNING or activity is None:
        return None
    name = owner.name if owner is not None else str(row.worker_id)
    return Trying(activity.attempt, name, owner is not None and bool(owner.lives), activity.started_at, activity.timeout_at)

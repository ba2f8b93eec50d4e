"""A commitment over its deadline: it is breached by the timer sweep, and then told: an event, and what its deadline says.

    active ──► breached (with a notice)      the sweep, in one statement
    breached ──► told                        here, after that: an event `commitment.breached`, keyed by workflow; CANCEL cancels the workflow,
                                             ESCALATE tells the people that it names (RELEASE has released it: `flows.services.deadlines`)
Telling happens at least once, and its event has one id: twice is once. It is told also where the commitment has ended meanwhile.
"""

from __future__ import annotations

from flows.core.deadlines import BREACHED, KINDS
from flows.core.policies import CANCEL, ESCALATE
from flows.core.protocol import TimerKind
from flows.models import Commitment
from flows.models.commitment import LIVE
from flows.services import control, people
from flows.services.commitments import declared
from flows.services.events import signal
from flows.store import commitments as store
from flows.store.sql import committing

CODE = KINDS[TimerKind.COMMITMENT_DEADLINE].code


def tell(limit: int, using: str) -> int:
    """Tell of breaches that nobody was told of; how many."""
    rows = Commitment.objects.using(using).select_related("workflow").filter(breached_at__isnull=False, told_at__isnull=True)
    told = 0
    for row in rows.order_by("breached_at")[:limit]:
        body = {"workflow": str(row.workflow_id), "commitment": row.name, "kind": row.kind, "reference": row.reference}
        signal(f"{BREACHED}/{row.pk}", BREACHED, key=str(row.workflow_id), payload=body, using=using)
        found = declared(row)
        deadline = found.deadline if found is not None else None
        if deadline is not None and deadline.then is CANCEL and row.status in LIVE:
            control.cancel(row.workflow_id, reason=f"commitment {row.name} is breached", using=using)
        with committing("told of breach", using):
            first = store.told(row.pk, using)
            if first and deadline is not None and deadline.then is ESCALATE:
                people.tell(row.workflow_id, deadline.escalate_to, CODE, CODE, using)
        told += first
    return told

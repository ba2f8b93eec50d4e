"""A commitment over its deadline: it is breached by the timer sweep, and then told: an event, and what its deadline says.

    active ──► breached (with a notice)      the sweep, in one statement
    breached ──► told                        here, after that: an event `commitment.breached`, keyed by workflow; CANCEL cancels the workflow
Telling happens at least once, and its event has one id: twice is once.
"""

from __future__ import annotations

from flows.core.policies import CANCEL
from flows.models import Commitment
from flows.services import control
from flows.services.commitments import declared
from flows.services.events import signal
from flows.store import commitments as store

EVENT = "commitment.breached"


def tell(limit: int, using: str) -> int:
    """Tell of breaches that nobody was told of; how many."""
    rows = Commitment.objects.using(using).select_related("workflow").filter(status="breached", told_at__isnull=True)
    told = 0
    for row in rows.order_by("breached_at")[:limit]:
        body = {"workflow": str(row.workflow_id), "commitment": row.name, "kind": row.kind, "reference": row.reference}
        signal(f"{EVENT}/{row.pk}", EVENT, key=str(row.workflow_id), payload=body, using=using)
        found = declared(row)
        if found is not None and found.deadline is not None and found.deadline.then is CANCEL:
            control.cancel(row.workflow_id, reason=f"commitment {row.name} is breached", using=using)
        told += store.told(row.pk, using)
    return told

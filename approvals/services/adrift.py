"""Mends what the liveness scan finds of requests: a question to which nobody waits for the answer is withdrawn.

    pending ──► cancelled      the workflow locked, and only where its wait is closed, or its run has ended
A wait behind which nobody is asked is a person's: nobody can know what was to be asked of whom.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from approvals.models import Request
from approvals.services.notices import owing
from approvals.store import requests as store
from approvals.store.adrift import ADRIFT
from flows.core.protocol import TERMINAL
from flows.models import Wait
from flows.services.liveness.searches import Search
from flows.store import locks


def withdraw(using: str, facts: Mapping[str, Any]) -> bool:
    """Withdraw that request; False: it is wanted, or it is not about one."""
    number = facts.get("request")
    row = Request.objects.using(using).filter(pk=number, status="pending").first() if number is not None else None
    if row is None or not locks.free_workflows([row.workflow_id], using):
        return False
    ended = row.workflow.status in {status.value for status in TERMINAL}
    if not ended and (row.tool or Wait.objects.using(using).filter(pk=row.wait_id, status="open").exists()):
        return False
    gone = store.retire([row.pk], using)
    owing.withdrawn(gone, using)
    return bool(gone)


SEARCH = Search(ADRIFT, withdraw)

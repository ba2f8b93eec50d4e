"""The children of a run as people and programs see them, and a second try for those that have failed.

    failed, cancelled ──► planned, under a new id ──► started after the commit     while the fan is open, by who may operate runs, with a reason
Guard: as a count: intent shared, parent locked, fan locked and open. A child that has failed stays in the record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flows.core.errors import PayloadError
from flows.core.ids import new_id
from flows.core.joins import CANCELLED, FAILED
from flows.models import Branch, Fan, FanStatus
from flows.services import identify, warrant
from flows.services.children import counting
from flows.store import branches, locks
from flows.store import fans as store
from flows.store.sql import committing

PERMISSION = "outlast_flows.operate_workflow"
PAGE = 500


@dataclass(frozen=True, slots=True)
class ChildShown:
    """One branch: of which node and visit, its number and name, the id of its run, how it stands, and why it failed."""

    node: str
    visit: int
    number: int
    name: str
    id: UUID
    status: str
    outcome: str
    code: str | None


def children(
    workflow: Any, *, failed: bool = False, after: int = 0, limit: int = PAGE, using: str | None = None
) -> list[ChildShown]:
    """The children of a run, by node, visit and number; not all are started yet (`status` planned).

    Args:
        failed: only those that failed or were cancelled. after: of each fan, only numbers after this one. limit: at most so many of each fan.
    Raises:
        UnknownWorkflow: there is none. PayloadError: `after` or `limit` is no number of rows.
    """
    given: tuple[tuple[str, Any], ...] = (("after=", after), ("limit=", limit))
    for option, value in given:
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
            raise PayloadError(option, f"is a whole number from 0, got {value!r:.60}")
    alias = identify.alias(using)
    run = identify.get(workflow, alias)
    statuses = (FAILED, CANCELLED) if failed else None
    return [
        ChildShown(fan.node, fan.visit, row.number, row.name, row.child, row.status, row.outcome, row.error_code)
        for fan in Fan.objects.using(alias).filter(workflow_id=run.pk).order_by("pk")
        for row in branches.page(fan.pk, after, limit, alias, statuses)
    ]


def listed(fan: Fan, after: int, limit: int, using: str) -> list[Branch]:
    """Its children in order, those after that number, without what they were given and answered."""
    rows = Branch.objects.using(using).filter(fan_id=fan.pk, number__gt=after).defer("input", "result")
    return list(rows.order_by("number")[:limit])


def retry_failed(workflow: Any, *, by: Any = None, reason: str = "", using: str | None = None) -> int:
    """Run the failed items of a run anew, each as a new run, while their fan is open; how many.

    Raises:
        UnknownWorkflow: there is none. NotPermitted: `by` may not operate runs. ReasonMissing: a user says not why.
    """
    alias = identify.alias(using)
    warrant.check(by, PERMISSION, alias)
    if by is not None:
        warrant.reason(reason, "why its failed items are run anew")
    run = identify.get(workflow, alias)
    count = 0
    for fan_id in (
        Fan.objects.using(alias).filter(workflow_id=run.pk, status=FanStatus.OPEN).order_by("pk").values_list("pk", flat=True)
    ):
        with committing("children again", alias):
            locks.intent(run.intent_id, alias, shared=True)
            locks.workflows([run.pk], alias)
            fan = store.lock(fan_id, alias)
            if fan is None or fan.status != FanStatus.OPEN:
                continue
            bad = branches.page(fan.id, 0, fan.counters.total, alias, (FAILED, CANCELLED))
            count += branches.again(fan.id, [(row.number, new_id()) for row in bad], alias) if bad else 0
            counting.after_commit(fan.id, alias)
    return count

"""What the page of a workflow reads of the record: one statement for all its sections, each a page at a time."""

from __future__ import annotations

from typing import Any

from django.db.models import Case, F, Q, QuerySet, Value, When

from flows.admin.paging import Pages
from flows.core.deadlines import KINDS, OF_WAITS
from flows.core.joins import CANCELLED, FAILED
from flows.models import (
    Activity,
    Attempt,
    Branch,
    Budget,
    Candidate,
    Commitment,
    Event,
    Fan,
    JournalEntry,
    Operation,
    Release,
    Timer,
    Transition,
    Verdict,
    Wait,
    Workflow,
)
from flows.store import batch
from flows.store.batch import Batch

#: Deadlines of waits stand with the waits.
OWN = [kind for kind, one in KINDS.items() if one.name not in OF_WAITS]
#: So many groups of children are shown, the newest first; and timers that are to come.
FANS = TIMERS = 20
#: The events that the waits of a run have taken; of waits for several, those of their parts.
TAKEN = """outlast_event.id = ANY (ARRAY (
    SELECT w.event_id FROM outlast_wait w WHERE w.workflow_id = %s AND w.event_id IS NOT NULL
    UNION ALL
    SELECT p.event_id FROM outlast_wait w JOIN outlast_wait_part p ON p.wait_id = w.id WHERE w.workflow_id = %s AND p.event_id IS NOT NULL))"""


def read(obj: Workflow, pages: Pages, using: str) -> Batch:
    """The rows of every section."""
    mine: dict[str, Any] = {"workflow_id": obj.pk}
    sections: dict[str, QuerySet[Any]] = {
        "waits": Wait.objects.filter(**mine)
        .defer("state_versions", "result")
        .order_by(F("closed_at").desc(nulls_first=True), "-pk"),
        "deadlines": Timer.objects.filter(**mine, kind__in=OWN).order_by("-due_at", "-pk"),
        "effects": Operation.objects.filter(**mine).defer("request", "evidence").order_by("-activity_seq", "-pk"),
        "commitments": Commitment.objects.filter(**mine).defer("terms").order_by("-pk"),
        "events": Event.objects.extra(where=[TAKEN], params=[obj.pk, obj.pk]).defer("payload").order_by("-pk"),  # noqa: S610 - no value of others
        "verdicts": Verdict.objects.filter(**mine).order_by("-pk"),
        "candidates": Candidate.objects.filter(**mine).order_by("-pk"),
        "turns": JournalEntry.objects.filter(**mine).order_by("-activity_seq", "-number"),
        "timeline": Transition.objects.filter(**mine).order_by("-seq"),
        "activities": Activity.objects.filter(**mine).defer("notes", "result").order_by("-seq"),
        "attempts": Attempt.objects.filter(**mine).defer("late_result").order_by("-activity_seq", "-number"),
    }
    relatives = [one for one in (obj.parent_id, obj.chain, obj.continued_to) if one is not None]
    groups = Fan.objects.filter(**mine).order_by("-pk")[:FANS]
    wrong = Branch.objects.filter(fan__in=groups.values("pk"), status__in=(FAILED, CANCELLED)).defer("input", "result")
    first = Case(When(status=FAILED, then=Value(0)), default=Value(1))
    return batch.read(
        using,
        **{name: pages.part(name, rows) for name, rows in sections.items()},
        timers=Timer.objects.filter(**mine, status="pending").order_by("due_at")[:TIMERS],
        budgets=Budget.objects.filter(Q(workflow_id__in=obj.ledgers or [obj.pk]) | Q(intent_id=obj.intent_id)).order_by("pk"),
        fans=Fan.objects.filter(**mine).order_by("-pk")[: FANS + 1],
        wrong=wrong.order_by("fan_id", first, "number").distinct("fan_id"),
        relatives=Workflow.objects.filter(pk__in=relatives).only("pk", "flow_name", "key"),
        releases=Release.objects.filter(name=obj.release).only("pk", "name"),
    )

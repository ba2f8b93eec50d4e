"""The tables of the durable plane whose rows belong to a run, and those whose rows go by their own age."""

from __future__ import annotations

from flows.core.belonging import Belonging, Span
from flows.core.protocol import LIVE
from flows.models.commitment import LIVE as LIVE_COMMITMENTS
from flows.store.sql import literals

_LIVE = literals(sorted(status.value for status in LIVE))
_OPERATION = ("operation_id", "outlast_operation", "id")
_BUDGET = ("budget_id", "outlast_budget", "id")
_FAN = ("fan_id", "outlast_fan", "id")

#: In the order in which they are deleted: what hangs on another goes before it, the run itself last.
BELONGINGS = (
    Belonging("outlast_resolution", "id", through=_OPERATION, values=("evidence",), texts=("reason",)),
    Belonging(
        "outlast_commitment",
        "id",
        unfinished=f"t.status IN ({literals(LIVE_COMMITMENTS)})",
        values=("terms",),
        texts=("reason",),
    ),
    Belonging(
        "outlast_operation",
        "id",
        unfinished="t.status IN ('in_flight', 'uncertain') OR t.due_at IS NOT NULL OR t.worker_id IS NOT NULL",
        values=("request", "evidence"),
    ),
    Belonging("outlast_journal", "activity_seq, number", values=("request", "answer")),
    Belonging("outlast_verdict", "id"),
    Belonging("outlast_observation", "id"),
    Belonging("outlast_verification", "id"),
    Belonging("outlast_candidate", "id"),
    Belonging("outlast_budget_entry", "id", through=_BUDGET),
    Belonging("outlast_budget", "id", unfinished="t.reserved > 0"),
    Belonging("outlast_timer", "id", unfinished="t.untold"),
    Belonging("outlast_wait_part", "id", values=("evidence",)),
    Belonging("outlast_wait", "id", values=("evidence", "result")),
    Belonging("outlast_branch", "number", through=_FAN, values=("input", "result")),
    Belonging("outlast_fan", "id"),
    Belonging("outlast_attempt", "activity_seq, number", values=("late_result",)),
    Belonging("outlast_activity", "seq", values=("notes", "result")),
    Belonging("outlast_deferred", "workflow_id"),
    Belonging(
        "outlast_bulk_item",
        "bulk_id",
        unfinished="t.done_at IS NULL AND EXISTS (SELECT FROM outlast_bulk b WHERE b.id = t.bulk_id AND b.status = 'running')",
    ),
    Belonging("outlast_session_link", "id"),
    Belonging("outlast_transition", "seq"),
    Belonging(
        "outlast_intent_revision", "id", column="id", through=("intent_id", "outlast_workflow", "intent_id"), deleted=False
    ),
    Belonging("outlast_intent", "id", column="id", through=("id", "outlast_workflow", "intent_id"), deleted=False),
    Belonging("outlast_workflow", "id", column="id", values=("input", "result", "checkpoint"), texts=("subject",)),
)

SPANS = (
    Span(
        "events",
        "outlast_event",
        "observed_at",
        done=(
            "t.status IN ('consumed', 'conflict', 'aside') AND NOT EXISTS "
            f"(SELECT FROM outlast_workflow w WHERE w.id = t.workflow_id AND w.status IN ({_LIVE}))"
        ),
        hanging=(("outlast_redelivery", "event_id"),),
    ),
    Span("deliveries", "outlast_webhook_delivery", "seen_at", done="t.verdict IN ('accepted', 'ignored')", grows="received_at"),
    Span("findings", "outlast_finding", "last_seen", done="t.closed_at IS NOT NULL", grows="first_seen"),
    Span("refusals", "outlast_webhook_refusal", "hour"),
    Span("notices", "outlast_notice", "created_at", done="(t.sent_at IS NOT NULL OR t.gave_up_at IS NOT NULL)"),
)

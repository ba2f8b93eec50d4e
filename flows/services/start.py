"""Start workflows: idempotent by key, atomic with the caller's own transaction, hinted after commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import Any

from flows.core import payload
from flows.core.definition import Flow
from flows.core.misuse import UsageError
from flows.models import SessionLink
from flows.services import identify
from flows.services.clock import now
from flows.services.debounce import DEBOUNCED
from flows.services.starting import Origin, Started, start_runs
from flows.store.sql import committing


def start(
    flow: type[Flow],
    input: Mapping[str, Any] | None = None,
    *,
    key: str | None = None,
    intent: Any = None,
    goal: str = "",
    by: Any = None,
    subject: Any = None,
    session: str | None = None,
    priority: int = 0,
    admit: bool = True,
    using: str | None = None,
) -> Started:
    """Start one run, or get the run that this key names already.

    Args:
        input: a JSON object. key: unique per flow for ever; the same key and input give the existing run, `created=False`.
        intent: an existing intent to work for; without it a new one is made, with `goal` as its text. Where it has had another goal,
            the flow's `Budget(on_new_intent=…)` says what the run may use.
        by: the accountable user. subject: the object that the run is about. session: a chat session to link.
        priority: higher is sooner; one step is worth PRIORITY_SECONDS of waiting.
        admit: False where it must begin although the flow has no room for new runs (`Meta.admission`).
    Raises:
        KeyConflict: the key is taken by another input. PayloadError: the input cannot be stored.
        UnknownIntent, IntentClosed: the intent is not there, or not active and the run is new. NotAUser: `by` is no stored user.
        AdmissionRefused: the flow has no room for a new run, and refuses then.
    """
    runs = [(key, {} if input is None else input)]
    with committing("start", identify.alias(using)) if session else nullcontext():
        (started,) = start_many(
            flow, runs, intent=intent, goal=goal, by=by, subject=subject, priority=priority, admit=admit, using=using
        )
        if session and started.status == DEBOUNCED:
            raise UsageError(
                f"{flow.__name__} puts its starts off, so there is no run yet to link to {session!r:.80}: link it when it is there."
            )
        if session:
            link(started.id, session, using=using)
    return started


def start_many(
    flow: type[Flow],
    runs: Iterable[tuple[str | None, Mapping[str, Any]]],
    *,
    intent: Any = None,
    goal: str = "",
    by: Any = None,
    subject: Any = None,
    priority: int = 0,
    admit: bool = True,
    using: str | None = None,
) -> list[Started]:
    """Start many runs of one flow as (key, input), in one statement; the answers come in the order given. Same rules as `start`."""
    user, label = identify.user_key(by), identify.label(by)
    origin = Origin(intent=intent, goal=goal, user_id=user, user_label=label, subject=subject, priority=priority, admit=admit)
    return start_runs(flow.definition, runs, origin, identify.alias(using))


def link(workflow: Any, session: str, *, using: str | None = None) -> bool:
    """Link a workflow to a chat session; True if the link is new. A run may have many sessions, a session many runs.

    Raises:
        UnknownWorkflow: there is none. PayloadError: the session's name cannot be stored.
    """
    alias = identify.alias(using)
    payload.check_name(session, "the session")
    row = identify.get(workflow, alias)
    _, created = SessionLink.objects.using(alias).get_or_create(
        workflow_id=row.pk, session=session, defaults={"linked_at": now(alias)}
    )
    return created


__all__ = ["Started", "link", "start", "start_many"]

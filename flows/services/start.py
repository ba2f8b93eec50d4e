"""Start workflows: idempotent by key, atomic with the caller's own transaction, hinted after commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flows.conf import conf
from flows.core import canonical, deadlines, payload
from flows.core.definition import Definition, Flow
from flows.core.errors import IntentClosed, KeyConflict, PayloadError, UnknownIntent
from flows.core.ids import new_id
from flows.core.nodes.activity import Activity
from flows.core.nodes.pipeline import Pipeline
from flows.core.protocol import IntentStatus
from flows.models import SessionLink
from flows.services import identify, inherit
from flows.services.clock import now
from flows.services.hinting import hint_ready
from flows.store import locks
from flows.store import start as store
from flows.store.gate import policy
from flows.store.sql import committing

MAX_PRIORITY = 32767


@dataclass(frozen=True, slots=True)
class Started:
    """The answer of a start: the run that has this key now. `created` says whether this call made it."""

    id: UUID
    key: str | None
    intent_id: UUID
    status: str
    outcome: str
    created: bool

    def __str__(self) -> str:
        return str(self.id)


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
    using: str | None = None,
) -> Started:
    """Start one run, or get the run that this key names already.

    Args:
        input: a JSON object. key: unique per flow for ever; the same key and input give the existing run, `created=False`.
        intent: an existing intent to work for; without it a new one is made, with `goal` as its text. Where it has had another goal,
            the flow's `Budget(on_new_intent=…)` says what the run may use.
        by: the accountable user. subject: the object that the run is about. session: a chat session to link.
        priority: higher is sooner; one step is worth PRIORITY_SECONDS of waiting.
    Raises:
        KeyConflict: the key is taken by another input. PayloadError: the input cannot be stored.
        UnknownIntent, IntentClosed: the intent is not there, or not active and the run is new. NotAUser: `by` is no stored user.
    """
    runs = [(key, {} if input is None else input)]
    with committing("start", identify.alias(using)) if session else nullcontext():
        (started,) = start_many(flow, runs, intent=intent, goal=goal, by=by, subject=subject, priority=priority, using=using)
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
    using: str | None = None,
) -> list[Started]:
    """Start many runs of one flow as (key, input), in one statement; the answers come in the order given. Same rules as `start`."""
    alias = identify.alias(using)
    identify.user(by)
    definition = flow.definition
    _check_priority(priority, definition)
    prepared = [_prepare(definition, key, value, goal, subject) for key, value in runs]
    unique = _without_repeats(definition, prepared)
    if not unique:
        return []
    # One run without a given intent is one statement, and needs no transaction around it.
    with committing("start", alias) if intent is not None or len(unique) > 1 else nullcontext():
        version = 1
        try:
            if intent is not None:
                intent_id, version = _share_intent(intent, alias)
                unique = [_for_intent(new, intent_id) for new in unique]
            rows = store.start(unique, _common(definition, by, priority, version, own_intent=intent is None, using=alias), alias)
        except IntentClosed:  # what was started under it before is still the answer to the same call
            rows = store.taken(definition.name, [new.key for new in unique if new.key], alias)
            if len(rows) < len(unique):
                raise
        created = {row.id for row in rows if row.created}
        if len(rows) < len(unique):
            rows += store.taken(definition.name, [new.key for new in unique if new.id not in created and new.key], alias)
        made = {row.key if row.key is not None else row.id: row for row in rows}
        if version > 1:
            inherit.carry(definition, [new.id for new in unique if new.id in created], intent_id, version, alias)
        answers = [_answer(definition, new, made) for new in prepared]
        ready = [(row.id, _queue(definition), definition.name, definition.start) for row in rows if row.created]
        hint_ready(ready, alias)
    return answers


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


def _prepare(definition: Definition, key: str | None, value: Mapping[str, Any], goal: str, subject: Any) -> store.NewWorkflow:
    producer = f"the input of {definition.name}"
    _check_object(value, producer)
    if key is not None:
        payload.check_name(key, f"the key of {definition.name}")
    payload.check_text(goal, f"the goal of {definition.name}", payload.MAX_TEXT)
    text = payload.encode(dict(value), producer, conf.MAX_INPUT_BYTES)
    digest = canonical.digest(dict(value), producer)
    new = new_id()
    return store.NewWorkflow(
        new, new, key, text, digest, goal.strip() or f"{definition.name} {key or ''}".strip(), _subject(subject)
    )


def _check_priority(priority: object, definition: Definition) -> None:
    if not isinstance(priority, int) or abs(priority) > MAX_PRIORITY:
        raise PayloadError(
            f"the priority of {definition.name}", f"must be a whole number up to {MAX_PRIORITY}, got {priority!r:.80}"
        )


def _check_object(value: object, producer: str) -> None:
    if not isinstance(value, Mapping):
        raise PayloadError(producer, f"must be an object (a dict), got {type(value).__name__}")


def _subject(subject: Any) -> str:
    meta = getattr(subject, "_meta", None)
    text = f"{meta.label_lower}:{subject.pk}" if meta is not None else str(subject or "")
    payload.check_text(text, "the subject", payload.MAX_TEXT)
    return text


def _for_intent(new: store.NewWorkflow, intent_id: UUID) -> store.NewWorkflow:
    return store.NewWorkflow(new.id, intent_id, new.key, new.input, new.digest, new.goal, new.subject)


def _without_repeats(definition: Definition, prepared: Sequence[store.NewWorkflow]) -> list[store.NewWorkflow]:
    seen: dict[str, store.NewWorkflow] = {}
    unique = []
    for new in prepared:
        if new.key is not None and new.key in seen:
            if seen[new.key].digest != new.digest:
                raise KeyConflict(definition.name, new.key)
            continue
        if new.key is not None:
            seen[new.key] = new
        unique.append(new)
    return unique


def _share_intent(intent: Any, using: str) -> tuple[UUID, int]:
    intent_id = identify.intent_id(intent)
    found = locks.intent(intent_id, using, shared=True)
    if found is None:
        raise UnknownIntent(intent)
    version, status = found
    if status != IntentStatus.ACTIVE:
        raise IntentClosed(intent_id, status)
    return intent_id, version


def _queue(definition: Definition) -> str:
    first = definition.nodes[definition.start]
    return first.queue if isinstance(first, Activity) else "agents"


def _common(
    definition: Definition, by: Any, priority: int, intent_version: int, *, own_intent: bool, using: str
) -> dict[str, Any]:
    first = definition.nodes[definition.start]
    opens = isinstance(first, Activity) and first.gate is None
    step = first.steps[0] if isinstance(first, Pipeline) else None
    timeout = step.timeout if step else first.timeout if isinstance(first, Activity) else None
    return {
        "flow": definition.name,
        "flow_version": definition.version,
        "fingerprint": definition.fingerprint,
        "node": definition.start,
        "step": step.name if step else "",
        "opens": opens,
        "timeout": timeout.total_seconds() if timeout else 0.0,
        "queue": _queue(definition),
        "placement": first.placement if isinstance(first, Activity) else "",
        "priority": priority,
        "priority_seconds": conf.PRIORITY_SECONDS,
        "deadline": definition.deadline.after if definition.deadline else None,
        **deadlines.from_the_start(definition),
        "intent_version": intent_version,
        "own_intent": own_intent,
        "user": identify.user_key(by),
        "user_label": identify.label(by),
        "release": None,
        "policy": f"{definition.policy}@{policy(definition.policy, 0, using).version}" if definition.policy else "",
    }


def _answer(definition: Definition, new: store.NewWorkflow, made: Mapping[Any, store.StartedRow]) -> Started:
    row = made[new.key if new.key is not None else new.id]
    if row.digest != new.digest:
        raise KeyConflict(definition.name, str(new.key))
    return Started(row.id, row.key, row.intent_id, row.status, row.outcome, row.created)

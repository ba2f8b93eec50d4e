"""Starts that are put off, and runs that replace older ones: what stands in the row of a start key before, and with, the start.

    start of a flow with debounce ──► the key's row: newest input, due a pause later, at most ten pauses after the first   one statement
    start of a flow with newest ────► the key's row locked ──► started ──► it names the newest, and the older one is to be ended
Guard: the row. Races: two calls: one after the other; a call and the firing: the firing holds the row, and a call after it begins anew.
What follows is `flows.services.debounced`: the watches that start what is due, and end what is older, each in a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import transaction

from flows.conf import conf
from flows.core import payload
from flows.core.admission import MOST_PAUSES, Admission, key_of
from flows.core.definition import Definition
from flows.core.ids import new_id
from flows.dispatch import look_soon
from flows.services.identify import subject_text
from flows.store import start_keys as store
from flows.store.sql import dumps

if TYPE_CHECKING:
    from flows.services.starting import Origin

#: The names of the looks at what is due, and at what is older; and what their keys begin with.
DEBOUNCE, NEWEST = "debounce", "newest"
#: What a start answers as its status that was put off.
DEBOUNCED = "debounced"
#: Longer pauses are the tick's: it looks every second.
SHORT = timedelta(seconds=1.2)


def pause_of(definition: Definition, origin: Origin) -> timedelta | None:
    """The pause in which starts of this flow become one; None: they begin at once."""
    said = definition.admission
    puts_off = isinstance(said, Admission) and origin.counted and origin.ids is None
    return said.debounce if puts_off and isinstance(said, Admission) else None


def put_off(
    definition: Definition, runs: Iterable[tuple[str | None, Mapping[str, Any]]], origin: Origin, pause: timedelta, using: str
) -> list[UUID]:
    """Put these starts off; the ids that their runs will have, in the order given. The key of a start tells which belong together where the
    flow has none of its own; the run has no key, for that would name one run for ever.

    Raises:
        PayloadError: an input or a key cannot be stored.
    """
    said = definition.admission
    assert isinstance(said, Admission)
    given = [(_key(definition, said, key, value), _encoded(definition, value)) for key, value in runs]
    ids: dict[str, UUID] = {}
    with transaction.atomic(using=using):
        for key, text in sorted(dict(given).items()):
            kept = dumps(_kept(origin))
            ids[key] = store.put_off(definition.name, key, text, kept, new_id(), pause, pause * MOST_PAUSES, using)
    if pause <= SHORT:
        transaction.on_commit(lambda: look_soon(pause.total_seconds(), DEBOUNCE), using=using)
    return [ids[key] for key, _ in given]


def _key(definition: Definition, said: Admission, key: str | None, value: Mapping[str, Any]) -> str:
    own = key_of(said.key, value, f"the admission key of {definition.name}") if said.key is not None else key or ""
    if own:
        payload.check_name(own, f"the key of {definition.name}")
    return f"{DEBOUNCE}:{own}"


def _encoded(definition: Definition, value: Mapping[str, Any]) -> str:
    return payload.encode(dict(value), f"the input of {definition.name}", conf.MAX_INPUT_BYTES)


def _kept(origin: Origin) -> dict[str, Any]:
    """What else the start said, as JSON."""
    user = origin.user_id if isinstance(origin.user_id, int | str | None) else str(origin.user_id)
    return {
        "intent": str(origin.intent) if origin.intent is not None else None,
        "goal": origin.goal,
        "user_id": user,
        "user_label": origin.user_label,
        "subject": subject_text(origin.subject),
        "priority": origin.priority,
        "tenant": origin.tenant,
        "started_by": origin.started_by,
    }


def newest_of(definition: Definition, origin: Origin) -> Callable[[Any], Any] | None:
    """The function that says of which key a new run of this flow is the newest; None: they replace nobody."""
    said = definition.admission
    return said.newest if isinstance(said, Admission) and origin.counted else None


def lock_newest(
    definition: Definition, function: Callable[[Any], Any], runs: Sequence[tuple[UUID, Mapping[str, Any]]], using: str
) -> dict[UUID, str]:
    """Lock the keys of runs that are about to be started, given as (id, input), in order; id → key of those that have one."""
    found = {run: key_of(function, value, f"the newest key of {definition.name}") for run, value in runs}
    keys = {run: f"{NEWEST}:{key}" for run, key in found.items() if key}
    for key in sorted(set(keys.values())):
        store.lock(definition.name, key, using)
    return keys


def lock_ahead(definition: Definition, runs: Iterable[tuple[str | None, Any]], using: str) -> None:
    """Lock the rows of starts, given as (key, input), before an intent that is locked for longer: who starts takes them in that order.

    Raises:
        PayloadError: a key cannot be stored.
    """
    said = definition.admission
    if not isinstance(said, Admission):
        return
    keys: set[str] = set()
    for key, value in runs:
        if not isinstance(value, Mapping):  # the start says what is wrong with it
            continue
        if said.debounce is not None:
            keys.add(_key(definition, said, key, value))
        if said.newest is not None and (found := key_of(said.newest, value, f"the newest key of {definition.name}")):
            keys.add(f"{NEWEST}:{found}")
    for key in sorted(keys):
        store.lock(definition.name, key, using)


def replace_older(definition: Definition, keys: Sequence[tuple[UUID, str]], using: str) -> None:
    """These runs were started, in this order: each is the newest of its key now."""
    for run, key in keys:
        store.newest(definition.name, key, run, using)
    if keys:
        transaction.on_commit(lambda: look_soon(0, NEWEST), using=using)

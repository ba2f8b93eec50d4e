"""Bulk: one verb for all runs that a filter finds, as a durable job that says of each run what became of it.

    – ──► running      make    one statement: the bulk, and an item for each run that the filter finds at that moment
    item – ──► done    do      bulk shared and item locked ──► the verb of `control`, with the rights of who asked, now ──► code, sentence
    running ──► done   end     nothing is left of it
    running ──► stopped  stop  a person, with a reason; what is left is left
Guards: an item by `done_at IS NULL`, the bulk by its status. Each item is a transaction of its own, so that a crash loses at most one, which is
done again. Races: two looks at one item: SKIP LOCKED, one of them does it. Stop against an item: the item holds its bulk shared, so a stop
waits for it, and after the stop's answer nothing more is done. What matches the filter later is not in it.
It is a watch of the tick: at most `BATCH` items a look, and while some are left it asks for its own next look.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.core.exceptions import EmptyResultSet
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import QuerySet

from flows.core import payload
from flows.core.errors import OutlastError
from flows.core.misuse import CannotBulk, NotPermitted
from flows.dispatch import look_soon
from flows.models import Bulk, Workflow
from flows.registry import Watch
from flows.services import control, identify, migrate, warrant
from flows.services.apart import apart
from flows.store import bulk as store
from flows.store import locks
from flows.store.sql import committing

logger = logging.getLogger("outlast.flows")

PERMISSION = "outlast_flows.operate_workflow"
#: So many runs one bulk is about at most.
MOST = 100_000
#: So many are done in one look.
BATCH = 50
WATCH_NAME = "bulk"
#: The code of an item whose verb failed in a way that nobody foresaw; the log has the rest.
FAULT = "FAULT"

NO_RUN = "No run matches: nothing is to be done."
#: Codes that say that it is as it was asked for.
AS_ASKED = ("accepted", "already", "migrated")

Told = tuple[str, str]


def _controlled(act: Callable[..., control.Controlled]) -> Callable[..., Told]:
    def done(workflow: UUID, **given: Any) -> Told:
        found = act(workflow, **given)
        return found.answer.value, f"its status is {found.status}"

    return done


def _migrate(workflow: UUID, *, to: int | None = None, **given: Any) -> Told:
    found = migrate.migrate(workflow, to=to, **given)
    return found.answer.value, found.reason or f"from version {found.from_version} to {found.to_version}"


#: Verb → what does it to one run. Each answers with a code and a sentence.
VERBS: Mapping[str, Callable[..., Told]] = {
    "cancel": _controlled(control.cancel),
    "pause": _controlled(control.pause),
    "resume": _controlled(control.resume),
    "migrate": _migrate,
}
#: Verb → the names of its arguments.
ARGUMENTS: Mapping[str, frozenset[str]] = {"migrate": frozenset({"to"}), "resume": frozenset({"at"})}
#: Filter of `chosen` → the column that it compares.
COLUMNS = {
    "flow": "flow_name",
    "version": "flow_version",
    "status": "status",
    "outcome": "outcome",
    "code": "error_code",
    "node": "node",
    "release": "release",
    "tenant": "tenant",
    "key": "key",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """A bulk, and how far it is. `counts`: code → how many runs it became of; `left`: so many nothing was done to."""

    id: int
    verb: str
    filter: Any
    arguments: Any
    by: str
    reason: str
    status: str
    total: int
    left: int
    counts: dict[str, int]
    made_at: datetime
    ended_at: datetime | None


def chosen(*, using: str, **filters: Any) -> QuerySet[Workflow]:
    """The runs for which all of these hold (flow, version, status, outcome, code, node, release, tenant, key), the oldest first.

    Raises:
        CannotBulk: none is given, or there is no such filter.
    """
    given = {name: value for name, value in filters.items() if value is not None}
    if unknown := sorted(given.keys() - COLUMNS.keys()):
        raise CannotBulk(f"There is no filter {unknown[0]!r:.60}: choose by {', '.join(COLUMNS)}.")
    for name, value in given.items():
        sound = (
            isinstance(value, int) and abs(value) < 2**31
            if name == "version"
            else isinstance(value, str) and payload.is_text(value)
        )
        if not sound or isinstance(value, bool):
            raise CannotBulk(f"The filter {name} is {value!r:.60}: give {'a number' if name == 'version' else 'text'}.")
    if not given:
        raise CannotBulk(f"Say which runs: by {', '.join(COLUMNS)}. Of everything there is no bulk operation; that is a hold.")
    return Workflow.objects.using(using).filter(**{COLUMNS[name]: value for name, value in given.items()}).order_by("id")


def make(
    verb: str,
    runs: QuerySet[Workflow],
    *,
    filter: Mapping[str, Any],
    reason: str,
    arguments: Mapping[str, Any] | None = None,
    by: Any = None,
    seen: int | None = None,
    using: str | None = None,
) -> Shown:
    """Have a verb done to all these runs, as they are found at this moment.

    Args:
        runs: what the filter finds. filter: the same in words, as it is shown. arguments: of the verb: `to` of migrate, a version; `at`
            of resume, the node where runs go on that a gate has stopped (`flows.resume`).
        reason: why; it is the reason of each. by: with whose rights it is done. seen: how many somebody has seen; more than those are refused.
    Raises:
        CannotBulk: no such verb or argument, nothing is found, more than 100,000, or more than were seen.
        NotAUser. ReasonMissing. NotPermitted: `by` lacks `operate_workflow`.
    """
    alias = identify.alias(using)
    warrant.check(by, PERMISSION, alias)
    text = warrant.reason(reason, "why this is done to them")
    given = dict(arguments or {})
    if verb not in VERBS:
        raise CannotBulk(f"There is no verb {verb!r:.60}: choose {', '.join(VERBS)}.")
    if unknown := sorted(given.keys() - ARGUMENTS.get(verb, frozenset())):
        raise CannotBulk(f"{verb} takes no {unknown[0]!r:.60}.")
    if "at" in given and not payload.is_name(given["at"]):
        raise CannotBulk(f"{given['at']!r:.60} is no name of a node.")
    new = store.New(verb, dict(filter), given, identify.user_key(by), identify.label(by), text)
    try:
        statement, params = runs.order_by().values("id").query.get_compiler(alias).as_sql()
    except EmptyResultSet:  # known before it is asked for
        raise CannotBulk(NO_RUN) from None
    with committing("make bulk", alias):
        made, total = store.make(statement, params, new, MOST, alias)
        if not total:
            raise CannotBulk(NO_RUN)
        if total > MOST:
            raise CannotBulk(f"More than {MOST:,} runs match: narrow the filter, or hold them (flows hold) and go on in parts.")
        if seen is not None and total > seen:
            raise CannotBulk(f"{total:,} runs match now, and {seen:,} did when you looked: look again.")
        transaction.on_commit(lambda: look_soon(0, WATCH_NAME), using=alias)
    return show(made, using=alias)


def stop(bulk: int, *, reason: str, by: Any = None, using: str | None = None) -> bool:
    """Do no more of it; what is done is done. False: it was over already.

    Raises:
        CannotBulk: there is none of that number. Else as `make`.
    """
    alias = identify.alias(using)
    warrant.check(by, PERMISSION, alias)
    text = warrant.reason(reason, "why no more of it is done")
    with committing("stop bulk", alias):
        if store.stop(bulk, identify.label(by), text, alias):
            return True
    _row(bulk, alias)
    return False


def show(bulk: int, *, using: str | None = None) -> Shown:
    """A bulk, and how far it is.

    Raises:
        CannotBulk: there is none of that number.
    """
    alias = identify.alias(using)
    row = _row(bulk, alias)
    counts = store.counts(bulk, alias)
    left = counts.pop("", 0)
    return Shown(
        row.pk,
        row.verb,
        row.filter,
        row.arguments,
        row.by_label,
        row.reason,
        row.status,
        row.total,
        left,
        counts,
        row.made_at,
        row.ended_at,
    )


def listed(limit: int, *, using: str | None = None) -> list[Shown]:
    """The newest ones."""
    alias = identify.alias(using)
    rows = Bulk.objects.using(alias).order_by("-pk").values_list("pk", flat=True)[:limit]
    return [show(pk, using=alias) for pk in rows]


def _row(bulk: Any, using: str) -> Bulk:
    found = Bulk.objects.using(using).filter(pk=bulk).first() if isinstance(bulk, int) and 0 < bulk < 2**63 else None
    if found is None:
        raise CannotBulk(f"There is no bulk operation {bulk!r:.60}: flows bulk list shows those that there are.")
    return found


def carry_out(using: str, limit: int = BATCH) -> int:
    """Do what is next, of the oldest bulks first; how many items were done."""
    count = 0
    for bulk in store.running(limit, using):
        ids = store.left(bulk.id, limit - count, using)
        by, refused = _asked_by(bulk, using) if ids else (None, "")
        for workflow in ids:
            with apart(f"bulk {bulk.id}, workflow {workflow}", using):
                count += _do(bulk, workflow, by, refused, using)
        with apart(f"the end of bulk {bulk.id}", using):
            store.end(bulk.id, using)
        if count >= limit:
            look_soon(0, WATCH_NAME)
            break
    return count


def _asked_by(bulk: store.Row, using: str) -> tuple[Any, str]:
    """Who asked, as they are now, and why nothing more is done for them; "": they may. Looked up anew at each look."""
    if bulk.user is None and not bulk.by:
        return None, ""
    users: Any = get_user_model()._default_manager.using(using)  # noqa: SLF001 - does not assume `objects`
    user = users.filter(pk=bulk.user).first() if bulk.user is not None else None
    if user is not None and warrant.is_permitted(user, PERMISSION, using):
        return user, ""
    return None, str(NotPermitted(bulk.by, PERMISSION))


def _do(bulk: store.Row, workflow: UUID, by: Any, refused: str, using: str) -> bool:
    with committing("bulk", using):
        if not store.take(bulk.id, workflow, using):
            return False
        if not locks.free_workflows([workflow], using) and Workflow.objects.using(using).filter(pk=workflow).exists():
            return False  # somebody holds it: the next look does it, and the clock waits for nobody
        code, sentence = (NotPermitted.code, refused) if refused else _told(bulk, workflow, by, using)
        return store.done(bulk.id, workflow, code, identify.reason(sentence), using)


def _told(bulk: store.Row, workflow: UUID, by: Any, using: str) -> Told:
    """What became of one run. Half of what failed is not kept; that it failed is."""
    try:
        with transaction.atomic(using=using):
            return VERBS[bulk.verb](workflow, by=by, reason=bulk.reason, using=using, **bulk.arguments)
    except OutlastError as error:
        return error.code, str(error)
    except (OperationalError, InterfaceError):  # no connection: the next look tries again
        raise
    except Exception as error:
        logger.exception("bulk %s, %s of workflow %s failed", bulk.id, bulk.verb, workflow)
        return FAULT, f"{type(error).__name__}; the log of the worker says more"


WATCH = Watch(WATCH_NAME, store.EXISTS, carry_out)

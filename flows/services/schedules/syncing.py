"""What is declared in code becomes rows: at `migrate`, and when a worker starts. Twice is once.

    declared  ──► new row; another declaration: the next revision, planned anew from now where its moments have changed
    gone      ──► paused by "code" (only at `migrate`: a worker of an older deployment knows less); declared again: it goes on
A schedule of the record with that name stays what it is, and a check says so (E117). What cannot be read is left as it was (E084).
Race: two workers start: the row's lock, and the digest.
"""

from __future__ import annotations

import logging
from typing import Any

from flows import registry
from flows.core.errors import OutlastError
from flows.core.schedules.declared import Schedule as Declared
from flows.models import Schedule
from flows.services.clock import now
from flows.services.schedules.planning import spec_of
from flows.services.schedules.reading import as_params, checked, digest_of, user_type
from flows.store import schedules as store
from flows.store.sql import committing

logger = logging.getLogger("outlast.schedules")

CODE = "code"


def sync(using: str, *, retire: bool = False) -> list[str]:
    """Bring the rows to what this process declares; the names of those that changed. `retire`: pause what is not declared any more."""
    declared = registry.declared(Declared)
    changed = [name for name, one in sorted(declared.items()) if _synced(one, using)]
    if retire:
        gone = Schedule.objects.using(using).filter(origin=CODE, paused_at__isnull=True).exclude(name__in=list(declared))
        changed += [name for name in gone.order_by("name").values_list("name", flat=True) if _retired(name, using)]
    return changed


def _synced(one: Declared, using: str) -> bool:
    try:
        plan = checked(one)
        params: dict[str, Any] = as_params(one, None)
    except OutlastError as error:
        logger.error("schedule %s is left as it was: %s", one.name, error)
        return False
    params["digest"] = digest_of(one, params)
    with committing("sync schedule", using):
        row = store.lock(one.name, using)
        moment = row.now if row is not None else now(using)
        following = next(plan.after(moment), None)
        given = {**params, "by": "", "reason": "", "until": moment, "next": following.at if following is not None else None}
        if row is None:
            return store.add({**given, "name": one.name, "origin": CODE}, user_type(), using) is not None
        if row.origin != CODE:
            return False
        back = row.paused and _paused_by_code(row.id, using) and store.resume(row.id, "", "declared again", using)
        if row.digest == params["digest"]:
            return back
        anew = spec_of(row) != one.spec or row.compute != one.compute
        store.change({**given, "id": row.id, "revision": row.revision, "anew": anew}, user_type(), using)
    return True


def _retired(name: str, using: str) -> bool:
    with committing("retire schedule", using):
        row = store.lock(name, using)
        return row is not None and store.pause(row.id, CODE, "no longer declared", using)


def _paused_by_code(schedule: int, using: str) -> bool:
    return Schedule.objects.using(using).filter(pk=schedule, paused_by=CODE, paused_at__isnull=False).exists()

"""How dependencies are: reported by attempts, probes and people; each change under the lock of the row, as `flows.core.capacity` says.

    attempt that met a want of capacity ──► failed, in the arrow's transaction
    probe, report, person ────────────────► a transaction of its own
    pump ─────────────────────────────────► moved: its moment has come, the one on trial has ended, more is let through
Race: two failures count one after the other. A failure against the pump: the pump reads the row under its lock, and lets in no more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from flows import registry
from flows.core import capacity as core
from flows.core import payload
from flows.core.capacity import Dependency, DependencyStatus, Health, Terms, drain_seconds, want_dependency
from flows.core.misuse import UnknownDependency, UsageError
from flows.models import Dependency as Row
from flows.services import identify, warrant
from flows.services.capacity import taking
from flows.services.capacity.taking import terms_of
from flows.store import dependencies, limits, slots
from flows.store.sql import committing

PERMISSION = "outlast_flows.operate_dependency"
REPORTED, SAID = "REPORTED", "SAID_DOWN"
#: No rate and no ceiling is larger: a ceiling is so many rows.
MOST = 100_000

Step = Callable[[Terms, Health, datetime], Health]


def change(name: str, step: Step, using: str, *, by: str | None = None, reason: str | None = None) -> Health | None:
    """Lock the row, and write what follows; the health afterwards. None: nobody has asked for it yet."""
    row = dependencies.lock(name, using)
    if row is None:
        return None
    made = step(terms_of(name), row.health, row.now)
    if made != row.health or by is not None:
        dependencies.write(name, made, using, by=by, reason=reason)
    return made


def make(name: str, using: str) -> int:
    """Make its rows where there are none; the id of its limit."""
    return taking.make(want_dependency(terms_of(name)), None, using)


def failed(name: str, code: str, retry_after: float | None, run: UUID, seq: int | None, using: str) -> None:
    """An attempt of `run` met its want of capacity; in its arrow's transaction, which gives back what it held, too."""
    if dependencies.get(name, using) is None:
        make(name, using)
    if seq is not None:
        taking.free(run, seq, using)
    change(name, lambda terms, health, now: core.failed(terms, health, now, code, retry_after, run), using)


def moved(name: str, using: str, *, waiting: bool) -> Health | None:
    """What time, or the end of the one on trial, has made of it."""

    def step(terms: Terms, health: Health, now: datetime) -> Health:
        if health.down and not terms.probed and health.probe_at is not None and health.probe_at <= now:
            return core.on_trial(health, now)
        if health.status == DependencyStatus.TRIAL and health.trial is not None:
            return _after_trial(terms, health, now, using)
        return core.ramped(terms, health, now, waiting=waiting)

    return change(name, step, using)


def _after_trial(terms: Terms, health: Health, now: datetime, using: str) -> Health:
    assert health.trial is not None
    run, activity = dependencies.tried(*health.trial, using)
    if activity in ("scheduled", "running") and run in ("runnable", "running"):
        return health
    return core.tried(terms, health, now, well=True if activity == "done" else None)


# ---------------------------------------------------------------- by code and by people


@dataclass(frozen=True, slots=True)
class Shown:
    """How a dependency is. `waiting`: runs that wait for it; `in_use`: units of its ceiling.

    `drain_seconds`: until nobody waits, at its full rate. `mean_seconds`: how long a unit was held on the average; None: nobody knows yet.
    `declared`: it stands in code.
    """

    name: str
    status: str
    since: datetime | None
    code: str
    rate: float
    ceiling: int
    allowed: float
    waiting: int
    in_use: int
    mean_seconds: float | None
    drain_seconds: float
    probe_at: datetime | None
    by: str
    reason: str
    declared: bool


def show(name: str | None = None, *, using: str | None = None) -> Any:
    """How one dependency is, or all of them, by name.

    Raises:
        UnknownDependency: none of that name is declared or on record.
    """
    alias = identify.alias(using)
    if name is not None:
        _check(name, alias)
    rows = {row.name: row for row in Row.objects.using(alias).all()}
    declared = registry.declared(Dependency)
    if name is None:
        return [_shown(one, rows.get(one), alias) for one in sorted({*rows, *declared})]
    if name not in rows and name not in declared:
        raise UnknownDependency(name, [*rows, *declared])
    return _shown(name, rows.get(name), alias)


def _shown(name: str, row: Row | None, using: str) -> Shown:
    terms = terms_of(name)
    label = taking.limit_of(name)
    limit = next((one for one, of in limits.labelled([label], using) if of == label), None)
    rate = (row.rate if row else None) or terms.rate
    ceiling = (row.ceiling if row else None) or terms.ceiling
    waiting = slots.waiting(label, using) if limit is not None else 0
    mean = slots.mean(limit, using) if limit is not None else None
    return Shown(
        name=name,
        status=row.status if row else DependencyStatus.HEALTHY.value,
        since=row.since if row else None,
        code=row.code if row else "",
        rate=rate,
        ceiling=ceiling,
        allowed=row.allowed if row else 0.0,
        waiting=waiting,
        in_use=slots.used(limit, using) if limit is not None else 0,
        mean_seconds=mean,
        drain_seconds=drain_seconds(waiting, rate, ceiling, mean),
        probe_at=row.probe_at if row else None,
        by=row.by_label if row else "",
        reason=row.reason if row else "",
        declared=name in registry.declared(Dependency),
    )


def report(name: str, *, ok: bool, code: str = REPORTED, using: str | None = None) -> str:
    """Say what code outside a run has seen of it: not well counts as the capacity error of an attempt; its status afterwards.

    Raises:
        UnknownDependency: none of that name is declared or on record. PayloadError: the code is no name.
    """
    payload.check_name(code, "the code of the report")

    def step(terms: Terms, health: Health, now: datetime) -> Health:
        if not ok:
            return core.failed(terms, health, now, code)
        return core.on_trial(health, now) if health.down and health.probe_at is not None else health

    return _acted(name, step, using)


def down(name: str, *, reason: str, by: Any = None, using: str | None = None) -> str:
    """Say that it is down: nothing is let through until a person says that it is up. Its status afterwards.

    Raises:
        UnknownDependency: none of that name. ReasonMissing. NotPermitted: `by` lacks `operate_dependency`.
    """
    return _said(name, lambda _terms, health, now: core.held_down(health, now, SAID), by, reason, using)


def up(name: str, *, reason: str, by: Any = None, using: str | None = None) -> str:
    """Say that it is back: it recovers, along its ramp. Its status afterwards. Errors as `down`."""

    def step(terms: Terms, health: Health, now: datetime) -> Health:
        well = health.recovering or health.status == DependencyStatus.HEALTHY
        return health if well else core.recovered(terms, health, now)

    return _said(name, step, by, reason, using)


def set_rate(
    name: str,
    *,
    reason: str,
    rate: float | None = None,
    ceiling: int | None = None,
    by: Any = None,
    using: str | None = None,
) -> str:
    """Set what is let through, in place of what is declared; None: as it is declared. Its status afterwards.

    Raises:
        UsageError: a number that is not positive. Else as `down`.
    """
    given: tuple[tuple[str, Any], ...] = (("rate", rate), ("ceiling", ceiling))
    for what, value in given:
        sound = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < MOST
        if value is not None and not (sound and (what == "rate" or value == int(value))):
            raise UsageError(
                f"The {what} is {value!r:.60}: give a positive number (the ceiling a whole one), or None for what is declared."
            )
    whole = None if ceiling is None else int(ceiling)

    def step(_terms: Terms, health: Health, _now: datetime) -> Health:
        return replace(health, rate=None if rate is None else float(rate), ceiling=whole)

    def sized(alias: str) -> None:
        taking.make(want_dependency(terms_of(name)), whole, alias)

    return _said(name, step, by, reason, using, before=sized)


def _said(name: str, step: Step, by: Any, reason: str, using: str | None, *, before: Callable[[str], None] | None = None) -> str:
    warrant.check(by, PERMISSION, identify.alias(using))
    text = warrant.reason(reason, "why you change how the dependency is used")
    return _acted(name, step, using, by=identify.label(by), reason=text, before=before)


def _check(name: object, using: str) -> None:
    """Refuse what can be no name."""
    if not payload.is_name(name):
        raise UnknownDependency(name, [*Row.objects.using(using).values_list("name", flat=True), *registry.declared(Dependency)])


def _acted(
    name: str,
    step: Step,
    using: str | None,
    *,
    by: str | None = None,
    reason: str | None = None,
    before: Callable[[str], None] | None = None,
) -> str:
    alias = identify.alias(using)
    _check(name, alias)
    with committing("dependency", alias):
        if name not in registry.declared(Dependency) and dependencies.get(name, alias) is None:
            known = Row.objects.using(alias).values_list("name", flat=True)
            raise UnknownDependency(name, [*known, *registry.declared(Dependency)])
        limit = make(name, alias) if dependencies.get(name, alias) is None else 0
        if before is not None:
            before(alias)
        made = change(name, step, alias, by=by, reason=reason)
        assert made is not None
        found: Sequence[int] = [limit] if limit else [one for one, _ in limits.labelled([taking.limit_of(name)], alias)]
        taking.look_after(found, alias)
    return str(made.status)

"""Schedules: planned, started and ended by the clock (`planning`, `starting`), declared in code (`syncing`), acted on by people (`acting`)."""

from __future__ import annotations

from flows.conf import conf
from flows.registry import Watch
from flows.services.schedules import planning, starting, syncing
from flows.store import occurrences, schedules


def _over(using: str) -> None:
    """What is over makes room for what is queued, and that starts at once."""
    starting.end_over(using)
    starting.start_due(using)


def _due(using: str) -> None:
    """What is planned is started in the same tick."""
    planning.plan_due(using)
    starting.start_due(using)


WATCHES = (
    Watch("occurrences-over", occurrences.OVER, _over),
    Watch("schedules", schedules.DUE, _due),
    Watch("occurrences", occurrences.STARTABLE, starting.start_due),
)


def after_migrate(*, using: str, **_: object) -> None:
    """What is declared in code becomes rows, where the record is and its tables are."""
    if using == conf.DATABASE and schedules.exist(using):
        syncing.sync(using, retire=True)

"""Schedulers for Beat that are quieter than Celery's own: imported only by a Beat whose `CELERY_BEAT_SCHEDULER` names one.

    tasks.schedulers:CalmScheduler       the schedule in the database (django-celery-beat)
    tasks.schedulers:CalmFileScheduler   the schedule in a file (Celery's own)

Both look at the durable clock themselves and send a tick only when it would find something, so that a second in which nothing is due wakes
Beat and PostgreSQL, and no worker. Two of them are harmless, and so is none: what is found and not ticked for is looked at by the workers.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from celery.beat import PersistentScheduler, Scheduler
from django.apps import apps
from django.db import Error, connections, transaction

from flows.conf import conf
from flows.services import sweeps
from flows.store import faults
from tasks.beat import TICK

logger = logging.getLogger("outlast.beat")

#: A schedule edited in the admin is in force after so long at most.
LOOK_SECONDS = 10.0


class CalmTicks(Scheduler):
    """Sends `outlast.tick` only where it would find something to do."""

    _failing = False

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        """Send what is due; of a tick, look first."""
        if entry.task != TICK or not self._is_idle():
            super().apply_entry(entry, producer=producer)

    def _is_idle(self) -> bool:
        """Whether a tick can be left away. With the database away nobody knows, so it is sent, and this is logged once."""
        try:
            with transaction.atomic(using=conf.DATABASE), connections[conf.DATABASE].cursor() as cursor:
                cursor.execute("SET LOCAL statement_timeout = '1s'")  # whoever locks our tables holds up no task of the host
                idle = sweeps.is_idle(conf.DATABASE)
        except Error as error:
            if not self._failing:
                logger.error("%s; ticks are sent without a look", faults.sentence(error, conf.DATABASE))
            self._failing = True
            connections[conf.DATABASE].close()
            return False
        self._failing = False
        return idle


class CalmFileScheduler(CalmTicks, PersistentScheduler):
    """Celery's own scheduler, with its state in a file (`CELERY_BEAT_SCHEDULE_FILENAME`)."""


if apps.is_installed("django_celery_beat"):
    from django_celery_beat.schedulers import DatabaseScheduler

    class CalmScheduler(CalmTicks, DatabaseScheduler):  # type: ignore[misc]  # it ships no types
        """django-celery-beat's scheduler; looks for a changed schedule every ten seconds, and not twice at every tick of ours."""

        _look_at = 0.0

        def schedule_changed(self) -> Any:
            """Whether somebody has edited the schedule since the last look."""
            now = time.monotonic()
            if now < self._look_at:
                return False
            self._look_at = now + LOOK_SECONDS
            return super().schedule_changed()

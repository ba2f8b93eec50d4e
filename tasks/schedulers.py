"""django-celery-beat's scheduler, quieter: imported only by a Beat whose `CELERY_BEAT_SCHEDULER` names it."""

from __future__ import annotations

import time
from typing import Any

from django_celery_beat.schedulers import DatabaseScheduler

#: A schedule edited in the admin is in force after so long at most.
LOOK_SECONDS = 10.0


class CalmScheduler(DatabaseScheduler):  # type: ignore[misc]  # it ships no types
    """Looks into the database for a changed schedule every ten seconds, and not twice at every tick of ours."""

    _look_at = 0.0

    def schedule_changed(self) -> Any:
        """Whether somebody has edited the schedule since the last look."""
        now = time.monotonic()
        if now < self._look_at:
            return False
        self._look_at = now + LOOK_SECONDS
        return super().schedule_changed()

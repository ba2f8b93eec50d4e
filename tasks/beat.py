"""What Beat sends: ticks, and now and then a scan of the record.

They join the host's schedule by Celery's own signal, so its configuration stays as it is.
"""

from __future__ import annotations

from typing import Any

from celery.app import app_or_default

from tasks.queues import CONTROL, celery_queue

TICK = "outlast.tick"
#: Every second; a tick that waited longer than its period times five is dropped, the next one does all that is due.
TICK_SECONDS = 1.0


def entries() -> dict[str, dict[str, Any]]:
    """Our part of the Beat schedule."""
    return {
        "outlast-tick": {
            "task": TICK,
            "schedule": TICK_SECONDS,
            "options": {"queue": celery_queue(CONTROL), "expires": 5 * TICK_SECONDS},
        },
    }


def connect() -> None:
    """Add our entries to the host's Celery app, whether its configuration is loaded already or will be."""
    app = app_or_default()
    if getattr(app, "configured", False):
        _join(app)
    else:
        app.on_after_configure.connect(_join, dispatch_uid="outlast-beat", weak=False)


def _join(sender: Any, **_: object) -> None:
    sender.conf.beat_schedule = {**entries(), **(sender.conf.beat_schedule or {})}

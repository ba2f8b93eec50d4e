"""Children that are not wanted any more: no more of them are started, and those that run are cancelled, each in a transaction of its own.

    planned ──► skipped        running ──► `stop_at` ──► cancelled by `control.cancel`, so many a look ──► `stopped_at`
Guard: the fan is locked by whoever stops it. A child that ends at that moment is too late to cancel, and counts as it ended. One that could
not be cancelled stays to be cancelled: its parent may owe its end.
"""

from __future__ import annotations

from django.db import transaction

from flows.dispatch import look_soon
from flows.services import control
from flows.services.apart import apart
from flows.store import branches as store

WATCH = "children"
REASON = "its parent does not need it any more"
#: So many are cancelled in one look.
BATCH = 500


def stop(fan: int, using: str, *, running: bool = True) -> None:
    """Start no more of a locked fan; `running`: have those that run cancelled, too."""
    if store.stop(fan, using, running=running):
        transaction.on_commit(lambda: look_soon(0, WATCH), using=using)


def carry_out(using: str, limit: int = BATCH) -> int:
    """Cancel children that are to be stopped; how many were. A lost process, or a cancel that fails, leaves them to the next look."""
    count = 0
    for child in store.stopping(limit, using):
        with apart(f"the cancel of child {child}", using):
            control.cancel(child, reason=REASON, using=using)
            count += store.stopped(child, using)
    return count

"""Children that are not wanted any more: no more of them are started, and those that run are cancelled, each in a transaction of its own.

    planned ──► skipped        running ──► `stop_at` ──► cancelled by `control.cancel`, a batch a look ──► `stopped_at`
Guard: the fan is locked by whoever stops it. A child that ends at that moment is too late to cancel, and counts as it ended.
"""

from __future__ import annotations

import logging

from django.db import transaction

from flows.core.errors import OutlastError
from flows.dispatch import look_soon
from flows.services import control
from flows.store import branches as store

logger = logging.getLogger("outlast.children")

WATCH = "children"
REASON = "its parent does not need it any more"
#: So many are cancelled before it is looked whether there are more.
BATCH = 50


def stop(fan: int, using: str, *, running: bool = True) -> None:
    """Start no more of a locked fan; `running`: have those that run cancelled, too."""
    if store.stop(fan, using, running=running):
        transaction.on_commit(lambda: look_soon(0, WATCH), using=using)


def carry_out(using: str, limit: int = BATCH * 10) -> int:
    """Cancel children that are to be stopped; how many were asked. A lost process leaves them to the next look."""
    count = 0
    while count < limit and (found := store.stopping(BATCH, using)):
        for child in found:
            try:
                control.cancel(child, reason=REASON, using=using)
            except OutlastError as error:
                logger.error("child %s cannot be cancelled: %s", child, error)
            store.stopped(child, using)
        count += len(found)
    return count

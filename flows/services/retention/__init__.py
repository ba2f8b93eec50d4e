"""Retention: ended runs are archived, then deleted; their keys stay (docs/decisions/0008, S).

    ended ──► archived ──► deleted     a batch a look; each a transaction of its own
    row   ──► deleted                  what goes by its own age: settled events, deliveries, sent notices
Guard: locked with SKIP LOCKED, then looked at anew in a new statement; an archived run goes only as it was archived (its digest). Race: a run of
its family that is started meanwhile waits at the parent's or the intent's row, and finds it gone; a start by its key finds the key
(`outlast_key`); two looks lock different runs. A crash after the archive was written: it is written again; nothing is lost.
"""

from __future__ import annotations

from flows import registry
from flows.services.retention.looking import look
from flows.store import aging

WATCH = registry.Watch("retention", aging.DUE, look)

"""The context that the next attempt of a run would get, as it stands now: for people who want to know on what a model decides."""

from __future__ import annotations

from dataclasses import fields
from typing import Any
from uuid import UUID

from flows.core.context import Context
from flows.models import Activity, Workflow
from flows.services import clock
from flows.services.context import Wanted, context_of
from flows.services.owned import build
from flows.store.claim import Claimed
from flows.store.load import load

#: What code asks for is its own business; so many tokens are enough to see what there is.
TOKENS = 8_000


def of(row: Workflow, using: str) -> Context | None:
    """The context, without what the code itself would add; nothing is claimed, locked or changed.

    None: it has no activity open, its flow is not loaded here, or it has moved on meanwhile.

    Raises:
        PayloadError: what has to be in it is larger than `TOKENS`.
    """
    activity = Activity.objects.using(using).filter(workflow_id=row.pk, seq=row.active_seq or 0).first()
    loaded = load([row.pk], using).get(row.pk)
    if activity is None or loaded is None or loaded.version != row.version:
        return None
    owned = build(_as_claimed(row, activity, using), loaded, UUID(int=0), 0, using)
    if owned.definition is None or owned.state.activity is None or owned.state.activity.node not in owned.definition.nodes:
        return None
    return context_of(owned, Wanted(max_tokens=TOKENS), None)


def _as_claimed(row: Workflow, activity: Activity, using: str) -> Claimed:
    """The row as a claim would return it."""
    own: dict[str, Any] = {one.name: getattr(row, one.name) for one in fields(Claimed) if hasattr(row, one.name)}
    mine = ("step", "visit", "fence", "failures", "lost", "last_error", "notes", "timeout_s", "opened_at")
    found = {name: getattr(activity, name) for name in mine}
    return Claimed(**{**own, **found, "number": activity.attempt, "now": clock.now(using), "loaded": None})

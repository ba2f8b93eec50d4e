"""The next turn of an activity whose tools asked people: when nobody is left to answer behind its wait, the wait is closed and the run is woken.

    answered, or its time is over ──► what else is over expires ──► somebody is still asked: nothing
                                                              └──► nobody: evidence, wake       one transaction; the workflow is locked
Two answers at once come one after the other, under the workflow's lock; the second sees that it is the last.
"""

from __future__ import annotations

from typing import Any

from approvals.services.notices import owing
from approvals.store import calls as store
from flows.conf import conf
from flows.core.errors import HalfMove
from flows.services.hinting import hint_ready
from flows.store import turns
from flows.store.sql import dumps


def answered(request: Any, using: str) -> None:
    """An answer to this request stands. In the transaction that recorded it."""
    owing.withdrawn([one for one, _wait in store.expire([request.wait_id], using)], using)
    _go_on(request.wait_id, request.pk, using, must=True)


def time_is_over(wait_id: int, using: str) -> None:
    """A moment has come at which a request behind this wait may be over; in the sweep's transaction."""
    over = [request for request, _wait in store.expire([wait_id], using)]
    if over:
        owing.withdrawn(over, using)
        _go_on(wait_id, over[-1], using, must=False)


def _go_on(wait_id: int, last: int, using: str, *, must: bool) -> None:
    pending, requests = store.left(wait_id, using)
    if pending:
        return
    woken = turns.next_turn(
        wait_id, dumps({"requests": requests}), ref=str(last), priority_seconds=conf.PRIORITY_SECONDS, using=using
    )
    if woken is None:
        if must:
            raise HalfMove(f"request {last} was answered and its wait {wait_id} was not")
    elif woken[4] == "waiting":
        hint_ready([woken[:4]], using)

"""Who looks at a request: a marker, so that two people do not read the same at once. It locks nobody out and decides nothing."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from approvals.core.binding import may_answer
from approvals.services import history, people
from approvals.services.decide import ACCEPTED, Decided, NobodyAnswers
from approvals.services.facts import request_facts
from approvals.services.locked import UnknownRequest, locked, request_id_of
from approvals.services.notices import owing
from approvals.store import requests as store
from flows.core.misuse import NotPermitted
from flows.services import identify, warrant
from flows.store.sql import committing


def assign(request: Any, *, to: Any, by: Any, using: str | None = None) -> Decided:
    """Say who looks at a pending request: oneself, somebody else who may answer it, or nobody (`to=None`).

    Args:
        request: the request or its id. to: a user who may answer it now, or None. by: the same user, who claims it for themselves; whoever it
            is assigned to, who releases it; or somebody who may say so for others (`assign_request`).
    Returns:
        "accepted", or the code of the reason why `to` may not answer it; then nothing was changed.
    Raises:
        UnknownRequest, NobodyAnswers: the call makes no sense. NotPermitted: `by` may not assign it to others.
    """
    alias = identify.alias(using)
    identify.user(by, NobodyAnswers)
    if to is not None:
        identify.user(to, NobodyAnswers)
    with committing("assign request", alias):
        row = locked(request_id_of(request), alias)
        own = by.pk in ((to.pk,) if to is not None else (row.claimed_by_id,))
        if not own and not warrant.is_permitted(by, people.ASSIGN, alias):
            raise NotPermitted(identify.label(by), people.ASSIGN)
        known = request_facts(row.pk, alias)
        if known is None:
            raise UnknownRequest(row.pk)
        if to is not None:
            refusal = may_answer(known, people.facts(people.current(to, alias), row))
            if refusal is not None:
                refusal = refusal if own else refusal.of(identify.label(to))
                return Decided(refusal.code.value, _(refusal.template) % refusal.params, row.pk)
        if not store.claim(row.pk, to.pk if to is not None else None, identify.label(to), alias):
            return Decided("NOT_WAITING", _("The request is %(status)s.") % {"status": row.get_status_display()}, row.pk)
        history.log(row, by, "released" if to is None else "claimed" if own else "assigned", alias)
        if to is not None and not own:
            owing.assigned(row.pk, to.pk, alias)
    if to is None:
        return Decided(ACCEPTED, _("Nobody is marked as looking at it any more."), row.pk)
    return Decided(
        ACCEPTED, _("%(who)s is marked as looking at it. Others may still answer.") % {"who": identify.label(to)}, row.pk
    )

"""Requests in the API: the queues, one of them, and what people do to it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.utils.translation import gettext as _

from approvals.models import Request
from approvals.services import as_data, browsing, people
from approvals.services.answering import answer
from approvals.services.asked import answer_shown
from approvals.services.claiming import assign
from approvals.services.decide import MAX_COMMENT, decide
from approvals.services.locked import UnknownRequest
from approvals.services.once import Outcome
from approvals.services.packet import packet
from approvals.services.taking_back import revoke
from approvals.views import body
from approvals.views.endpoint import Call, told
from approvals.views.problems import Problem
from flows.core.misuse import NotPermitted
from flows.services import identify, warrant

PAGE, MAX_PAGE = 50, 100
MAX_NAME = 254


def listed(call: Call) -> Outcome:
    """A page of a queue."""
    if not browsing.may_browse(call.user):
        raise NotPermitted(identify.label(call.user), people.VIEW)
    wanted = body.parameters(
        call.request,
        queue=body.one_of(*browsing.QUEUES),
        limit=body.count(MAX_PAGE),
        cursor=str,
        flow=str,
        workflow=UUID,
    )
    queue = wanted["queue"] or "mine"
    if wanted["flow"] is not None and queue not in browsing.BY_EXPIRY:
        raise Problem(400, "BAD_PARAMETER", _("flow= narrows the queues mine and pending; the others take workflow=."))
    page = browsing.requests(
        call.user,
        queue=queue,
        limit=wanted["limit"] or PAGE,
        cursor=wanted["cursor"],
        flow=wanted["flow"],
        workflow=wanted["workflow"],
        using=call.using,
    )
    return Outcome(200, {"requests": [as_data.summary(row) for row in page.rows], "next": page.following})


def shown(call: Call, number: str) -> Outcome:
    """One request, as it is for whoever asks."""
    row = _seen(call, number)
    body.parameters(call.request)
    call.headers["ETag"] = f'"{row.digest}"'
    found = packet(row, call.user, call.using)
    return Outcome(200, as_data.detail(found, filled_in=answer_shown(row, call.user, call.using)))


def decided(call: Call, number: str) -> Outcome:
    """An answer, for the candidate that `If-Match` names."""
    row = _seen(call, number)
    given = body.members(
        call.body, verdict=body.text(20), comment=body.text(MAX_COMMENT, null=True), keep=body.numbers(null=True)
    )
    seen = body.digest(call.request)

    def act() -> Outcome:
        said = decide(
            row.pk,
            verdict=given["verdict"],
            digest=seen,
            by=call.user,
            comment=given["comment"] or "",
            keep=given["keep"],
            using=call.using,
        )
        return told(said, ends=said.ends, request=_now(row, call.using))

    return call.once(act)


def answered(call: Call, number: str) -> Outcome:
    """What an Ask asks for, filled in; of the form that `If-Match` names. Files are given in the admin."""
    row = _seen(call, number)
    given = body.members(call.body, values=body.mapping())
    seen = body.digest(call.request)

    def act() -> Outcome:
        said = answer(row.pk, values=given["values"], digest=seen, by=call.user, using=call.using)
        if said.errors:
            errors = [(f"#/values/{name}".rstrip("/"), " ".join(several)) for name, several in said.errors.items()]
            raise Problem(422, said.code, said.sentence, errors=errors)
        return told(said, request=_now(row, call.using))

    return call.once(act)


def assigned(call: Call, number: str) -> Outcome:
    """Who looks at a request: the caller, somebody else, or nobody."""
    row = _seen(call, number)
    given = body.members(call.body, to=body.text(MAX_NAME, null=True))

    def act() -> Outcome:
        said = assign(row.pk, to=_named(given["to"], call), by=call.user, using=call.using)
        return told(said, request=_now(row, call.using))

    return call.once(act)


def revoked(call: Call, number: str) -> Outcome:
    """An approval, taken back before it is used."""
    row = _seen(call, number)
    given = body.members(call.body, reason=body.text(MAX_COMMENT))

    def act() -> Outcome:
        return told(revoke(row.pk, reason=given["reason"], by=call.user, using=call.using), request=_now(row, call.using))

    return call.once(act)


def user_named(name: str, using: str) -> Any:
    """The user of that name.

    Raises:
        Problem: there is none.
    """
    found = people.users(using).filter(**{get_user_model().USERNAME_FIELD: name}).first()
    if found is None:
        raise Problem(422, "UNKNOWN_USER", _("There is no user of that name."))
    return found


def _seen(call: Call, number: str) -> Request:
    """The request with that id, if the caller may see it. Nobody learns which ids exist but those who may look at them."""
    found = browsing.find(int(number), call.using) if number.isascii() and number.isdecimal() and len(number) <= 19 else None
    if found is None or not browsing.may_view(call.user, found):
        raise UnknownRequest(number)
    return found


def _named(name: str | None, call: Call) -> Any:
    """Whom a request is assigned to. Who may not say so for others does not learn who has an account."""
    if name is None or name == identify.label(call.user):
        return None if name is None else call.user
    if not warrant.is_permitted(call.user, people.ASSIGN, call.using):
        raise NotPermitted(identify.label(call.user), people.ASSIGN)
    return user_named(name, call.using)


def _now(row: Request, using: str) -> dict[str, Any]:
    """What has become of the request."""
    status, step, claimed = Request.objects.using(using).values_list("status", "step", "claimed_label").get(pk=row.pk)
    return {"id": row.pk, "status": status, "step": step + 1, "looked_at_by": claimed or None}

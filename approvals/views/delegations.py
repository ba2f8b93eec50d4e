"""Delegations in the API: listed, made, ended."""

from __future__ import annotations

from approvals.models import Delegation
from approvals.services import as_data, browsing
from approvals.services.decide import ACCEPTED, ALREADY
from approvals.services.delegating import ANY, OWN, UnknownDelegation, delegate, end_delegation
from approvals.services.once import Outcome
from approvals.views import body
from approvals.views.endpoint import Call
from approvals.views.requests import MAX_NAME, MAX_PAGE, PAGE, user_named
from flows.core.misuse import NotPermitted
from flows.services import identify, warrant
from flows.services.clock import now

VIEW = "outlast_approvals.view_delegation"
MAX_REASON, MAX_SCOPE = 2000, 200


def listed(call: Call) -> Outcome:
    """From and to the caller; everybody's for those who may see them."""
    wanted = body.parameters(call.request, of=body.one_of("me", "everybody"), limit=body.count(MAX_PAGE), cursor=str)
    everybody = wanted["of"] == "everybody"
    if everybody and not _sees_all(call):
        raise NotPermitted(identify.label(call.user), VIEW)
    page = browsing.delegations(
        call.user, everybody=everybody, limit=wanted["limit"] or PAGE, cursor=wanted["cursor"], using=call.using
    )
    moment = now(call.using)
    return Outcome(200, {"delegations": [as_data.delegation(row, moment) for row in page.rows], "next": page.following})


def made(call: Call) -> Outcome:
    """A new one: from the caller, or, for those who may, from somebody else."""
    scope = body.text(MAX_SCOPE, null=True)
    given = body.members(
        call.body,
        to=body.text(MAX_NAME),
        until=body.moment(),
        reason=body.text(MAX_REASON),
        starts=body.moment(null=True),
        giver=body.text(MAX_NAME, null=True),
        role=scope,
        pool=scope,
        flow=scope,
    )

    def act() -> Outcome:
        own = given["giver"] in (None, identify.label(call.user))
        warrant.check(call.user, OWN if own else ANY, call.using)  # before any name is looked up
        row = delegate(
            call.user if own else user_named(given["giver"], call.using),
            user_named(given["to"], call.using),
            until=given["until"],
            starts=given["starts"],
            reason=given["reason"],
            by=call.user,
            **{name: given[name] or "" for name in ("role", "pool", "flow")},
            using=call.using,
        )
        return Outcome(201, as_data.delegation(row, now(call.using)))

    return call.once(act)


def ended(call: Call, number: str) -> Outcome:
    """One that ends now."""
    row = _seen(call, number)
    body.members(call.body)

    def act() -> Outcome:
        over = not end_delegation(row.pk, by=call.user, using=call.using)
        fresh = Delegation.objects.using(call.using).get(pk=row.pk)
        return Outcome(200, {"code": ALREADY if over else ACCEPTED, "delegation": as_data.delegation(fresh, now(call.using))})

    return call.once(act)


def _sees_all(call: Call) -> bool:
    return any(warrant.is_permitted(call.user, name, call.using) for name in (VIEW, ANY))


def _seen(call: Call, number: str) -> Delegation:
    found = None
    if number.isascii() and number.isdecimal() and len(number) <= 18:
        found = Delegation.objects.using(call.using).filter(pk=int(number)).first()
    if found is None or not (call.user.pk in (found.giver_id, found.taker_id) or _sees_all(call)):
        raise UnknownDelegation(number)
    return found

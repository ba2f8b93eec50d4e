"""Delegations: made for a time, seen by everybody concerned, revoked at any moment.

    make ──► holds from `starts_at` until `ends_at` ──► over
                       └─ revoke (giver, taker, or who may for others) ──► over at once

What was answered by one stays answered. Guard of every use: `people.places`, read anew with each answer.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from approvals.models import Delegation
from approvals.services import people
from approvals.services.locked import row_id
from flows.core.misuse import NotPermitted, UsageError
from flows.core.spans import in_utc
from flows.services import identify, warrant
from flows.services.clock import now
from flows.store.sql import committing

OWN = "outlast_approvals.delegate_own"
ANY = "outlast_approvals.delegate_any"
MAX_DAYS = 366
#: So many that are not over one person may have given to another: each is looked at with each answer, and under its locks.
MAX_HELD = 20


class BadDelegation(UsageError):
    """It could never hold."""

    code = "BAD_DELEGATION"

    def __init__(self, why: str) -> None:
        super().__init__(why)


class UnknownDelegation(UsageError):
    """No delegation with that id."""

    code = "UNKNOWN_DELEGATION"

    def __init__(self, delegation: object) -> None:
        super().__init__(f"There is no delegation {delegation!s:.80}. The admin lists those that exist.")


def delegate(
    giver: Any,
    to: Any,
    *,
    until: datetime,
    reason: str,
    by: Any,
    starts: datetime | None = None,
    role: str = "",
    pool: str = "",
    flow: str = "",
    using: str | None = None,
) -> Delegation:
    """Let `to` stand in for `giver` among those who are asked, for a time. Made twice (a double click, a form that is sent again) it is one: who
    revokes it must not find that another still holds.

    Args:
        until, starts: moments with a time zone; from now unless `starts` is given; at most a year. reason: shown with it.
        by: the giver, with `delegate_own`; or somebody with `delegate_any`. role, pool, flow: only for
            questions to that role or pool, of that flow.
    Raises:
        BadDelegation: to oneself, over before it begins, longer than a year, or somebody is no stored user. ReasonMissing. NotPermitted.
    """
    alias = identify.alias(using)
    for user in (giver, to, by):
        identify.user(
            user, lambda: BadDelegation("A delegation is made by a user, from a user, to a user of this project: pass by=user.")
        )
    warrant.check(by, OWN if by.pk == giver.pk else ANY, alias)
    why = warrant.reason(reason, "why somebody stands in")
    names = {key: _scope(key, value) for key, value in (("role", role), ("pool", pool), ("flow", flow))}
    with committing("delegate", alias):
        people.users(alias).select_for_update(no_key=True).filter(
            pk=giver.pk
        ).first()  # one after the other: the same twice is seen
        moment = now(alias)
        begins, ends = _moment(starts or moment), _moment(until)
        _check(giver, to, begins, ends, moment)
        same = Delegation.objects.using(alias).filter(giver_id=giver.pk, taker_id=to.pk, ends_at=ends, revoked_at=None, **names)
        if (made := same.filter(starts_at__lte=begins).order_by("pk").first()) is not None:
            return made
        _must_not_crowd(giver, to, moment, alias)
        return Delegation.objects.using(alias).create(
            giver_id=giver.pk,
            giver_label=identify.label(giver),
            taker_id=to.pk,
            taker_label=identify.label(to),
            starts_at=begins,
            ends_at=ends,
            reason=why,
            made_by_label=identify.label(by),
            made_at=moment,
            **names,
        )


def end_delegation(delegation: Any, *, by: Any, using: str | None = None) -> bool:
    """Revoke a delegation from this moment on; False: it was over already.

    Args:
        delegation: the row or its id. by: the giver, the taker, or somebody with `delegate_any`.
    Raises:
        UnknownDelegation. BadDelegation: `by` is no stored user. NotPermitted.
    """
    alias = identify.alias(using)
    number = row_id(getattr(delegation, "pk", delegation)) or 0
    identify.user(by, lambda: BadDelegation("A delegation is revoked by a user of this project: pass by=user."))
    with committing("end delegation", alias):
        row = Delegation.objects.using(alias).select_for_update(no_key=True).filter(pk=number).first()
        if row is None:
            raise UnknownDelegation(getattr(delegation, "pk", delegation))
        if by.pk not in (row.giver_id, row.taker_id) and not warrant.is_permitted(by, ANY, alias):
            raise NotPermitted(identify.label(by), ANY)
        moment = now(alias)
        if row.revoked_at is not None or row.ends_at <= moment:
            return False
        row.revoked_at, row.revoked_by_label = moment, identify.label(by)
        row.save(using=alias, update_fields=["revoked_at", "revoked_by_label"])
    return True


def _must_not_crowd(giver: Any, to: Any, moment: datetime, using: str) -> None:
    """A bound, and no invariant: two that are made at once may both pass."""
    rows = Delegation.objects.using(using).filter(giver_id=giver.pk, taker_id=to.pk, revoked_at=None, ends_at__gt=moment)
    if rows.count() >= MAX_HELD:
        told = {"to": identify.label(to), "count": MAX_HELD}
        raise BadDelegation(_("%(to)s has %(count)s delegations that are not over, of the same person: revoke one first.") % told)


def _scope(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise BadDelegation(_("%(name)s= is text, or empty for every one.") % {"name": name})
    return identify.reason(value.strip(), 200)


def _moment(given: Any) -> datetime:
    moment = in_utc(given)
    if moment is None:
        raise BadDelegation(_("A delegation begins and ends at moments with a time zone."))
    return moment


def _check(giver: Any, to: Any, starts: datetime, until: datetime, moment: datetime) -> None:
    if giver.pk == to.pk or people.person_of(giver) == people.person_of(to):
        raise BadDelegation(_("Nobody stands in for themselves: choose another person."))
    if until <= max(starts, moment):
        raise BadDelegation(_("A delegation ends after it begins, and not in the past."))
    if (until - starts).days > MAX_DAYS:
        raise BadDelegation(_("A delegation holds for a year at most; make a new one then."))

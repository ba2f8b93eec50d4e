"""One word about several requests. What was selected is frozen when it is shown, and each request is judged anew when the word is given.

    selected ──► shown, signed: verb, user, (request, digest, revision, step) of each ──► given within the hour, by the same user and verb
                                                                                              └─ each by itself, through the one service

A selection that was altered, is somebody else's, was made for another verb or is too old is refused as a whole; so nobody answers what they
have not been shown. Given twice it is judged twice: the second time each answer is there already. One refusal leaves the others alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.core import signing
from django.utils.translation import gettext as _

from approvals.core.binding import Shown
from approvals.models import Request
from approvals.services.claiming import assign
from approvals.services.decide import Decided, decide
from flows.core import visible
from flows.core.errors import OutlastError
from flows.core.misuse import UsageError
from flows.services import identify

#: So many requests at most at a time: each is a transaction of its own.
MAX_AT_ONCE = 100
#: For so many seconds a selection may be used.
MAX_AGE = 3600
SALT = "outlast.approvals.selection"
NOT_IN_BULK = "NOT_IN_BULK"


class SelectionRefused(UsageError):
    """What was selected cannot be used: look at it again."""

    code = "SELECTION_REFUSED"


@dataclass(frozen=True, slots=True)
class Item:
    """A request as it was shown. `step`: the one that is asked, of its ladder; None: that was not shown."""

    request_id: int
    digest: str
    revision: int
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Took:
    """What became of one of them. `code`: "accepted", "already", or why not; `said`: the same for a person."""

    request_id: int
    code: str
    said: str


def freeze(items: Iterable[Item], *, verb: str, user: Any) -> str:
    """A selection as text that only this project can have made, for this user and this verb."""
    shown = [[one.request_id, one.digest, one.revision, one.step] for one in items]
    return signing.dumps({"verb": verb, "user": str(user.pk), "items": shown}, salt=SALT, compress=True)


def thaw(text: str, *, verb: str, user: Any) -> list[Item]:
    """What was selected.

    Raises:
        SelectionRefused: altered, too old, or made by somebody else or for something else.
    """
    try:
        made = signing.loads(text, salt=SALT, max_age=MAX_AGE)
    except signing.SignatureExpired:
        raise SelectionRefused(_("The selection is more than an hour old. Nothing was changed: select again.")) from None
    except signing.BadSignature:
        raise SelectionRefused(_("The selection is not as it was shown. Nothing was changed: select again.")) from None
    if (made["verb"], made["user"]) != (verb, str(user.pk)):
        raise SelectionRefused(
            _("The selection was made by somebody else, or for something else. Nothing was changed: select again.")
        )
    return [Item(*one) for one in made["items"]]


def answer_each(items: Sequence[Item], *, verdict: str, by: Any, comment: str = "", using: str | None = None) -> list[Took]:
    """Give the same answer to each. Approved is only what its flow lets be approved in bulk.

    Args:
        items: each with the digest that `by` has been shown. verdict, by, comment: as for `decide`.
    """
    alias = identify.alias(using)
    rows = Request.objects.using(alias).filter(pk__in=[one.request_id for one in items])
    bulk = dict(rows.values_list("pk", "bulk"))

    def answer(one: Item) -> Decided:
        if verdict == "approve" and not bulk.get(one.request_id, True):
            return Decided(NOT_IN_BULK, _("Its flow wants it to be read and approved on its own page."), one.request_id)
        shown = Shown(step=one.step)
        return decide(one.request_id, verdict=verdict, digest=one.digest, by=by, comment=comment, shown=shown, using=alias)

    return _each(items, answer)


def assign_each(items: Sequence[Item], *, to: Any, by: Any, using: str | None = None) -> list[Took]:
    """Say of each that `to` looks at it; None: nobody any more."""
    alias = identify.alias(using)
    return _each(items, lambda one: assign(one.request_id, to=to, by=by, using=alias))


def _each(items: Sequence[Item], act: Callable[[Item], Decided]) -> list[Took]:
    """In the order of their ids, so that two people who do this at once meet in one order."""
    took = []
    for one in sorted(items, key=lambda item: item.request_id):
        try:
            done = act(one)
        except OutlastError as error:
            took.append(Took(one.request_id, error.code, visible.plain(str(error))))
        else:
            took.append(Took(one.request_id, done.code, visible.plain(done.sentence)))
    return took

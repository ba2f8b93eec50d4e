"""Whose turn it is: the pending requests that a user may answer, soonest to expire first.

A list, not a judgement: each request says on its own page, and once more when it is answered, whether this user may. People with several
accounts are told apart there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Func, IntegerField, OuterRef, Q, QuerySet, Subquery, TextField, Value
from django.db.models.functions import Cast
from django.db.models.lookups import Exact

from approvals.core.seats import audience
from approvals.core.status import ANSWERS, RequestStatus
from approvals.models import Pool, Request, Review
from approvals.services import people

#: How many requests are asked about one by one, where rights hang on single objects.
MAX_OBJECTS = 200

#: Beyond so many, how many wait for somebody is not counted.
MAX_WAITING = 100

SOONEST = (F("expires_at").asc(nulls_last=True), F("id").asc())


class _Each(Func):
    """Every member of an array, as a row of its own."""

    function = "unnest"
    output_field = TextField()


def pending(requests: QuerySet[Request]) -> QuerySet[Request]:
    """Those that wait for an answer and are in time."""
    return requests.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=people.FlowsNow()), status=RequestStatus.PENDING)


@dataclass(frozen=True, slots=True)
class Sitting:
    """A place from which a user answers: in their own name, or in that of `giver`, who has delegated to them, for that flow ("": for all).

    `keys`: of the audiences, among those of `Seats`, to which the one in whose name it is belongs.
    """

    keys: tuple[str, ...]
    giver: Any = None
    flow: str = ""


@dataclass(frozen=True, slots=True)
class Seats:
    """What the inbox of one user is made of.

    `keys`: of all audiences that some pending request is put to; few, however many requests there are. `flows`: the (flow, key) of those, where
    they were asked for. `sittings`: from where the user answers.
    """

    keys: tuple[str, ...]
    sittings: tuple[Sitting, ...]
    flows: frozenset[tuple[str, str]] = frozenset()

    def is_seated(self, key: str, flow: str) -> bool:
        """Whether the user answers what is put to that audience by that flow, as far as places go."""
        return any(key in one.keys and one.flow in ("", flow) for one in self.sittings)


def seats(user: Any, using: str, *, flows: bool = False) -> Seats:
    """Look all of it up: in one statement, and four more for who stands in for others, however many.

    Args:
        flows: also which flows ask; that reads the workflow of every pending request.
    """
    requests = Request.objects.using(using).filter(status=RequestStatus.PENDING)
    pools = Pool.objects.using(using).filter(members=user.pk)
    parts = [_texts("key", requests, _Each("audiences"), F("workflow__flow_name") if flows else None).distinct()]
    parts.append(_texts("pool", pools, F("name")))
    parts.append(_texts("delegation", people.held(using).filter(taker_id=user.pk), Cast("pk", TextField())))
    if hasattr(user, "groups"):
        parts.append(_texts("role", user.groups.using(using), F("name")))
    found: dict[str, list[str]] = {"key": [], "pool": [], "delegation": [], "role": []}
    asking = set()
    for kind, text, flow in parts[0].union(*parts[1:], all=True):
        found[kind].append(text)
        if flow:
            asking.add((flow, text))
    keys = tuple(sorted(set(found["key"])))
    own = people.Rights(user, using, known_groups=frozenset(found["role"]), known_pools=frozenset(found["pool"]))
    mine = Sitting(tuple(key for key in keys if own.is_asked(audience(key))))
    # Where they are asked themselves nobody answers in another's name.
    others = _for_others(user, [key for key in keys if key not in mine.keys], using) if found["delegation"] else ()
    return Seats(keys, tuple(one for one in (mine, *others) if one.keys), frozenset(asking))


def _texts(kind: str, rows: QuerySet[Any], text: Any, flow: Any = None) -> Any:
    said = {"said_kind": Value(kind, TextField()), "said_text": text, "said_flow": flow or Value("", TextField())}
    return rows.order_by().annotate(**said).values_list(*said)


def _for_others(user: Any, keys: Sequence[str], using: str) -> Iterator[Sitting]:
    """The places of those who have delegated to this user, and may answer themselves."""
    for delegation, giver in people.stood_in_for(user, using):
        asked = (key for key in keys if people.covers(delegation, audience(key), delegation.flow))
        theirs = tuple(key for key in asked if giver.is_asked(audience(key)))
        if theirs and giver.answers():
            yield Sitting(theirs, giver.user, delegation.flow)


def eligible(requests: QuerySet[Request], user: Any, known: Seats | None = None) -> QuerySet[Request]:
    """Those of them that this user may answer: asked, or standing in for somebody who is; not about their own work; not answered by them.

    Args:
        known: what `seats` said of the user, where that has been asked already.
    """
    places = _places(known or seats(user, requests.db))
    if not places:
        return requests.none()
    found = pending(requests).filter(places, _unsaid(user)).exclude(requester_id=user.pk, self_approval=False)
    if people.has_permission(user, people.ANSWER):
        return found
    some = found.select_related("workflow").order_by(*SOONEST)[:MAX_OBJECTS]
    return found.filter(pk__in=[request.pk for request in some if people.has_permission(user, people.ANSWER, request)])


def _places(known: Seats) -> Q:
    """What is put to where the user sits: in the own name, or in that of somebody who counts in no answer yet."""
    wanted = Q()
    for one in known.sittings:
        place = Q(audiences__overlap=list(one.keys))
        if one.giver is not None:
            place &= ~Q(requester_id=one.giver.pk, self_approval=False) & _unsaid(one.giver)
        wanted |= place & Q(workflow__flow_name=one.flow) if one.flow else place
    return wanted


def _unsaid(user: Any) -> Q:
    """No answer of, or in the name of, this user was taken. A pending request has one only if some approval of it is counted.

    Counted, not asked for by EXISTS: of that PostgreSQL makes one look at everything that the user ever answered, where a few rows are meant.
    """
    taken = Review.objects.filter(request_id=OuterRef("pk"), refused="", verdict__in=sorted(ANSWERS)).order_by()
    mine = taken.filter(Q(by_id=user.pk) | Q(for_user_id=user.pk)).annotate(many=Func("pk", function="count")).values("many")
    return Q(step=0, given=0) | Q(Exact(Subquery(mine, output_field=IntegerField()), 0))


def waiting(user: Any, using: str, *, most: int = MAX_WAITING) -> int:
    """How many requests wait for this user; it stops counting at `most`."""
    return eligible(Request.objects.using(using).all(), user).order_by()[:most].count()


def next_for(user: Any, *, other_than: int, using: str) -> int | None:
    """The next request that this user should look at."""
    found = eligible(Request.objects.using(using).exclude(pk=other_than), user)
    return found.order_by(*SOONEST).values_list("pk", flat=True).first()

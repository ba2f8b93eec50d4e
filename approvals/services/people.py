"""Who somebody is at this moment, and where they may sit: read anew for every decision, with any user model."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import PermissionsMixin
from django.db.models import DateTimeField, Func, Q, QuerySet, prefetch_related_objects
from django.utils.module_loading import import_string

from approvals.core.binding import UNSHOWN, ReviewFacts, Shown
from approvals.core.seats import Place, audience
from approvals.models import Delegation, Pool, Request
from flows.conf import conf
from flows.services import identify

ANSWER = "outlast_approvals.answer_request"
VIEW = "outlast_approvals.view_request"
ASSIGN = "outlast_approvals.assign_request"
REVOKE = "outlast_approvals.revoke_request"


class FlowsNow(Func):
    """The durable clock, inside a query."""

    template = "flows_now()"
    output_field = DateTimeField()


#: So many people at most are looked at for one audience.
MAX_PEOPLE = 500


def users(using: str) -> Any:
    """All users, whatever the model calls its manager."""
    return get_user_model()._default_manager.using(using)  # noqa: SLF001 - the documented way that does not assume `objects`


def current(user: Any, using: str) -> Any:
    """The user's row as it is now, not as the session remembers it; None if there is none any more."""
    return users(using).filter(pk=user.pk).first()


def has_permission(user: Any, permission: str, request: Request | None = None) -> bool:
    """Everywhere, or for this object: Django's own backend knows only the first, others (guardian, rules) the second."""
    if user.has_perm(permission):
        return True
    return request is not None and bool(user.has_perm(permission, request))


def groups(user: Any) -> frozenset[str]:
    """The names of the user's Django groups; empty for a user model without groups."""
    manager = getattr(user, "groups", None)
    return frozenset(manager.values_list("name", flat=True)) if manager is not None else frozenset()


def pools(user: Any, using: str) -> frozenset[str]:
    """The names of the reviewer pools that the user is in."""
    return frozenset(Pool.objects.using(using).filter(members=user.pk).values_list("name", flat=True))


def is_pool(name: str, using: str) -> bool:
    """Whether there is a reviewer pool of that name."""
    return Pool.objects.using(using).filter(name=name).exists()


# ---------------------------------------------------------------------- persons


@lru_cache(maxsize=8)
def _teller(path: str) -> Any:
    return import_string(path)


def person_of(user: Any) -> Hashable:
    """Who the human behind an account is, by the function of the setting `PERSON`.

    Where that gives nothing, the account is a person of its own: two of whom nothing is known are not the same, and each is somebody.
    """
    told: Hashable = _teller(conf.PERSON)(user)
    return ("account", user.pk) if told is None or told == "" else told


def persons(keys: Iterable[Any], using: str) -> dict[Any, Hashable]:
    """The person behind each of these accounts; those that are gone are missing."""
    wanted = {key for key in keys if key is not None}
    return {user.pk: person_of(user) for user in users(using).filter(pk__in=wanted)} if wanted else {}


# ---------------------------------------------------------------------- places


class Rights:
    """What one user is, looked up once for as many questions as are asked about them."""

    def __init__(
        self,
        user: Any,
        using: str,
        *,
        known_groups: frozenset[str] | None = None,
        known_pools: frozenset[str] | None = None,
        known_to_answer: bool | None = None,
    ) -> None:
        self.user = user
        self._answers = known_to_answer
        self._groups = groups(user) if known_groups is None else known_groups
        self._pools = pools(user, using) if known_pools is None else known_pools

    def is_asked(self, asked: Mapping[str, str], request: Request | None = None) -> bool:
        """Whether the user is in all that an audience names."""
        tests: dict[str, Callable[[str], bool]] = {
            "role": lambda name: name in self._groups,
            "pool": lambda name: name in self._pools,
            "permission": lambda name: has_permission(self.user, name, request),
            "user": lambda name: name == identify.label(self.user),
        }
        return bool(asked) and all(tests[key](value) for key, value in asked.items())

    def answers(self, request: Request | None = None) -> bool:
        """Whether the user may answer, as far as permissions go."""
        return has_permission(self.user, ANSWER, request) if self._answers is None else self._answers


def delegations(taker: Any, using: str) -> list[Delegation]:
    """The delegations that hold now, to this user."""
    return list(held(using).filter(taker_id=taker.pk, giver_id__isnull=False).select_related("giver").order_by("pk"))


def stood_in_for(taker: Any, using: str) -> list[tuple[Delegation, Rights]]:
    """The same, of active givers, each with what the giver is; of all of them that is looked up at once, as far as tables say it."""
    found = [(one, one.giver) for one in delegations(taker, using) if one.giver is not None and one.giver.is_active]
    if not found:
        return []
    givers = {giver.pk: giver for _one, giver in found}
    if hasattr(get_user_model(), "groups"):
        prefetch_related_objects(list(givers.values()), "groups")
    able = named(ANSWER, list(givers), using) if tables_tell() else None
    members = list(Pool.objects.using(using).filter(members__in=list(givers)).values_list("members", "name"))
    rights = {
        pk: Rights(
            giver,
            using,
            known_groups=frozenset(group.name for group in giver.groups.all()) if hasattr(giver, "groups") else frozenset(),
            known_pools=frozenset(name for member, name in members if member == pk),
            known_to_answer=None if able is None else pk in able,
        )
        for pk, giver in givers.items()
    }
    return [(one, rights[giver.pk]) for one, giver in found]


def held(using: str) -> QuerySet[Delegation]:
    """The delegations that hold at this moment."""
    return Delegation.objects.using(using).filter(starts_at__lte=FlowsNow(), ends_at__gt=FlowsNow(), revoked_at=None)


def standing_in(givers: Sequence[Any], using: str) -> list[Any]:
    """The users to whom one of these has delegated something that holds now."""
    takers = held(using).filter(giver_id__in=givers, taker_id__isnull=False).values("taker_id")
    return list(users(using).filter(pk__in=takers).order_by("pk")) if givers else []


def covers(delegation: Delegation, asked: Mapping[str, str], flow: str) -> bool:
    """Whether a delegation is about this audience of this flow."""
    limits = (("role", delegation.role), ("pool", delegation.pool))
    return all(not limit or asked.get(key) == limit for key, limit in limits) and delegation.flow in ("", flow)


def places(user: Any, keys: Sequence[str], flow: str, using: str, request: Request | None = None) -> list[Place]:
    """In whose name this user may answer what is put to these audiences: their own; only without one, those of who delegated to them.

    A delegation gives a place, never a permission: who takes it must hold every permission that is named, and so must its giver.
    """
    asked = [audience(key) for key in keys]
    own = Rights(user, using)
    if any(own.is_asked(one, request) for one in asked):
        return [Place(user.pk, identify.label(user), person_of(user))]
    may = [one for one in asked if "permission" not in one or own.is_asked({"permission": one["permission"]}, request)]
    return [
        Place(giver.user.pk, identify.label(giver.user), person_of(giver.user), delegation.pk)
        for delegation, giver in (stood_in_for(user, using) if may else ())
        if any(covers(delegation, one, flow) and giver.is_asked(one, request) for one in may) and giver.answers(request)
    ]


def facts(
    user: Any,
    request: Request,
    *,
    verdict: str = "",
    digest: str = "",
    comment: str = "",
    said: str = "",
    shown: Shown = UNSHOWN,
    permitted: bool | None = None,
) -> ReviewFacts:
    """What the judge must know of a person. `user` is a current row, or None."""
    if user is None:
        return ReviewFacts(None, None, active=False, permitted=False, places=(), verdict=verdict, digest=digest)
    using = str(request._state.db)  # noqa: SLF001 - Django's documented way to ask where a row is from
    return ReviewFacts(
        by=user.pk,
        person=person_of(user),
        active=bool(user.is_active),
        permitted=has_permission(user, ANSWER, request) if permitted is None else permitted,
        places=tuple(places(user, request.audiences, request.workflow.flow_name, using, request)),
        verdict=verdict,
        digest=digest,
        comment=comment,
        said=said,
        shown=shown,
        label=identify.label(user),
    )


# ---------------------------------------------------------------------- who is asked


def asked(keys: Sequence[str], using: str) -> Iterator[Any]:
    """The active users of these audiences who may answer, each once, without those who stand in for them; looked up only as they are taken.

    Those whom the tables of permissions name come first, so that few are looked at in vain. With a backend that gives rights to people whom no
    table names, or takes them, each is asked about, and up to `MAX_PEOPLE` more of the role, the pool or that name.
    """
    told: set[Any] = set()
    for key in keys:
        wanted = audience(key)
        needed = {ANSWER, wanted.get("permission", ANSWER)}
        for user in _likely_first(_candidates(wanted, using), needed):
            if user.pk not in told and (tables_tell() or all(map(user.has_perm, needed))):
                told.add(user.pk)
                yield user


def _likely_first(rows: Any, needed: Iterable[str]) -> Iterator[Any]:
    likely = rows
    for permission in needed:
        likely = likely.filter(_holds(permission))
    yield from likely[:MAX_PEOPLE]
    if not tables_tell():
        yield from rows.exclude(pk__in=likely.order_by().values("pk"))[:MAX_PEOPLE]


def tables_tell() -> bool:
    """Whether Django's own tables say all about permissions: no other backend and no user model of the project's has a word in it."""
    plain = list(settings.AUTHENTICATION_BACKENDS) == ["django.contrib.auth.backends.ModelBackend"]
    return plain and getattr(get_user_model(), "has_perm", None) is PermissionsMixin.has_perm


def _holds(permission: str) -> Q:
    """Who holds a permission as far as Django's own tables say."""
    known = {field.name for field in get_user_model()._meta.get_fields()}  # noqa: SLF001 - Django's documented way to look at a model
    app, _, codename = permission.partition(".")
    holds = Q(is_superuser=True) if "is_superuser" in known else Q(pk__in=[])
    for path in ("user_permissions", "groups__permissions"):
        if path.partition("__")[0] in known:
            holds |= Q(**{f"{path}__codename": codename, f"{path}__content_type__app_label": app})
    return holds


def named(permission: str, keys: Sequence[Any], using: str) -> frozenset[Any]:
    """Those of these users who hold a permission as far as tables say."""
    return frozenset(holders(permission, using).filter(pk__in=keys).values_list("pk", flat=True)) if keys else frozenset()


def holders(permission: str, using: str) -> Any:
    """The active users who hold a permission, as far as tables say so."""
    return _candidates({"permission": permission}, using)


def _candidates(wanted: Mapping[str, str], using: str) -> Any:
    """The users that tables name for an audience; permissions are asked of each of them afterwards."""
    model = get_user_model()
    known = {field.name for field in model._meta.get_fields()}  # noqa: SLF001 - Django's documented way to look at a model
    rows = users(using)
    if "is_active" in known:
        rows = rows.filter(is_active=True)
    if "role" in wanted:
        rows = rows.filter(groups__name=wanted["role"]) if "groups" in known else rows.none()
    if "pool" in wanted:
        members = Pool.members.through.objects.using(using).filter(pool__name=wanted["pool"])
        rows = rows.filter(pk__in=members.values(f"{model._meta.model_name}_id"))  # noqa: SLF001 - the column of the table between
    if "user" in wanted:
        rows = rows.filter(**{model.USERNAME_FIELD: wanted["user"]})
    if not {"role", "pool", "user"} & set(wanted):
        rows = rows.filter(_holds(wanted["permission"]))
    return rows.order_by("pk").distinct()

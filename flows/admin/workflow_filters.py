"""What the list of workflows is narrowed by, and the chips over it: how many there are of each status, and wait for what."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.http import urlencode
from django.utils.translation import gettext_lazy as _

from flows import registry
from flows.admin.read_only import CappedPaginator, OfferedFilter
from flows.core.protocol import TERMINAL, WAIT_KINDS, Status
from flows.models import Release, Workflow
from flows.services import listing, releasing
from flows.store import counts

MAX_STUCK = 1000
MAX_RELEASES = 50
CODE = re.compile(r"[A-Z][A-Z0-9_]{0,59}")

#: In the address → how old.
AGES: dict[str, tuple[Any, timedelta, bool]] = {
    "1h": (_("Started in the last hour"), timedelta(hours=1), True),
    "1d": (_("Started in the last day"), timedelta(days=1), True),
    "7d": (_("Started in the last 7 days"), timedelta(days=7), True),
    "over-1d": (_("Older than a day"), timedelta(days=1), False),
    "over-7d": (_("Older than 7 days"), timedelta(days=7), False),
    "over-30d": (_("Older than 30 days"), timedelta(days=30), False),
}


class StatusFilter(OfferedFilter):
    """By status: fixed words, so that no query looks for the ones in use."""

    title = _("status")
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(status.value, status.value) for status in Status]

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Workflow]) -> QuerySet[Workflow]:
        rows = queryset.filter(status=self.value()) if self.value() else queryset
        return (
            rows.filter(worker_id__isnull=False) if self.value() == Status.RUNNING else rows
        )  # by the index of those that are owned


class WaitFilter(OfferedFilter):
    """By what it waits for."""

    title = _("waits for")
    parameter_name = "wait"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(kind, kind) for kind in WAIT_KINDS]

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Workflow]) -> QuerySet[Workflow]:
        return listing.waiting_for(queryset, self.value()) if self.value() else queryset


class FlowFilter(OfferedFilter):
    """By flow: those that this process knows."""

    title = _("flow")
    parameter_name = "flow"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name) for name in sorted({name for name, _version in registry.known()})]

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Workflow]) -> QuerySet[Workflow]:
        return listing.of_flow(queryset, self.value()) if self.value() else queryset


class VersionFilter(OfferedFilter):
    """By version, of the flow that is chosen."""

    title = _("version")
    parameter_name = "version"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        chosen = request.GET.get("flow", "")
        return [(str(version), str(version)) for name, version in sorted(registry.known()) if name == chosen]

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Workflow]) -> QuerySet[Workflow]:
        return queryset.filter(flow_version=int(self.value())) if self.value() else queryset


class ReleaseFilter(OfferedFilter):
    """By the release that it is pinned to: the newest ones are offered."""

    title = _("release")
    parameter_name = "release"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        names = Release.objects.using(model_admin.alias).order_by("-pk").values_list("name", flat=True)
        return [(name, name) for name in names[:MAX_RELEASES]]

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Workflow]) -> QuerySet[Workflow]:
        return queryset.filter(release=self.value()) if self.value() else queryset


class ErrorFilter(OfferedFilter):
    """By the code of the last error: those of late are offered, and the one that an address names."""

    title = _("error")
    parameter_name = "error"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        named = request.GET.get("error", "")
        codes = {*listing.codes(model_admin.alias), *([named] if CODE.fullmatch(named) else [])}
        return [(code, code) for code in sorted(codes)]

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Workflow]) -> QuerySet[Workflow]:
        return queryset.filter(error_code=self.value()) if self.value() else queryset


class AgeFilter(OfferedFilter):
    """By when it was started."""

    title = _("age")
    parameter_name = "age"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(name, label) for name, (label, _age, _since) in AGES.items()]

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Workflow]) -> QuerySet[Workflow]:
        if not self.value():
            return queryset
        _label, age, since = AGES[self.value()]
        return listing.younger(queryset, age) if since else listing.older(queryset, age)


class AlertFilter(OfferedFilter):
    """What nobody moves on: ready runs whose release no live worker offers."""

    title = _("alert")
    parameter_name = "alert"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("release", _("Nobody offers its release"))]

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Workflow]) -> QuerySet[Workflow]:
        if self.value() != "release":
            return queryset
        return queryset.filter(pk__in=[workflow for workflow, *_rest in releasing.stuck(queryset.db, MAX_STUCK)])


FILTERS = (StatusFilter, WaitFilter, FlowFilter, VersionFilter, ReleaseFilter, ErrorFilter, AgeFilter, AlertFilter)
#: No index finds what these look for.
UNINDEXED = ("flow", "version", "release", "error")


def is_bounded(asked: Mapping[str, str]) -> bool:
    """Whether a list narrowed like this looks through the newest runs only: where no index finds them, and not just live ones are wanted."""
    status = asked.get("status", "")
    live = bool(status) and status not in TERMINAL
    searched = bool(asked.get("q") or asked.get("wait") or asked.get("alert"))
    return any(asked.get(name) for name in UNINDEXED) and not live and not searched


class FewPages(CappedPaginator):
    """As many as the chips count: who wants more narrows the list."""

    limit = counts.MOST


class Listed(ChangeList):
    """The list; where no index finds what it is narrowed by, it looks through the newest runs."""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        rows = super().get_queryset(request, exclude_parameters)
        asked = request.GET.dict()
        if not is_bounded(asked):
            return rows
        _label, age, since = AGES.get(asked.get("age", ""), ("", None, True))
        return listing.newest(rows, rows.db, None if since else age)


def looked_through(asked: Mapping[str, str]) -> int:
    """Among how many of the newest the list has looked; 0: among all."""
    return listing.WAITING if asked.get("wait") else listing.LOOKED_THROUGH if is_bounded(asked) else 0


def chips(request: HttpRequest, using: str) -> list[dict[str, Any]]:
    """The counts of statuses, then of what is waited for, each with the address of its list and whether it is the one that is shown."""
    return chips_of(*counts.count(using), request.GET)


def chips_of(statuses: Mapping[str, int], waits: Mapping[str, int], asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The same of counts that were read. `asked`: the query of the list, which stays narrowed as it is by the rest."""
    found = [_chip(asked, "status", status.value, statuses[status.value]) for status in Status]
    return found + [_chip(asked, "wait", kind, waits[kind]) for kind in WAIT_KINDS if waits[kind] or asked.get("wait") == kind]


def _chip(asked: Mapping[str, Any], name: str, value: str, number: int) -> dict[str, Any]:
    shown = asked.get(name) == value
    query = {other: asked[other] for other in asked if other not in ("p", "e", name)}
    if not shown:
        query[name] = value
    return {
        "of": name,
        "value": value,
        "chip": value if name == "status" else "open",
        "count": amount(number),
        "query": f"?{urlencode(query)}",
        "shown": shown,
    }


def amount(number: int) -> str:
    """A number that was counted up to a limit."""
    return f"{counts.MOST:,}+" if number > counts.MOST else f"{number:,}"

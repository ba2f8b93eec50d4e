"""What the inbox can be narrowed to. Its counts are of what is pending: of the whole past there are none, for counting that takes seconds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from django.db.models import Count, Func, Q, QuerySet, TextField
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from approvals.admin.page import shortened
from approvals.core.seats import audience
from approvals.core.status import RequestStatus
from approvals.models import Request
from approvals.models.wording import audience_in_words
from approvals.services import inbox, people
from flows import registry
from flows.admin.read_only import OfferedFilter
from flows.core import visible
from flows.services import identify

#: One's own queue, and those of what is over.
MINE = "mine"
PAST = frozenset({"answered", "all"})
#: So many of those who are asked are offered.
MAX_OFFERED = 100
_SEATS = "_outlast_seats"


def seats_of(request: HttpRequest) -> inbox.Seats:
    """Where the user of this page sits; looked up once for the page."""
    if not hasattr(request, _SEATS):
        setattr(request, _SEATS, inbox.seats(request.user, identify.alias(None), flows=True))
    found: inbox.Seats = getattr(request, _SEATS)
    return found


class CountedFilter(OfferedFilter):
    """A filter whose counts cost what is pending, however long the past is."""

    def counts(self, request: HttpRequest, queryset: QuerySet[Request]) -> Mapping[str | None, int]:
        """How many there are of each value; only those that can be counted cheaply."""
        raise NotImplementedError

    def choices(self, changelist: Any) -> Iterator[Any]:
        counted: Mapping[str | None, int] = {}
        if changelist.add_facets and (self.parameter_name == QueueFilter.parameter_name or not is_past(self.request)):
            rest = changelist.get_queryset(self.request, exclude_parameters=self.expected_parameters())
            counted = self.counts(self.request, rest.order_by())
        for value, choice in zip(
            [None, *(value for value, _label in self.lookup_choices)], super().choices(changelist), strict=True
        ):
            many = f" ({counted.get(value, 0)})" if counted and (value in counted or self.complete) else ""
            yield {**choice, "display": f"{choice['display']}{many}"}

    def has_output(self) -> bool:
        """Also where nothing is offered now: what stands in the address must find nothing then."""
        return True

    #: Whether a value without a count has none.
    complete = False


def queue_of(request: HttpRequest) -> str | None:
    """The queue that the address names; None for one's own."""
    named = request.GET.get(QueueFilter.parameter_name) or None
    return None if named == MINE else named


def is_past(request: HttpRequest) -> bool:
    """Whether the list shows what is over."""
    return queue_of(request) in PAST


class QueueFilter(CountedFilter):
    """Mine unless something else is asked for: pending, in time, and this user may answer it."""

    title = _("queue")
    parameter_name = "queue"
    default = (MINE, _("For me to answer"))

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [
            ("claimed", _("Looked at by me")),
            ("pending", _("All pending")),
            ("answered", _("Decided")),
            ("all", _("All")),
        ]

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Request]) -> QuerySet[Request]:
        return self._queue(request, queryset, self.value())

    def counts(self, request: HttpRequest, queryset: QuerySet[Request]) -> Mapping[str | None, int]:
        return {value: self._queue(request, queryset, value).count() for value in (None, "claimed", "pending")}

    def _queue(self, request: HttpRequest, queryset: QuerySet[Request], value: str | None) -> QuerySet[Request]:
        match value:
            case "claimed":
                return queryset.filter(status=RequestStatus.PENDING, claimed_by_id=request.user.pk)
            case "pending":
                return queryset.filter(status=RequestStatus.PENDING)
            case "answered":
                return queryset.exclude(answer="")
            case "all":
                return queryset
        return inbox.eligible(queryset, request.user, seats_of(request))


class FlowFilter(CountedFilter):
    """By flow: those of which this user may answer something, or, where all that waits is listed, of which something waits. What is over may be
    of any that this process knows.
    """

    title = _("flow")
    parameter_name = "flow"
    complete = True

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        if is_past(request):
            names = {name for name, _version in registry.known()}
        else:
            known, mine = seats_of(request), queue_of(request) is None
            names = {flow for flow, key in known.flows if not mine or known.is_seated(key, flow)}
        return [(name, name) for name in sorted(names)]

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Request]) -> QuerySet[Request]:
        return queryset.filter(workflow__flow_name=self.value()) if self.value() else queryset

    def counts(self, request: HttpRequest, queryset: QuerySet[Request]) -> Mapping[str | None, int]:
        found = dict(queryset.values_list("workflow__flow_name").annotate(many=Count("pk")))
        return {None: sum(found.values()), **found}


class AudienceFilter(CountedFilter):
    """By whom is asked: the groups, pools, permissions and people that some pending request is put to now."""

    title = _("asked")
    parameter_name = "asked"
    complete = True

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        named = [(key, visible.plain(shortened(audience_in_words(audience(key)), 60))) for key in seats_of(request).keys]
        return sorted(named, key=lambda one: one[1])[:MAX_OFFERED]

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Request]) -> QuerySet[Request]:
        return queryset.filter(audiences__contains=[self.value()]) if self.value() else queryset

    def counts(self, request: HttpRequest, queryset: QuerySet[Request]) -> Mapping[str | None, int]:
        each = queryset.annotate(one=Func("audiences", function="unnest", output_field=TextField()))
        return dict(each.values_list("one").annotate(many=Count("pk"))) | {None: queryset.count()}


class SoonFilter(CountedFilter):
    """By how long an answer is still possible."""

    title = _("expires")
    parameter_name = "expires"
    spans: Mapping[str, timedelta] = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("hour", _("Within an hour")), ("day", _("Within a day")), ("week", _("Within a week"))]

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Request]) -> QuerySet[Request]:
        return queryset.filter(self._within(self.value() or "")) if self.value() else queryset

    def counts(self, request: HttpRequest, queryset: QuerySet[Request]) -> Mapping[str | None, int]:
        each = {value: Count("pk", filter=self._within(value)) for value in self.spans}
        found: dict[str | None, int] = {None: queryset.count()}
        found.update(queryset.aggregate(**each).items())
        return found

    def _within(self, value: str) -> Q:
        return Q(
            status=RequestStatus.PENDING,
            expires_at__gt=people.FlowsNow(),
            expires_at__lte=people.FlowsNow() + self.spans[value],
        )

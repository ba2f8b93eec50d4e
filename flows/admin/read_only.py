"""Pages that only show. What changes a record is a verb of `flows.api`; a form here would go round the guards."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import NoReverseMatch, reverse
from django.utils.functional import cached_property
from django.utils.translation import gettext

from flows.admin.compat import model_admin
from flows.core import payload, visible
from flows.services import identify, redacting

if TYPE_CHECKING:  # generic for the type checker only
    ModelAdmin = admin.ModelAdmin[Any]
    Pages = Paginator[Any]
else:
    ModelAdmin, Pages = model_admin(), Paginator

CSS = {"all": ("outlast_flows/admin.css",)}


class CappedPaginator(Pages):
    """Counts up to a limit: nobody turns to page 300, and counting ten million rows takes seconds."""

    limit = 10_000

    @cached_property
    def count(self) -> int:
        rows = self.object_list
        return rows.order_by()[: self.limit].count() if hasattr(rows, "order_by") else len(rows)


class Shown:
    """A row whose name, in titles and breadcrumbs, shows the characters that hide in it."""

    def __init__(self, row: Model) -> None:
        self._row = row

    def __str__(self) -> str:
        return visible.plain(str(self._row))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._row, name)


class OfferedFilter(admin.SimpleListFilter):
    """A filter that takes what it offers; anything else that stands in the address finds nothing, and no query holds it."""

    #: What is listed where the address names no value: the value that may stand there too, and its words. None: all there is.
    #: It has one because a theme may offer what an address can say, and nothing else.
    default: tuple[str, Any] | None = None

    def value(self) -> Any:
        """What the address names; None for the default."""
        named = super().value() or None
        return None if self.default is not None and named == self.default[0] else named

    def has_output(self) -> bool:
        """Django applies no filter that has nothing to offer: what an address names would then find everything."""
        return super().has_output() or self.parameter_name in self.used_parameters

    def choices(self, changelist: Any) -> Iterator[Any]:
        name, first = str(self.parameter_name), self.default or (None, gettext("All"))
        chosen = self.value() or first[0]
        for value, label in [first, *self.lookup_choices]:
            query = changelist.get_query_string({name: value}) if value else changelist.get_query_string(remove=[name])
            yield {"selected": chosen == value, "query_string": query, "display": label}

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        offered = {None, *(str(value) for value, _ in self.lookup_choices)}
        return self.narrowed(request, queryset) if self.value() in offered else queryset.none()

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """What of the list is left with this value, or by default."""
        raise NotImplementedError


class AsOffered:
    """A list that is sorted as its headings offer, and by nothing else: Django sorts millions of rows by any column that an address numbers."""

    sortable_by: Collection[str]

    def get_ordering_field(self, field_name: Any) -> Any:
        return super().get_ordering_field(field_name) if field_name in self.sortable_by else None  # type: ignore[misc]


class OfferedList(ModelAdmin):
    """A list that is narrowed by its own filters, sorted by its own headings, and whose actions take rows of it: an address or a form that
    somebody made up is said to be none, and no query holds it.
    """

    #: What makes the rows of a page; it sorts as offered in any case.
    changelist_class: type[ChangeList] = ChangeList

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Every page asks this before it shows anything: so it is also where it is said who looks."""
        redacting.looks(request.user)
        return super().has_view_permission(request, obj)

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """Only what a filter reads. Django takes a lookup of any column, so one could search through candidates, or have a query fail."""
        offered = {getattr(one, "parameter_name", one) for one in self.get_list_filter(request)}  # type: ignore[arg-type]
        if lookup in offered:
            return True
        if request is not None:
            told = gettext("This list cannot be narrowed by “%(name)s”.") % {"name": visible.plain(lookup[:60])}
            self.message_user(request, told, messages.ERROR)
        raise IncorrectLookupParameters

    def get_changelist(self, request: HttpRequest, **_: Any) -> type[ChangeList]:
        return type("OfferedChangeList", (AsOffered, self.changelist_class), {})

    def response_action(self, request: HttpRequest, queryset: QuerySet[Any], *more: Any, **options: Any) -> Any:
        """Django filters by what is ticked as it comes, and fails where that can be no key of a row."""
        if all(map(self._is_key, request.POST.getlist(ACTION_CHECKBOX_NAME))):
            return super().response_action(request, queryset, *more, **options)
        self.message_user(request, gettext("What was selected is not of this list. Nothing was changed."), messages.ERROR)
        return None

    def _is_key(self, text: str) -> bool:
        try:
            self.opts.pk.to_python(text)
        except ValidationError:
            return False
        return payload.is_text(text)


class ReadOnlyAdmin(OfferedList):
    """A list and a page for those who may view; nobody adds, changes or deletes here."""

    actions = None
    show_facets = admin.ShowFacets.NEVER
    show_full_result_count = False
    paginator = CappedPaginator
    list_per_page = 50
    sortable_by = ()

    class Media:
        css = CSS

    @property
    def alias(self) -> str:
        """The database that holds the record."""
        return identify.alias(None)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).using(self.alias)

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **more: Any) -> HttpResponse:
        original = context.get("original")
        if isinstance(original, Model):
            shown = Shown(original)
            context = {**context, "original": shown, "subtitle": str(shown)}
        return super().render_change_form(request, context, *args, **more)

    def history_view(self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        row = self.get_object(request, unquote(object_id))
        named = {} if row is None else {"object": Shown(row), "title": gettext("Change history: %s") % Shown(row)}
        return super().history_view(request, object_id, {**named, **(extra_context or {})})

    def url(self, name: str, *args: Any) -> str:
        """An address of this admin site; empty where the page does not exist."""
        try:
            return reverse(f"admin:{name}", args=args, current_app=self.admin_site.name)
        except NoReverseMatch:
            return ""


def as_id(text: str) -> int | None:
    """The number in an address, if it can be that of a row: Python reads no number of thousands of digits, PostgreSQL none of twenty."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def as_uuid(text: str) -> UUID | None:
    """The UUID that somebody typed into a search box, if it is one."""
    try:
        return UUID(text.strip())
    except ValueError:
        return None

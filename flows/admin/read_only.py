"""Pages that only show. What changes a record is a verb of `flows.api`; a form here would go round the guards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import NoReverseMatch, reverse
from django.utils.functional import cached_property
from django.utils.translation import gettext

from flows.admin.compat import model_admin
from flows.core import visible
from flows.services import identify

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

    def value(self) -> Any:
        return super().value() or None

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        offered = {None, *(str(value) for value, _ in self.lookup_choices)}
        return self.narrowed(request, queryset) if self.value() in offered else queryset.none()

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """What of the list is left with this value, or by default."""
        raise NotImplementedError


class ReadOnlyAdmin(ModelAdmin):
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


def as_uuid(text: str) -> UUID | None:
    """The UUID that somebody typed into a search box, if it is one."""
    try:
        return UUID(text.strip())
    except ValueError:
        return None

"""Pages that only show. What changes a record is a verb of `flows.api`; a form here would go round the guards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.functional import cached_property

from flows.services import identify

if TYPE_CHECKING:  # generic for the type checker only
    ModelAdmin = admin.ModelAdmin[Any]
    Pages = Paginator[Any]
else:
    ModelAdmin, Pages = admin.ModelAdmin, Paginator

CSS = {"all": ("outlast_flows/admin.css",)}


class CappedPaginator(Pages):
    """Counts up to a limit: nobody turns to page 300, and counting ten million rows takes seconds."""

    limit = 10_000

    @cached_property
    def count(self) -> int:
        rows = self.object_list
        return rows.order_by()[: self.limit].count() if hasattr(rows, "order_by") else len(rows)


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

"""Reviewer pools: who is in them decides who may answer, so who may change them is a right of its own. Django logs each change."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.widgets import AdminTextInputWidget
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from approvals.admin.page import shortened
from approvals.models import Pool
from flows.admin import rendering
from flows.admin.read_only import CSS, ModelAdmin
from flows.core import visible
from flows.services import identify

#: With more users than this, members are looked for by name instead of chosen from all of them.
MAX_LISTED = 500


class PoolForm(forms.ModelForm):  # type: ignore[type-arg]
    """The name is what flows call it."""

    name = forms.CharField(
        label=_("Name"),
        max_length=200,
        help_text=_("What flows call it: Approval(pool=…). It cannot be changed later."),
        widget=AdminTextInputWidget,
    )

    def clean_name(self) -> str:
        """No two names may look alike because of a character that nobody sees."""
        name = str(self.cleaned_data["name"])
        if any(map(visible.is_hidden, name)):
            raise ValidationError(
                _("The name has characters in it that cannot be seen: %(name)s") % {"name": visible.plain(name)}
            )
        return name


@admin.register(Pool)
class PoolAdmin(ModelAdmin):
    """An ordinary page. The name stays: requests that are asked name it."""

    form = PoolForm
    fields = ("name", "note", "members")
    list_display = ("shown_name", "size", "shown_note")
    search_fields = ("name",)
    filter_horizontal = ("members",)
    ordering = ("name",)
    list_per_page = 50
    show_full_result_count = False

    class Media:
        css = CSS

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request).using(identify.alias(None)).annotate(people=Count("members"))
        return rows

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("name",) if obj is not None else ()

    def get_autocomplete_fields(self, request: HttpRequest) -> tuple[str, ...]:
        """Where there are many users, and their own page can be searched, by name."""
        users = get_user_model()
        page = self.admin_site._registry.get(users)  # noqa: SLF001 - Django's own check of such fields asks so
        many = page is not None and page.get_search_fields(request)
        listed = users._default_manager.order_by()[: MAX_LISTED + 1].count() if many else 0  # noqa: SLF001 - does not assume `objects`
        return ("members",) if listed > MAX_LISTED else ()

    @admin.display(description=_("name"), ordering="name")
    def shown_name(self, obj: Pool) -> SafeString:
        return rendering.inline(shortened(obj.name, 100))

    @admin.display(description=_("members"))
    def size(self, obj: Any) -> SafeString | str:
        if obj.people:
            return str(obj.people)
        return format_html('<span class="oa-error">{}</span>', _("nobody: it can answer nothing"))

    @admin.display(description=_("note"))
    def shown_note(self, obj: Pool) -> SafeString | str:
        return rendering.inline(shortened(obj.note, 100)) if obj.note else "–"

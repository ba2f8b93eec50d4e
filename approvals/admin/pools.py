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
from flows.admin.read_only import CSS, OfferedList
from flows.core import visible
from flows.services import identify

#: With more users than this, members are looked for by name instead of chosen from all of them.
MAX_LISTED = 500


#: What is read on the page of a pool, and never typed.
SHOWN = ("whole_name", "whole_note", "who")


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
class PoolAdmin(OfferedList):
    """An ordinary page. The name stays: requests that are asked name it."""

    form = PoolForm
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

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Who may change it has fields; who may only look reads them, with what hides in them shown."""
        if obj is None:
            return ("name", "note", "members")
        return (
            ("whole_name", "note", "members") if self.has_change_permission(request, obj) else ("whole_name", "whole_note", "who")
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return (*SHOWN, "name") if obj is not None else SHOWN

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest | None, **options: Any) -> Any:
        """Members are chosen by names that cannot look alike because of a character that nobody sees."""
        field: Any = super().formfield_for_manytomany(db_field, request, **options)  # type: ignore[arg-type]
        if field is not None:
            field.label_from_instance = lambda user: visible.plain(str(user))
        return field

    @admin.display(description=_("name"))
    def whole_name(self, obj: Pool) -> SafeString:
        return rendering.inline(obj.name)

    @admin.display(description=_("note"))
    def whole_note(self, obj: Pool) -> SafeString | str:
        return rendering.block(obj.note) if obj.note else "–"

    @admin.display(description=_("members"))
    def who(self, obj: Pool) -> SafeString | str:
        names = sorted(map(str, obj.members.all()))
        return rendering.lines([rendering.inline(name) for name in names]) if names else self.size(obj)

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

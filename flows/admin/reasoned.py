"""The form behind everything that a person decides in the admin: it asks why. And the pages that have one such form below what they show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from django import forms
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.utils.translation import gettext_lazy as _

from flows.admin.read_only import ReadOnlyAdmin
from flows.core import visible
from flows.core.errors import OutlastError
from flows.services.identify import MAX_REASON


class LeadingForm(forms.Form):
    """Refused, it comes back with the focus on the first field that is wrong: nobody looks for it from the top of the page."""

    def add_error(self, field: str | None, error: Any) -> None:
        """Also what a service said of it after the form itself had found nothing wrong."""
        super().add_error(field, error)
        wrong = [bound for bound in self.visible_fields() if bound.name in self.errors]
        for bound in wrong:
            bound.field.widget.attrs.pop("autofocus", None)
        if wrong:
            wrong[0].field.widget.attrs["autofocus"] = True


class Words(forms.CharField):
    """Text of several lines. A browser counts a line's end as one character and sends two: here it is one, as it is kept."""

    def to_python(self, value: Any) -> str:
        return str(super().to_python(value)).replace("\r\n", "\n")


class ReasonedForm(LeadingForm):
    """Why, in words. `purpose` tells the ids of several such forms on one page apart."""

    purpose = ""

    reason = Words(
        label=_("Reason"),
        max_length=MAX_REASON,
        help_text=_("It is kept for good; people read it later."),
        error_messages={"required": _("Say why: the reason is part of the record.")},
        widget=forms.Textarea(attrs={"rows": 3, "cols": False}),
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        if self.purpose:
            options.setdefault("auto_id", f"id_{self.purpose}_%s")
        super().__init__(*args, **options)


@dataclass(frozen=True, slots=True)
class Took:
    """What became of a decision, for a person, with the level of the message; and what the history keeps if it was done."""

    done: bool
    said: str
    level: int
    noted: str = ""


class DecidingAdmin(ReadOnlyAdmin):
    """A page that shows a row and, to those who may, one form: what is decided about it. It is taken by POST only, and never cached."""

    change_form_template = "admin/outlast_flows/decided/change_form.html"
    #: Who may decide; they may also look, for nobody decides blindly.
    decide_permission: ClassVar[str]
    #: The template of the form's section.
    decide_section: ClassVar[str]

    def form_of(self, obj: Any, data: Mapping[str, Any] | None = None) -> ReasonedForm:
        """The form, empty or as it was sent."""
        raise NotImplementedError

    def is_offered(self, obj: Any) -> bool:
        """Whether there is anything to decide about it now."""
        raise NotImplementedError

    def decide(self, obj: Any, by: Any, given: Mapping[str, Any]) -> Took:
        """Hand the decision to the service.

        Raises:
            OutlastError: it cannot be taken, and why.
        """
        raise NotImplementedError

    def is_key(self, text: str) -> bool:
        """Whether this can be the key of a row."""
        return text.isdecimal()

    def has_decide_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm(self.decide_permission))

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return super().has_view_permission(request, obj) or self.has_decide_permission(request)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the row, and take a decision; then back to the page, which says what became of it."""
        obj = self.get_object(request, unquote(object_id)) if self.is_key(unquote(object_id)) else None
        if obj is None:
            raise Http404
        form = self.form_of(obj)
        if request.method not in ("GET", "HEAD"):
            if request.method != "POST":
                return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
            if not self.has_decide_permission(request):
                raise PermissionDenied
            form = self.form_of(obj, request.POST)
            if form.is_valid() and self._take(request, obj, form):
                return HttpResponseRedirect(self.url(f"outlast_flows_{self.opts.model_name}_change", obj.pk))
            request.method = "GET"  # what follows only shows the page, with the form that was sent
        may, offered = self.has_decide_permission(request), form.is_bound or self.is_offered(obj)
        extra = {
            "decide_form": form if may and offered else None,
            "decide_section": self.decide_section,
            "decide_errors": form.errors,
            "decide_needs": self.decide_permission if offered and not may else "",
        }
        response = super().change_view(request, object_id, form_url, {**extra, **(extra_context or {})})
        response.headers["Cache-Control"] = "no-store"
        return response

    def _take(self, request: HttpRequest, obj: Any, form: ReasonedForm) -> bool:
        try:
            took = self.decide(obj, request.user, form.cleaned_data)
        except OutlastError as error:
            form.add_error(None, visible.plain(str(error)))
            return False
        if took.done:
            self.log_change(request, obj, took.noted)
        self.message_user(request, took.said, took.level)
        return True

"""The page of a request that asks for a form: what is asked, why, until when, and the form; afterwards what was answered.

The form is built of data: its words may be a model's, so they are shown with hidden characters named. Whether an answer is good is the
service's business alone; a file that was given is handed out as a download, never shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from django import forms
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _

from approvals.admin import page
from approvals.admin.forms import PlacedForm, placed
from approvals.core.status import RequestStatus
from approvals.models import Request, Review
from approvals.services import uploads
from approvals.services.answering import INVALID, Answered, answer, form_of
from approvals.services.asked import Asked, asked, file_of
from flows.admin import rendering
from flows.core import visible
from flows.core.fields import TEXT

if TYPE_CHECKING:
    from approvals.admin.base import RequestPages

#: Texts that may be longer than this get several lines.
LINE = 200
PREFIX = "field"

#: What keeps a browser from doing anything with a file but save it.
DOWNLOADED = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class AskedForm(PlacedForm):
    """The fields of one request. What must be given, and how much of it, the service says."""

    use_required_attribute = False

    def __init__(self, fields: list[dict[str, Any]], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.asked = fields
        for one in fields:
            made = _FIELDS[one["kind"]](one)
            made.label, made.required = visible.plain(one["label"]), False
            made.help_text = rendering.inline(one["help"]) if one["help"] else ""
            made.widget.is_required = False
            name = self._name(one)
            helped = f"oa-{name}-help " if one["help"] else ""
            made.widget.attrs |= {"aria-describedby": f"{helped}oa-{name}-errors", **_REQUIRED.get(one["required"], {})}
            self.fields[name] = made

    @staticmethod
    def _name(one: Mapping[str, Any]) -> str:
        return f"{PREFIX}-{one['name']}"

    @property
    def given(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """(values, files) as they were given; what was left empty is not among them."""
        pairs = [(one, self.cleaned_data.get(self._name(one))) for one in self.asked]
        values = {one["name"]: value for one, value in pairs if one["kind"] != "file" and value is not None}
        return values, {one["name"]: value for one, value in pairs if one["kind"] == "file" and value}

    def refused(self, answered: Answered) -> None:
        """Put the sentences of the service beside the fields."""
        for name, sentences in answered.errors.items():
            for sentence in sentences:
                self.add_error(f"{PREFIX}-{name}" if name else None, visible.plain(sentence))

    def rows(self) -> list[dict[str, Any]]:
        """The fields as the template prints them."""
        return [{"field": self[self._name(one)], "id": f"oa-{self._name(one)}", "needed": one["required"]} for one in self.asked]


def _text(one: Mapping[str, Any]) -> forms.Field:
    long = (TEXT if one["most"] is None else one["most"]) > LINE
    return forms.CharField(strip=False, widget=forms.Textarea(attrs={"rows": 4, "cols": False}) if long else forms.TextInput())


def _boolean(_one: Mapping[str, Any]) -> forms.Field:
    choices = [("", "–"), ("yes", _("Yes")), ("no", _("No"))]
    return forms.TypedChoiceField(choices=choices, coerce=lambda given: given == "yes", empty_value=None)


def _choice(one: Mapping[str, Any]) -> forms.Field:
    choices = [("", "–"), *((value, visible.plain(label)) for value, label in one["choices"])]
    return forms.TypedChoiceField(choices=choices, empty_value=None)


_FIELDS: dict[str, Callable[[Mapping[str, Any]], forms.Field]] = {
    "text": _text,
    "integer": lambda _one: forms.IntegerField(),
    "decimal": lambda _one: forms.DecimalField(max_digits=60, widget=forms.NumberInput(attrs={"step": "any"})),
    "boolean": _boolean,
    "choice": _choice,
    "date": lambda _one: forms.DateField(widget=forms.DateInput(format="%Y-%m-%d", attrs={"type": "date"})),
    "file": lambda _one: forms.FileField(),
}
_REQUIRED = {True: {"aria-required": "true"}}


def view(site: RequestPages, request: HttpRequest, obj: Request) -> HttpResponse:
    """Show it, and take an answer by POST only."""
    form = form_of(obj)
    if request.method in ("GET", "HEAD"):
        return _show(site, request, obj, AskedForm(form))
    if request.method != "POST":
        return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
    filled = AskedForm(form, request.POST, request.FILES)
    if not filled.is_valid():
        return _show(site, request, obj, filled)
    values, files = filled.given
    answered = answer(
        obj,
        values=values,
        files=files,
        digest=filled.cleaned_data["digest"],
        by=request.user,
        shown=filled.shown,
        using=site.alias,
    )
    if answered.code == INVALID:
        filled.refused(answered)
        return _show(site, request, obj, filled)
    if not site.tell(request, obj, answered.code, answered.sentence):
        return HttpResponseRedirect(site.decide_url(obj.pk))
    return site.onwards(request, obj)


def download(site: RequestPages, request: HttpRequest, obj: Request, field: str) -> HttpResponse | FileResponse:
    """A file that was given, for those who may see the request: always as a download, of no type that a browser would open."""
    if request.method not in ("GET", "HEAD"):
        return HttpResponseNotAllowed(["GET", "HEAD"])
    found = file_of(obj, field, request.user, site.alias)
    if found is None:
        raise Http404
    try:
        opened = uploads.opened(found["path"])
    except FileNotFoundError:
        raise Http404 from None
    name = visible.plain(found["name"])
    response = FileResponse(opened, as_attachment=True, filename=name, content_type="application/octet-stream")
    for header, value in DOWNLOADED.items():
        response.headers[header] = value
    return response


def _show(site: RequestPages, request: HttpRequest, obj: Request, form: AskedForm) -> HttpResponse:
    context = {
        **_context(asked(obj, request.user, site.alias), form, site.admin_site.name),
        "original": obj,
        "errors": form.errors,
        "history_url": site.url("outlast_approvals_request_history", obj.pk),
        "workflow_url": request.user.has_perm("outlast_flows.view_workflow")
        and site.url("outlast_flows_workflow_change", obj.workflow_id),
    }
    return site.page(request, "ask", context)


def _context(found: Asked, form: AskedForm, site: str) -> dict[str, Any]:
    request = found.request
    refusal = found.refusal
    return {
        "title": visible.plain(page.subject(request)),
        "subtitle": str(request),
        "request_row": request,
        "sound": found.sound,
        "form": form,
        "placed": page.fixed(placed(request, found.place)),
        "in_name_of": page.in_name_of(found.place),
        "rows": form.rows(),
        "chip": rendering.chip(request.status, request.get_status_display()),
        "pending": request.status == RequestStatus.PENDING,
        "asked": rendering.inline(page.asked(request)),
        "left": page.time_left(request.expires_at, found.now),
        "why": rendering.block(found.why) if found.why else "",
        "goal": rendering.inline(request.intent.goal or "–"),
        "run": rendering.inline(f"{request.workflow.flow_name} {request.workflow.key or request.workflow_id}"),
        "about": rendering.inline(request.workflow.subject) if request.workflow.subject else "",
        "accountable": rendering.inline(request.requester_label or "–"),
        "silence": _silence(request),
        "refusal": rendering.inline(_(refusal.template) % refusal.params) if refusal else "",
        "answers": [_answer(one, found.answer, request, site) for one in found.form] if found.answer is not None else [],
        "reviews": [_review(review) for review in found.reviews],
    }


def _silence(request: Request) -> str:
    """What happens if nobody answers."""
    kind, _colon, node = request.on_expiry.partition(":")
    return {
        "": _("The request stays open until somebody answers or the workflow ends."),
        "escalate": _("The workflow stops until a person looks at it, and the accountable user is told."),
        "human": _("The workflow stops until a person looks at it."),
        "cancel": _("The workflow is cancelled."),
        "fail": _("The workflow ends as failed."),
        "node": _("The workflow goes on at its step “%(node)s”, without an answer.") % {"node": node},
    }.get(kind, _("The workflow goes on without an answer."))


def _answer(one: Mapping[str, Any], given: Mapping[str, Any], request: Request, site: str) -> dict[str, Any]:
    """One field of an answer that was given."""
    value = given.get(one["name"])
    row = {"label": rendering.inline(one["label"]), "url": "", "about": ""}
    if isinstance(value, Mapping):
        url = reverse("admin:outlast_approvals_request_file", args=[request.pk, one["name"]], current_app=site)
        told = _("%(size)s bytes, SHA-256 %(sha256)s") % {"size": f"{value['size']:,}", "sha256": value["sha256"]}
        return row | {"html": rendering.inline(value["name"]), "url": url, "about": told}
    words = {None: "–", True: _("Yes"), False: _("No")}
    if value is None or isinstance(value, bool):
        return row | {"html": words[value]}
    text = dict(one["choices"]).get(value, value) if one["kind"] == "choice" else str(value)
    return row | {"html": rendering.block(text) if "\n" in text or len(text) > LINE else rendering.inline(text)}


def _review(review: Review) -> dict[str, Any]:
    for_label = f" ({review.for_label})" if review.for_label else ""
    return {"row": review, "said": _("answer"), "by": rendering.inline(f"{review.by_label}{for_label}"), "comment": ""}

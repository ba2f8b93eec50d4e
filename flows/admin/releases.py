"""Releases: where each is current, who is pinned to it, who offers it; what differs between two; make one current, move runs."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from flows.admin import release_forms as asked
from flows.admin import rendering
from flows.admin.read_only import ReadOnlyAdmin, Shown
from flows.core import payload, visible
from flows.core.errors import OutlastError
from flows.core.releases import ANY, PARTS
from flows.models import Release
from flows.services import releases, releases_shown
from flows.services.releases import PERMISSION

#: The word of a state → the class of its chip.
CHIPS = {"ALERT": "failed", "UNOFFERED": "pending", "current": "alive", "in use": "running"}


class ReleaseList(ChangeList):
    """The rows of the page, each with what became of it: in as many queries for one as for many."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        found = {one.name: one for one in releases_shown.overview(using=self.model_admin.alias)}  # type: ignore[attr-defined]
        self.result_list = [row for row in self.result_list if _with(row, found.get(row.name))]


def _with(row: Any, shown: releases_shown.Shown | None) -> bool:
    row.shown = shown
    return shown is not None


@admin.register(Release)
class ReleaseAdmin(ReadOnlyAdmin):
    """Read here; registering is for `flows releases register` and the API, because that is where the content is."""

    list_display = ("title", "chip", "current_for", "runs", "workers", "at", "registered_by")
    list_display_links = ("title",)
    search_fields = ("name",)
    search_help_text = _("The whole name of a release")
    ordering = ("-pk",)
    change_form_template = "admin/outlast_flows/release/change_form.html"
    changelist_class = ReleaseList

    # ------------------------------------------------------------------ permissions

    def has_manage_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm(PERMISSION))

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Who may view, and who may manage: nobody does that blindly."""
        return super().has_view_permission(request, obj) or self.has_manage_permission(request)

    # ------------------------------------------------------------------ the list

    @admin.display(description=_("release"))
    def title(self, obj: Release) -> SafeString:
        return rendering.inline(obj.name)

    @admin.display(description=_("state"))
    def chip(self, obj: Any) -> SafeString | str:
        return _chip(obj.shown)

    @admin.display(description=_("current for"))
    def current_for(self, obj: Any) -> str:
        return ", ".join(gettext("all") if flow == ANY else flow for flow in obj.shown.current_for) or "–"

    @admin.display(description=_("live runs"))
    def runs(self, obj: Any) -> int:
        return int(obj.shown.runs)

    @admin.display(description=_("offered by"))
    def workers(self, obj: Any) -> SafeString | str:
        return rendering.inline(", ".join(obj.shown.workers)) if obj.shown.workers else gettext("no live worker")

    @admin.display(description=_("by"))
    def registered_by(self, obj: Release) -> SafeString:
        return rendering.inline(obj.by_label or "–")

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        term = search_term.strip()
        if not payload.is_text(term):
            return queryset.none(), False
        return (queryset.filter(name=term) if term else queryset), False

    # ------------------------------------------------------------------ one release

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show a release; make it current or move its runs by POST only. Never cached: an old page shows old runs."""
        obj = self.get_object(request, unquote(object_id)) if unquote(object_id).isdecimal() else None
        if obj is None:
            raise Http404
        if not self.has_view_permission(request, obj):
            raise PermissionDenied
        if request.method in ("GET", "HEAD"):
            return self._show(request, obj, **self._looked(request, obj))
        if request.method != "POST":
            return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
        if not self.has_manage_permission(request):
            raise PermissionDenied
        return self._current(request, obj) if request.POST.get("act") == "current" else self._move(request, obj)

    def _current(self, request: HttpRequest, obj: Release) -> HttpResponse:
        form = asked.CurrentForm(request.POST)
        if not form.is_valid():
            return self._show(request, obj, current_form=form)
        flow, reason = form.cleaned_data["flow"], form.cleaned_data["reason"]
        try:
            changed = releases.make_current(obj.name, flow=flow or None, by=request.user, reason=reason, using=self.alias)
        except OutlastError as error:
            form.add_error(None, visible.plain(str(error)))
            return self._show(request, obj, current_form=form)
        if changed:
            self.log_change(request, obj, f"Made current for {flow or 'all flows'}: {reason}")
        told = gettext("%(name)s is current for new runs now.") if changed else gettext("%(name)s was current already.")
        self.message_user(request, told % {"name": obj.name}, messages.SUCCESS if changed else messages.WARNING)
        return HttpResponseRedirect(self._url(obj))

    def _looked(self, request: HttpRequest, obj: Release) -> dict[str, Any]:
        """What a GET asks for: what would become of runs; nothing is changed."""
        if "to" not in request.GET or not self.has_manage_permission(request):
            return {}
        form = asked.WhichForm(request.GET, source=obj, names=self._names(obj))
        if not form.is_valid():
            return {"which_form": form}
        given = form.cleaned_data
        again = asked.MoveForm(initial=given, source=obj, names=self._names(obj))
        return {"asked": asked.preview(obj, given, self.alias), "to": given["to"], "move_form": again}

    def _move(self, request: HttpRequest, obj: Release) -> HttpResponse:
        form = asked.MoveForm(request.POST, source=obj, names=self._names(obj))
        if not form.is_valid():
            told = {name: form.cleaned_data.get(name, "") for name in ("to", "flow", "run")}
            seen = asked.preview(obj, told, self.alias) if told["to"] and not form.errors.keys() - {"reason"} else None
            return self._show(request, obj, move_form=form, asked=seen, to=told["to"], errors=form.errors)
        given = form.cleaned_data
        found = asked.move(obj, given, request.user, self.alias)
        told = {"changed": found.changed, "count": len(found.moved), "to": given["to"]}
        if found.changed:
            self.log_change(request, obj, f"Moved {found.changed} runs to {given['to']}: {given['reason']}")
        self.message_user(request, gettext("%(changed)s of %(count)s moved to %(to)s.") % told, messages.SUCCESS)
        for sentence in sorted({one.sentence for one in found.moved if not one}):
            self.message_user(request, sentence, messages.WARNING)
        if found.more:
            more = gettext("%(more)s more are pinned to it: do the same again.") % {"more": found.more}
            self.message_user(request, more, messages.WARNING)
        return HttpResponseRedirect(self._url(obj))

    def _names(self, obj: Release) -> list[str]:
        return [one.name for one in releases.list_releases(using=self.alias)]

    def _url(self, obj: Release) -> str:
        return self.url("outlast_flows_release_change", obj.pk)

    def _show(self, request: HttpRequest, obj: Release, **more: Any) -> HttpResponse:
        shown = next(one for one in releases_shown.overview(using=self.alias) if one.name == obj.name)
        names = self._names(obj)
        mine = releases.parts_of(obj)
        against = request.GET.get("against", "")
        other = releases.get(against, using=self.alias) if against in names and against != obj.name else None
        currents = [one for one in releases.currents(self.alias) if one.release == obj.name]
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": self.media,
            "original": Shown(obj),
            "change": True,
            "has_view_permission": True,
            "title": gettext("Release"),
            "subtitle": str(Shown(obj)),
            "shown": shown,
            "chip": _chip(shown),
            "live": sorted(shown.live.items()),
            "workers": [rendering.inline(worker) for worker in shown.workers],
            "by": rendering.inline(shown.by) if shown.by else "",
            "note": rendering.block(shown.note) if shown.note else "",
            "current": [_current_line(one) for one in currents],
            "parts": [(part, rendering.inline(name), digest) for part in PARTS for name, digest in sorted(mine[part].items())],
            "others": [name for name in names if name != obj.name],
            "against": other.name if other else "",
            "differing": asked.diff(obj, other) if other else [],
            "may_manage": self.has_manage_permission(request),
            "current_form": asked.CurrentForm(),
            "which_form": asked.WhichForm(source=obj, names=names, initial={"run": request.GET.get("run", "")}),
            "list_url": self.url("outlast_flows_release_changelist"),
            "self_url": self._url(obj),
            "history_url": self.url("outlast_flows_release_history", obj.pk),
            **more,
        }
        context.setdefault(
            "errors", getattr(more.get("current_form"), "errors", None) or getattr(more.get("which_form"), "errors", None)
        )
        request.current_app = self.admin_site.name
        response = TemplateResponse(request, self.change_form_template or "", context)
        response.headers["Cache-Control"] = "no-store"
        return response


def _current_line(one: Any) -> dict[str, Any]:
    return {
        "flow_name": one.flow_name,
        "since": one.since,
        "by_label": one.by_label,
        "by": rendering.inline(one.by_label),
        "why": rendering.inline(one.reason),
    }


def _chip(shown: releases_shown.Shown) -> SafeString | str:
    return rendering.chip(CHIPS[shown.state], shown.state) if shown.state else "–"

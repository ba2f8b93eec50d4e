"""What a person decides about policies and envelopes, as a browser posts it; and the one call of the service behind each."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib import messages
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from flows.admin.json_field import JsonField, editable
from flows.admin.reasoned import ReasonedForm, Took
from flows.core import payload, visible
from flows.models import Competence, Policy
from flows.services import competence, policies

#: No envelope was closed then: a page that showed an open one opens none.
NEVER = datetime.min.replace(year=1970, tzinfo=UTC)


class PublishForm(ReasonedForm):
    """The next version of a policy, after the one that was on the page."""

    purpose = "publish"
    after = forms.IntegerField(min_value=1, widget=forms.HiddenInput)
    body = JsonField(
        label=_("What it says"),
        strip=False,
        help_text=_("A JSON object, in the terms of your application."),
        error_messages={"required": _("Say what the policy says: a JSON object.")},
        widget=forms.Textarea(attrs={"rows": 12, "cols": False, "spellcheck": "false"}),
    )
    blocks = forms.BooleanField(
        label=_("Runs of older versions stop at their next wake-up, until somebody adopts this one for them"),
        required=False,
        initial=True,
    )
    field_order = ("body", "blocks", "reason")


def publish_form(obj: Policy, data: Mapping[str, Any] | None) -> PublishForm:
    """It begins with what the newest version says."""
    text = editable(payload.decode(obj.body))
    return PublishForm(data, initial={"after": obj.version, "body": text, "blocks": obj.blocks})


def publish(obj: Policy, by: Any, given: Mapping[str, Any], using: str) -> Took:
    """Publish it.

    Raises:
        OutlastError: it cannot be stored, or there is a newer version than the one that was seen.
    """
    body, blocks, after = given["body"], given["blocks"], given["after"]
    made = policies.publish(obj.name, body, blocks=blocks, note=given["reason"], by=by, after=after, using=using)
    facts = {"policy": f"{visible.plain(made.name)}@{made.version}"}
    if not made.created:
        return Took(False, gettext("%(policy)s says the same already: nothing was changed.") % facts, messages.INFO)
    return Took(True, gettext("%(policy)s is published.") % facts, messages.SUCCESS, f"Published version {made.version}.")


class OpenForm(ReasonedForm):
    """Open the envelope again, as it was closed when the page was made; and what becomes of the runs that it stopped."""

    purpose = "open"
    closed = forms.CharField(required=False, max_length=60, widget=forms.HiddenInput)
    resume = forms.BooleanField(label=_("The runs that it stopped go on"), required=False, initial=True)
    field_order = ("resume", "reason")

    def clean_closed(self) -> datetime | None:
        """The moment of the closing that was seen; None: it was open."""
        text = self.cleaned_data["closed"]
        try:
            return datetime.fromisoformat(text) if text else None
        except ValueError as error:
            raise forms.ValidationError(gettext("Load the page again.")) from error


def open_form(obj: Competence, data: Mapping[str, Any] | None) -> OpenForm:
    """It names the closing that was seen."""
    return OpenForm(data, initial={"closed": _moment(obj)})


def _moment(obj: Competence) -> str:
    return obj.closed_at.isoformat() if obj.closed_at is not None else ""


def open_again(obj: Competence, by: Any, given: Mapping[str, Any], using: str) -> Took:
    """Open it, and let the runs go on.

    Raises:
        OutlastError: it cannot be opened, and why.
    """
    name = visible.plain(f"{obj.flow_name}.{obj.node}")
    options = {"release": obj.release, "closed_at": given["closed"] or NEVER, "resume": given["resume"], "using": using}
    found = competence.open_again(obj.flow_name, obj.node, reason=given["reason"], by=by, **options)
    if not found and Competence.objects.using(using).filter(pk=obj.pk, closed_at__isnull=False).exists():
        said = gettext("%(name)s was closed anew since you looked at it. Nothing was changed: look again.")
        return Took(False, said % {"name": name}, messages.WARNING)
    first = gettext("%(name)s is open again.") if found else gettext("%(name)s is open already.")
    parts = [first % {"name": name}]
    if found.resumed:
        count = len(found.resumed)
        parts.append(ngettext("%(count)s run goes on.", "%(count)s runs go on.", count) % {"count": count})
    parts += [gettext("%(run)s does not: %(why)s") % {"run": run, "why": visible.plain(why)} for run, why in found.left.items()]
    done = bool(found or found.resumed)
    level = messages.SUCCESS if done and not found.left else messages.WARNING
    return Took(done, " ".join(parts), level, "Opened again." if found else "Its runs resumed.")

"""What a person decides about webhooks, as a browser posts it; and the one call of the service behind each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from flows.admin.json_field import JsonField, editable
from flows.admin.reasoned import ReasonedForm, Took, Words
from flows.core import visible
from flows.core.hooks import SCHEMES
from flows.models import WebhookDelivery, WebhookSource, WebhookVerdict
from flows.services.webhooks import editing, mapping
from flows.services.webhooks.sources import NAME


class SourceForm(ReasonedForm):
    """How a source is described, as it was on the page."""

    purpose = "source"
    seen = forms.IntegerField(min_value=1, widget=forms.HiddenInput)
    scheme = forms.ChoiceField(label=_("Scheme"), choices=[(name, name) for name in SCHEMES])
    options = JsonField(
        label=_("Options"),
        required=False,
        strip=False,
        help_text=_("A JSON object: the options of the scheme."),
        widget=forms.Textarea(attrs={"rows": 4, "cols": False, "spellcheck": "false"}),
    )
    secrets = Words(
        label=_("Secrets"),
        max_length=2000,
        help_text=_("Where they are, a line each, the newest first: env:NAME or setting:NAME. Never a secret itself."),
        error_messages={"required": _("Say where the secret is: env:NAME.")},
        widget=forms.Textarea(attrs={"rows": 2, "cols": False, "spellcheck": "false", "autocomplete": "off"}),
    )
    event_type = forms.CharField(
        label=_("Event type"), max_length=500, help_text=_("A path, such as body.type, or text with paths in braces.")
    )
    event_key = forms.CharField(
        label=_("Event key"),
        max_length=500,
        help_text=_("A path, such as body.object.id, or text with at least one path in braces."),
    )
    payload = forms.CharField(
        label=_("Payload"), max_length=500, required=False, help_text=_("The path of what is kept; empty: the whole body.")
    )
    enabled = forms.BooleanField(label=_("Enabled: requests are taken in"), required=False, initial=True)
    field_order: tuple[str, ...] = ("scheme", "options", "secrets", "event_type", "event_key", "payload", "enabled", "reason")


class NewSourceForm(SourceForm):
    """A source that is new, with its name."""

    seen = None  # type: ignore[assignment]
    name = forms.RegexField(
        NAME,
        label=_("Name"),
        max_length=60,
        help_text=_("The end of its address: small letters, figures, dashes and underscores."),
        error_messages={"invalid": _("1 to 60 small letters, figures, dashes and underscores.")},
        widget=forms.TextInput(attrs={"autofocus": True, "autocapitalize": "none", "spellcheck": "false"}),
    )
    field_order = ("name", *SourceForm.field_order)


def source_form(obj: WebhookSource, data: Mapping[str, Any] | None) -> SourceForm:
    """It begins with how the source is described."""
    initial = {
        "seen": obj.version,
        "scheme": obj.scheme,
        "options": editable(obj.options) if obj.options else "",
        "secrets": "\n".join(obj.secrets),
        "event_type": obj.event_type,
        "event_key": obj.event_key,
        "payload": obj.payload,
        "enabled": obj.enabled,
    }
    return SourceForm(data, initial=initial)


def save(name: str, by: Any, given: Mapping[str, Any], using: str) -> tuple[editing.Saved, Took]:
    """Describe it.

    Raises:
        OutlastError: it cannot be so, or was not as it was seen.
    """
    taken = {field: given[field] for field in ("scheme", "event_type", "event_key", "payload", "enabled", "reason")}
    secrets = [line.strip() for line in given["secrets"].splitlines() if line.strip()]
    options = {} if given["options"] is None else given["options"]
    saved = editing.save(name, **taken, options=options, secrets=secrets, by=by, seen=given.get("seen"), using=using)
    facts = {"name": visible.plain(saved.name)}
    if not saved.changed:
        return saved, Took(False, gettext("%(name)s is described so already: nothing was changed.") % facts, messages.INFO)
    told = gettext("%(name)s is described so now; every web process knows it in ten seconds.") % facts
    return saved, Took(True, told, messages.SUCCESS, f"Described, version {saved.version}: {given['reason']}")


class MapForm(ReasonedForm):
    """Why a delivery is mapped anew."""

    purpose = "map"


def map_anew(obj: WebhookDelivery, by: Any, given: Mapping[str, Any], using: str) -> Took:
    """Map it.

    Raises:
        OutlastError: it cannot be mapped, and why.
    """
    found = mapping.map_anew(obj.pk, reason=given["reason"], by=by, using=using)
    facts = {"verdict": found.verdict, "why": found.code, "event": visible.plain(found.event_id)}
    if not found:
        return Took(False, gettext("It was mapped already (%(verdict)s). Nothing was changed.") % facts, messages.INFO)
    if found.verdict == WebhookVerdict.UNMAPPED:
        return Took(False, gettext("Nothing could be made of it still: %(why)s.") % facts, messages.WARNING)
    if found.verdict == WebhookVerdict.IGNORED:
        return Took(True, gettext("Its mapping says that it concerns nobody."), messages.SUCCESS, "Mapped anew: ignored.")
    told = gettext("It is %(verdict)s: event %(event)s.") % facts
    return Took(True, told, messages.SUCCESS, f"Mapped anew: {found.verdict}, {found.event_id}")

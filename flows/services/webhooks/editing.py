"""A person describes a source of webhooks, or describes it anew: with a reason, and as it was seen.

    – → described (the name is new) → described anew (guard: the version that was seen)

No code is named and no secret is written down here: what is typed in a browser names paths, and where secrets are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction

from flows.core.hooks import InvalidSource
from flows.core.misuse import UsageError
from flows.models import WebhookSource
from flows.services import clock, identify, warrant
from flows.services.webhooks import sources
from flows.services.webhooks.mapping import PERMISSION
from flows.store.sql import committing


class SourceMoved(UsageError):
    """The source is not as it was seen."""

    code = "SOURCE_MOVED"

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"The source {name!r} {why}. Nothing was changed: look again.")


@dataclass(frozen=True, slots=True)
class Saved:
    """The source as it stands. `changed`: by this call; else it was described so already."""

    id: int
    name: str
    version: int
    changed: bool


def save(
    name: str,
    *,
    scheme: str,
    secrets: Sequence[str],
    event_type: str,
    event_key: str,
    payload: str = "",
    options: Mapping[str, Any] | None = None,
    enabled: bool = True,
    reason: str,
    by: Any = None,
    seen: int | None = None,
    using: str | None = None,
) -> Saved:
    """Describe a source; the same description again changes nothing.

    Args:
        scheme, options, secrets, event_type, event_key, payload, enabled: as `OUTLAST["WEBHOOKS"]` has them; no function as `event_type`.
        reason: why, in words. by: the user, whose right is looked up anew; None: code of the project.
        seen: the version that was looked at; None: it is to be a new one. using: the database alias of the record.
    Raises:
        InvalidSource: it cannot be as it is described. SourceMoved: it is there already, gone, or not as it was seen.
        ReasonMissing: nobody says why. NotPermitted: `by` is a user who may not.
    """
    alias = identify.alias(using)
    warrant.check(by, PERMISSION, alias)
    said = warrant.reason(reason, "why webhooks are taken in this way")
    given = {
        "scheme": scheme,
        "options": {} if options is None else options,
        "secrets": list(secrets),
        "event_type": event_type.strip(),
        "event_key": event_key.strip(),
        "payload": payload.strip(),
        "enabled": enabled,
    }
    sources.made(name, sources.described(WebhookSource(**given)), of_setting=False)
    if sources.is_of_setting(name):
        raise InvalidSource("source", f"the source {name!r} stands in OUTLAST['WEBHOOKS'], which wins: change it there")
    kept = {"by": by, "by_label": identify.label(by), "reason": said}
    with committing("describe source", alias):
        saved = _new(name, {**given, **kept}, alias) if seen is None else _anew(name, seen, given, kept, alias)
    sources.forget()
    return saved


def _new(name: str, given: Mapping[str, Any], using: str) -> Saved:
    try:
        with transaction.atomic(using=using):
            made = WebhookSource.objects.using(using).create(name=name, updated_at=clock.now(using), **given)
    except IntegrityError:
        raise SourceMoved(name, "is there already") from None
    return Saved(made.pk, name, made.version, changed=True)


def _anew(name: str, seen: int, given: Mapping[str, Any], kept: Mapping[str, Any], using: str) -> Saved:
    row = WebhookSource.objects.using(using).select_for_update(no_key=True).filter(name=name).first()
    if row is None or row.version != seen:
        raise SourceMoved(name, "is gone" if row is None else f"has version {row.version} by now, not {seen}")
    if all(getattr(row, field) == value for field, value in given.items()):
        return Saved(row.pk, name, row.version, changed=False)
    for field, value in {**given, **kept, "version": row.version + 1, "updated_at": clock.now(using)}.items():
        setattr(row, field, value)
    row.save(using=using)
    return Saved(row.pk, name, row.version, changed=True)

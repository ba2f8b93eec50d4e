"""Sources of webhooks as they are described, in the setting and in rows. No value of a secret is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.core import checks
from django.db import DatabaseError

from flows import registry
from flows.checks.catalogue import TAG
from flows.checks.database import may_ask, pending
from flows.checks.values import value_of
from flows.core.errors import DefinitionError
from flows.core.hooks import InvalidSource
from flows.models import WebhookSource
from flows.services.webhooks import sources


@checks.register(TAG)
def check_webhooks(**_: Any) -> list[checks.CheckMessage]:
    """The sources of `OUTLAST["WEBHOOKS"]` can be, and their secrets are set."""
    given = value_of("WEBHOOKS")
    if not isinstance(given, Mapping):  # check_settings says so
        return []
    return [found for name, one in given.items() for found in _faults(name, one, of_setting=True)]


@checks.register(checks.Tags.database)
def check_webhook_rows(databases: Sequence[str] | None = None, **_: Any) -> list[checks.CheckMessage]:
    """The same of those that people described."""
    alias = may_ask(databases)
    try:
        if alias is None or pending(alias):
            return []
        rows = list(WebhookSource.objects.using(alias).order_by("name"))
    except DatabaseError:  # check_clock says so
        return []
    return [found for row in rows for found in _faults(row.name, sources.described(row), of_setting=False)]


def _faults(name: Any, given: Any, *, of_setting: bool) -> Iterator[checks.CheckMessage]:
    where = f"The webhook source {name!r:.80}"
    try:
        source = sources.made(name, given, of_setting=of_setting)
        if source.rule.function:
            _found(source.rule.function)
    except InvalidSource as fault:
        yield _message(where, fault)
        return
    for reference in source.secrets:
        found = sources.secret(reference)
        if not found.strip():
            hint = "Set it, or take the reference out: with it nobody can sign, and without any the sender is told to come back later."
            message = f"{where}: the secret {reference} is not set."
            yield checks.Warning(message, hint=hint, id="outlast_flows.W109")
            continue
        try:
            source.scheme.key(found)
        except InvalidSource as fault:
            yield _message(f"{where}, {reference}", fault)


def _found(function: str) -> None:
    try:
        registry.function(function)
    except DefinitionError as fault:
        raise InvalidSource("mapping", str(fault)) from fault
    except Exception as fault:
        raise InvalidSource("mapping", f"importing {function!r} raises {type(fault).__name__}") from fault


def _message(where: str, fault: InvalidSource) -> checks.CheckMessage:
    said = f"{where}: {str(fault).rstrip('.')}."
    if fault.part == "mapping":
        hint = 'Write "EVENT": "body.type", "KEY": "body.object.id"; or "EVENT" alone, the dotted path of a function.'
        return checks.Error(said, hint=hint, id="outlast_flows.E112")
    if fault.part == "secret":
        hint = 'Write "SECRETS": ["env:NAME"], and put the secret into the variable NAME of the environment.'
        return checks.Error(said, hint=hint, id="outlast_flows.E113")
    if fault.part == "tolerance":
        hint = "Leave it away: five minutes are what senders expect."
        return checks.Error(said, hint=hint, id="outlast_flows.E114")
    return checks.Error(said, hint="docs/how-to/webhooks.md has an example for each scheme.", id="outlast_flows.E111")

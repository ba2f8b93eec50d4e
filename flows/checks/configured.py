"""The settings that the flows run under: `settings.OUTLAST`, and those of Celery that matter."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.utils.module_loading import import_string

from flows import codecs
from flows.checks.catalogue import TAG
from flows.checks.values import value_of
from flows.conf import DEFAULTS
from flows.core import redaction, releases, retention

#: Settings that count seconds, rows or bytes, and make no sense below this.
LEAST = {"LINGER_SECONDS": 0}
#: Of these None switches something off.
MAY_BE_NONE = ("LIVENESS_SECONDS",)
NUMBERS = tuple(
    name
    for name, value in DEFAULTS.items()
    if isinstance(value, int | float) and not isinstance(value, bool) and name not in MAY_BE_NONE
)

#: Dotted path → what it leads to.
PATHS = {
    "DISPATCHER": "an object that publishes hints",
    "AUTHORITY": "a function of (run, permission)",
    "COMPETENCE": "a function of (run, node, errors)",
    "PLACEMENT": "a function of (run, wanted labels, offered labels)",
    "PERSON": "a function of (user)",
    "API_AUTHENTICATE": "a function of (request)",
}
#: What makes a channel of notices; the human plane is imported only where it is installed.
CHANNEL_MAKER = "approvals.services.channels.base.make"
MAY_BE_EMPTY = frozenset({"DISPATCHER"})


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list | tuple | set | frozenset) and all(isinstance(one, str) and one for one in value)


def _maps_texts(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(one, str) and one for pair in value.items() for one in pair)


def _counts(value: Any) -> bool:
    whole = isinstance(value, Mapping) and all(isinstance(one, int) and not isinstance(one, bool) for one in value.values())
    return whole and all(isinstance(name, str) and name and count > 0 for name, count in value.items())


def _is_span(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and value > 0)


#: Setting → (whether a value fits, how it is written); the numbers, the paths and RELEASES have rules of their own.
TYPES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "QUEUES": (_maps_texts, '"QUEUES": {"agents": "celery"}'),
    "PLACEMENTS": (_are_texts, '"PLACEMENTS": ["gpu"]'),
    "ESCALATE_TO": (_are_texts, '"ESCALATE_TO": ["duty officers", "shop.hear_of_it"]'),
    "REGION": (_is_text, '"REGION": "eu"'),
    "HOST_CLASS": (_is_text, '"HOST_CLASS": "large"'),
    "ADMIN_URL": (_is_text, '"ADMIN_URL": "https://www.example.org/admin"'),
    "NOTICE_DIGEST_SECONDS": (_is_span, '"NOTICE_DIGEST_SECONDS": 3600, or None'),
    "UPLOAD_STORAGE": (
        lambda value: isinstance(value, str) and value in settings.STORAGES,
        '"UPLOAD_STORAGE": "default", an alias in STORAGES',
    ),
    "NOTICE_FROM": (lambda value: value is None or isinstance(value, str), '"NOTICE_FROM": "flows@example.org", or None'),
    "REFUSE_UNANSWERABLE": (lambda value: isinstance(value, bool), '"REFUSE_UNANSWERABLE": True, or False'),
    "LIVENESS_SECONDS": (_is_span, '"LIVENESS_SECONDS": 60, or None'),
    "OVERLOAD_SECONDS": (_is_span, '"OVERLOAD_SECONDS": 60, or None'),
    "PREPARED_STATEMENTS": (lambda value: value is None or isinstance(value, bool), '"PREPARED_STATEMENTS": None, True or False'),
    "WEBHOOKS": (
        lambda value: isinstance(value, Mapping),
        '"WEBHOOKS": {"ci": {"SCHEME": "standard", "SECRETS": ["env:CI_SECRET"], "EVENT": "body.type", "KEY": "body.id"}}',
    ),
    "METRICS_TOKEN": (_is_text, '"METRICS_TOKEN": "env:METRICS_TOKEN"'),
    "ADMISSION": (_counts, '"ADMISSION": {"nightly-report": 20, "*": 500}'),
}


@checks.register(TAG)
def check_settings(**_: Any) -> list[checks.CheckMessage]:
    """`settings.OUTLAST` says what it seems to say, and the record is in PostgreSQL."""
    given = getattr(settings, "OUTLAST", {})
    if not isinstance(given, Mapping):
        hint = 'Write OUTLAST = {"LEASE_SECONDS": 10}.'
        return [checks.Error(f"settings.OUTLAST is a {type(given).__name__}.", hint=hint, id="outlast_flows.E101")]
    return [
        *_unknown_keys(given),
        *_numbers(),
        *_database(),
        *_releases(),
        *_paths(),
        *_types(),
        *_channels(),
        *_codec(),
        *_retention(),
        *_redact(),
    ]


@checks.register(TAG, deploy=True)
def check_celery(**_: Any) -> list[checks.CheckMessage]:
    """Celery settings under which a message would be more than a hint, or a lost Redis ends the worker."""
    return list(_celery())


def _unknown_keys(given: Mapping[str, Any]) -> Iterator[checks.CheckMessage]:
    for key in sorted(set(given) - set(DEFAULTS), key=str):
        near = difflib.get_close_matches(str(key), DEFAULTS, 1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Known are {', '.join(DEFAULTS)}."
        yield checks.Warning(f"settings.OUTLAST[{key!r}] means nothing.", hint=hint, id="outlast_flows.W101")


def _numbers() -> Iterator[checks.CheckMessage]:
    for key in NUMBERS:
        value = value_of(key)
        sound = isinstance(value, int | float) and not isinstance(value, bool)
        if not sound or value < LEAST.get(key, 0) or (value == 0 and key not in LEAST):
            hint = f"Give a positive number; the default is {DEFAULTS[key]}."
            yield checks.Error(f"settings.OUTLAST[{key!r}] is {value!r}.", hint=hint, id="outlast_flows.E102")
    lease, renew = value_of("LEASE_SECONDS"), value_of("LEASE_RENEW_SECONDS")
    if isinstance(lease, int | float) and isinstance(renew, int | float) and renew * 2 > lease:
        message = f"A worker renews its lease of {lease} s every {renew} s: one missed renewal and its work is given away."
        hint = "Let LEASE_RENEW_SECONDS be at most a third of LEASE_SECONDS, as the defaults are."
        yield checks.Warning(message, hint=hint, id="outlast_flows.W102")


def _releases() -> Iterator[checks.CheckMessage]:
    value = value_of("RELEASES")
    listed = isinstance(value, list | tuple | set | frozenset)
    if value is None or (listed and all(isinstance(name, str) and releases.NAME.fullmatch(name) for name in value)):
        return
    hint = 'List the names of the releases that this code carries, RELEASES = ["R17", "R18"], or leave it away: whatever it is given.'
    yield checks.Error(f"settings.OUTLAST['RELEASES'] is {value!r:.120}.", hint=hint, id="outlast_flows.E106")


def _paths() -> Iterator[checks.CheckMessage]:
    for key, kind in PATHS.items():
        value = value_of(key)
        if value == "" and key in MAY_BE_EMPTY:
            continue
        hint = f"Give the dotted path of {kind}; the default is {DEFAULTS[key]!r}."
        try:
            if not isinstance(value, str):
                why = f"which is a {type(value).__name__}"
            elif (problem := _unfit(key, import_string(value))) is not None:
                why = problem
            else:
                continue
        except Exception as fault:  # noqa: BLE001 - importing runs whatever stands in that module
            why = f"which cannot be imported: {fault}"
        yield checks.Error(f"settings.OUTLAST[{key!r}] is {value!r:.120}, {why}.", hint=hint, id="outlast_flows.E108")


def _unfit(key: str, found: Any) -> str | None:
    if key == "DISPATCHER":
        lacking = [name for name in ("publish", "look_soon", "service", "health") if not callable(getattr(found, name, None))]
        return f"which has no {', '.join(lacking)}" if lacking else None
    return None if callable(found) else "which cannot be called"


def _types() -> Iterator[checks.CheckMessage]:
    for key, (fits, example) in TYPES.items():
        value = value_of(key)
        if not fits(value):
            message = f"settings.OUTLAST[{key!r}] is {value!r:.120}."
            yield checks.Error(message, hint=f"Write {example}.", id="outlast_flows.E109")


def _channels() -> Iterator[checks.CheckMessage]:
    """Each channel is made once. No value is shown: some are secret."""
    value, key = value_of("NOTICE_CHANNELS"), "NOTICE_CHANNELS"
    hint = (
        'Write "NOTICE_CHANNELS": {"mail": {"BACKEND": "approvals.services.channels.Mail", "OPTIONS": {}}}, or {} to tell nobody.'
    )
    if isinstance(value, Mapping):
        faults = [fault for name, given in value.items() if (fault := _unmade(name, given))]
    else:
        faults = [f"OUTLAST[{key!r}] is a {type(value).__name__}"]
    for fault in faults:
        yield checks.Error(f"settings.{fault.rstrip('.')}.", hint=hint, id="outlast_flows.E110")


def _codec() -> Iterator[checks.CheckMessage]:
    """The codec is made once more. No key is shown."""
    try:
        codecs.made(value_of("CODEC"))
    except ImproperlyConfigured as fault:
        hint = 'Write "CODEC": {"BACKEND": "flows.codecs.AesGcm", "KEYS": ["env:OUTLAST_KEY"]}, or None. Until then nothing is stored.'
        yield checks.Error(f"{str(fault).rstrip('.')}.", hint=hint, id="outlast_flows.E123")


def _retention() -> Iterator[checks.CheckMessage]:
    found = [f"settings.OUTLAST['RETENTION'] {fault}." for fault in retention.faults(value_of("RETENTION"))]
    if not found and (alias := retention.read(value_of("RETENTION")).storage) not in settings.STORAGES:
        found = [f"settings.OUTLAST['RETENTION'] names the storage {alias!r}, which is not in STORAGES."]
    for message in found:
        yield checks.Error(message, hint="Until it is right, nothing is deleted.", id="outlast_flows.E124")


def _redact() -> Iterator[checks.CheckMessage]:
    for fault in redaction.faults(value_of("REDACT")):
        hint = "Until it is right, every value is hidden from who lacks see_redacted."
        yield checks.Error(f"settings.OUTLAST['REDACT'] {fault}.", hint=hint, id="outlast_flows.E125")


def _unmade(name: Any, given: Any) -> str:
    """Why a channel cannot be made, or "". A project's class may raise anything."""
    try:
        import_string(CHANNEL_MAKER)(name, given)
    except Exception as fault:  # noqa: BLE001 - it is what the check tells
        return str(fault)
    return ""


def _database() -> Iterator[checks.CheckMessage]:
    alias = value_of("DATABASE")
    if not isinstance(alias, str) or alias not in connections.settings:
        hint = f"Aliases in DATABASES: {', '.join(connections.settings)}."
        yield checks.Error(
            f"settings.OUTLAST['DATABASE'] is {alias!r}, which is no database.", hint=hint, id="outlast_flows.E103"
        )
    elif connections[alias].vendor != "postgresql":
        message = f"Database {alias!r} is {connections[alias].display_name}; Outlast keeps its record in PostgreSQL only."
        hint = "Use django.db.backends.postgresql, or name another alias: OUTLAST = {'DATABASE': 'record'}."
        yield checks.Error(message, hint=hint, id="outlast_flows.E104")


def _celery() -> Iterator[checks.CheckMessage]:
    if getattr(settings, "CELERY_TASK_ACKS_LATE", False):
        message = "CELERY_TASK_ACKS_LATE is on: a task longer than the visibility timeout runs twice at the same time."
        hint = "Set it to False. Leases in PostgreSQL bring lost work back within seconds; Redis needs minutes for that."
        yield checks.Warning(message, hint=hint, id="outlast_flows.W111")
    broker = str(getattr(settings, "CELERY_BROKER_URL", ""))
    transport = getattr(settings, "CELERY_BROKER_TRANSPORT_OPTIONS", None) or {}
    if broker.startswith(("redis", "rediss", "sentinel", "valkey")) and transport.get("ack_emulation", True):
        message = "The Redis transport keeps unacknowledged messages: Celery 5.7 ends when it loses Redis while holding one."
        hint = 'Set CELERY_BROKER_TRANSPORT_OPTIONS = {"ack_emulation": False}; it is also three times as fast.'
        yield checks.Warning(message, hint=hint, id="outlast_flows.W112")
    if getattr(settings, "CELERY_RESULT_BACKEND", None) and not getattr(settings, "CELERY_TASK_IGNORE_RESULT", False):
        message = "CELERY_RESULT_BACKEND is set: each hint leaves a result behind that nobody reads."
        hint = "Leave it away, or set CELERY_TASK_IGNORE_RESULT = True; results of workflows are in PostgreSQL."
        yield checks.Warning(message, hint=hint, id="outlast_flows.W113")
    if getattr(settings, "CELERY_TASK_REJECT_ON_WORKER_LOST", False):
        message = "CELERY_TASK_REJECT_ON_WORKER_LOST is on: a task that kills its process is delivered again without end."
        hint = "Set it to False; attempts are counted in PostgreSQL, and workers lost under an activity have a bound."
        yield checks.Warning(message, hint=hint, id="outlast_flows.W114")

"""Every setting of Outlast, with its default and its meaning; nothing else reads `settings.OUTLAST`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

DEFAULTS: dict[str, Any] = {
    # The database alias that holds the record.
    "DATABASE": "default",
    # Prepare the hot statements on the server. None: yes, unless DISABLE_SERVER_SIDE_CURSORS says that a transaction pooler is used.
    "PREPARED_STATEMENTS": None,
    # Dotted path of the object that publishes hints; "" publishes none (the clock's dispatch sweep then finds all work).
    "DISPATCHER": "tasks.dispatch.dispatcher",
    # Seconds that a worker may own work without renewing.
    "LEASE_SECONDS": 10.0,
    # Seconds between two renewals.
    "LEASE_RENEW_SECONDS": 3.0,
    # Seconds that one Celery task goes on with work before it lets go.
    "SLICE_SECONDS": 1.0,
    # Seconds of a slice that a turn without work waits for a hint, before it gives its slot back. 0 switches it off.
    "LINGER_SECONDS": 0.25,
    # How many ready workflows of quick activities one claim may take.
    "CLAIM_BATCH": 10,
    # One step of priority is worth this many seconds of waiting.
    "PRIORITY_SECONDS": 60,
    # Ready work that waits longer than this (seconds) means overload: optional activities of its queue are dropped. None: never.
    "OVERLOAD_SECONDS": None,
    # Bounds in bytes: of an input, of a result, of a note, of an event's payload.
    "MAX_INPUT_BYTES": 256 * 1024,
    "MAX_RESULT_BYTES": 256 * 1024,
    "MAX_NOTE_BYTES": 16 * 1024,
    "MAX_PAYLOAD_BYTES": 256 * 1024,
    # Queue name in flows → queue name in Celery; names that are missing stand for themselves.
    "QUEUES": {},
    # Labels of this worker process, matched with Activity(placement=…); also from OUTLAST_REGION, OUTLAST_HOST_CLASS, OUTLAST_PLACEMENTS.
    "REGION": "",
    "HOST_CLASS": "",
    "PLACEMENTS": [],
    # Dotted paths of the providers that a gate asks: who may do what, within which envelope, and where (`flows.services.providers`).
    "AUTHORITY": "flows.services.providers.authority",
    "COMPETENCE": "flows.services.providers.competence",
    "PLACEMENT": "flows.services.providers.placement",
    # Names of the behavioural releases that this worker process carries; None: whatever it is given. Also from OUTLAST_RELEASES.
    "RELEASES": None,
    # Seconds that a run may be ready while no live worker offers its release, before somebody is told.
    "RELEASE_ALERT_SECONDS": 60.0,
    # Rows that one sweep takes at a time.
    "SWEEP_BATCH": 500,
    # Who is told besides the accountable user when a deadline with ESCALATE passes: Django groups, or permissions ("app.codename").
    "ESCALATE_TO": [],
    # Do not ask for an approval that nobody could give now: the workflow stops and says so. False where reviewers get their accounts later.
    "REFUSE_UNANSWERABLE": True,
    # Dotted path of the function that gives, for a user, who the human behind the account is; by default their e-mail address tells.
    "PERSON": "flows.services.people.person",
    # The ways by which reviewers are told of requests: name → {"BACKEND": dotted path, "OPTIONS": {…}, "KINDS": […]}; {}: nobody is told.
    "NOTICE_CHANNELS": {"mail": {"BACKEND": "approvals.services.channels.Mail"}},
    # Seconds for which questions and reminders wait for others of the same person, to go out in one message. None: each by itself.
    "NOTICE_DIGEST_SECONDS": None,
    # Alias in STORAGES of the storage for files that people give as answers; best one that no web server shows.
    "UPLOAD_STORAGE": "default",
    # Bound in bytes of one such file.
    "MAX_UPLOAD_BYTES": 10 * 1024 * 1024,
    # Dotted path of the function that gives, for a request to the JSON API of approvals, who calls; by default the session's user.
    "API_AUTHENTICATE": "approvals.services.callers.session",
    # How values lie in the record: None, plain JSON; or {"BACKEND": dotted path of a codec, …} with what that takes (`flows.codecs`).
    "CODEC": None,
    # Sender of notices; None: DEFAULT_FROM_EMAIL.
    "NOTICE_FROM": None,
    # Base address of the admin for links in notices.
    "ADMIN_URL": "",
    # ---- events
    # Seconds after which an event that nobody has taken is unclaimed: somebody should look at it.
    "EVENT_UNCLAIMED_SECONDS": 86400.0,
    # ---- webhooks
    # Who may send webhooks: name → {"SCHEME": …, "SECRETS": ["env:NAME"], "EVENT": …, "KEY": …}; {}: nobody, but for sources of the admin.
    "WEBHOOKS": {},
    # Bound in bytes of one webhook's body.
    "WEBHOOK_MAX_BYTES": 1024 * 1024,
    # ---- metrics
    # What a monitoring system sends to read them (`Authorization: Bearer …`), or "env:NAME"; "": only users who may see measures.
    "METRICS_TOKEN": "",
    # ---- liveness
    # Seconds between two scans for orphans (docs/reference/orphans.md). None: no scan but `manage.py flows orphans --scan`.
    "LIVENESS_SECONDS": 60.0,
    # ---- schedules
    # Seconds by which an occurrence of a schedule may be late and is still on time; after that its missed-run policy says what becomes of it.
    "SCHEDULE_GRACE_SECONDS": 60.0,
    # ---- capacity
    # Most live runs at once, by the name of the flow; "*": of all flows together. Goes before Meta.admission.
    "ADMISSION": {},
    # Seconds between two looks at those who wait for capacity, while some of them may go.
    "PUMP_SECONDS": 0.1,
    # ---- children
    # How many items a Map may have, and how large they may be together, in bytes.
    "MAX_MAP_ITEMS": 10_000,
    "MAX_MAP_BYTES": 16 * 1024 * 1024,
    # Paths of fields in values that only users with `see_redacted` are shown (`flows.core.redaction`).
    "REDACT": [],
    # ---- retention
    # Days that ended runs are kept, where they go first, and how long other rows are kept (docs/how-to/retention.md).
    "RETENTION": {"days": 90},
    # ---- agents
    # Entries that the journal of one visit of an agent turn may have.
    "MAX_JOURNAL_ENTRIES": 500,
}


class Conf:
    """`conf.SLICE_SECONDS` and so on: the project's value or the default."""

    def __init__(self) -> None:
        self._values: dict[str, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name not in DEFAULTS:
            raise AttributeError(f"There is no Outlast setting {name!r}.")
        if self._values is None:
            given: Any = getattr(settings, "OUTLAST", {})
            if not isinstance(given, Mapping):
                raise ImproperlyConfigured(
                    f'settings.OUTLAST is a {type(given).__name__}. Write OUTLAST = {{"LEASE_SECONDS": 10}}.'
                )
            self._values = {**DEFAULTS, **given}
        return self._values[name]

    def unknown(self) -> list[str]:
        """Keys of `settings.OUTLAST` that mean nothing (a check reports them)."""
        return sorted(set(getattr(settings, "OUTLAST", {})) - set(DEFAULTS))

    def reset(self, **_: object) -> None:
        """Read the settings again (Django's `setting_changed` signal)."""
        self._values = None


conf = Conf()


def _on_change(*, setting: str, **_: object) -> None:
    if setting == "OUTLAST":
        conf.reset()


setting_changed.connect(_on_change, dispatch_uid="outlast-conf")

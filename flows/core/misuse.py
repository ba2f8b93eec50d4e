"""Errors of verbs: the caller asked for something that cannot be, and nothing was done. Each names the thing and the way out."""

from __future__ import annotations

from flows.core.errors import OutlastError


class UsageError(OutlastError):
    """The caller asked for something that cannot be; the text ends in the way out."""

    code = "USAGE_ERROR"


class UnknownFlow(UsageError):
    """No flow of that name (or version) is registered in this process."""

    code = "UNKNOWN_FLOW"

    def __init__(self, name: str, known: list[str]) -> None:
        listed = ", ".join(sorted(known)) or "none"
        super().__init__(
            f"No flow {name!r} is registered here (known: {listed}). "
            "Flows are found in flows.py of each installed app; is the app in INSTALLED_APPS?"
        )


class UnknownWorkflow(UsageError):
    """No workflow with that id."""

    code = "UNKNOWN_WORKFLOW"

    def __init__(self, workflow: object) -> None:
        super().__init__(f"There is no workflow {workflow}. `manage.py flows list` shows those that exist.")


class UnknownIntent(UsageError):
    """No intent with that id."""

    code = "UNKNOWN_INTENT"

    def __init__(self, intent: object) -> None:
        super().__init__(f"There is no intent {intent}. `flows.describe(workflow)` names the intent of a workflow.")


class NotAUser(UsageError):
    """`by=` is somebody whom the record cannot name: nobody would be told, and two of them could not be told apart."""

    code = "NOT_A_USER"

    def __init__(self, given: object, model: str, why: str) -> None:
        super().__init__(
            f"by= is {given!r:.80}, {why}. Pass a user of this project ({model}) as the database has it, "
            "or by=None for work that no person answers for."
        )


class NobodyAccountable(UsageError):
    """A run that a schedule or an event was to begin, and nobody to answer for it."""

    code = "NOBODY_ACCOUNTABLE"

    def __init__(self, user: object, why: str) -> None:
        super().__init__(
            f"The run was to begin for the user {user!s:.80}, who {why}. "
            "Name a user of this project who is active, where the schedule or the flow says for whom."
        )


class UnknownEvent(UsageError):
    """No event with that id or number."""

    code = "UNKNOWN_EVENT"

    def __init__(self, event: object) -> None:
        super().__init__(f"There is no event {event!r:.80}. `manage.py flows events list` shows those that are in the inbox.")


class CannotRedeliver(UsageError):
    """The wait that is named is none of this event's type."""

    code = "CANNOT_REDELIVER"

    def __init__(self, wait: object, why: str) -> None:
        super().__init__(
            f"The event cannot be delivered to wait {wait!s:.80}, which {why}. `manage.py flows show RUN` names its open wait."
        )


class KeyConflict(UsageError):
    """The key is taken by a run with another input."""

    code = "KEY_CONFLICT"

    def __init__(self, flow: str, key: str) -> None:
        super().__init__(
            f"{flow!r} was already started with key {key!r} and another input. "
            "A key names one run for ever: use another key, or the same input to get the existing run."
        )


class AdmissionRefused(UsageError):
    """There is no room for a new run, and the flow says that it is refused then (`Admission(over=REFUSE)`)."""

    code = "ADMISSION_REFUSED"

    def __init__(self, flow: str, label: str, size: int) -> None:
        self.label = label
        super().__init__(
            f"{flow!r} takes no new run now: {label} has its {size} live. Nothing was stored. "
            "Start it again later, or let it wait for its turn: Admission(over=DEFER)."
        )


class UnknownDependency(UsageError):
    """No dependency of that name is declared, and none is on record."""

    code = "UNKNOWN_DEPENDENCY"

    def __init__(self, name: object, known: list[str]) -> None:
        listed = ", ".join(sorted(known)) or "none"
        super().__init__(
            f'There is no dependency {name!r:.80} (known: {listed}). Declare it in flows.py: Dependency("payments").'
        )


class CannotBulk(UsageError):
    """What is to be done to many runs cannot be: no such verb or filter, none of them, or too many."""

    code = "CANNOT_BULK"


class CannotHold(UsageError):
    """What is to be held, or lifted, is nothing that can be."""

    code = "CANNOT_HOLD"


class IntentClosed(UsageError):
    """Work cannot be started for an intent that is superseded or cancelled."""

    code = "INTENT_CLOSED"

    def __init__(self, intent: object, status: str) -> None:
        super().__init__(f"Intent {intent} is {status}; start under its current version or under a new intent.")


class OutcomeUnknown(UsageError):
    """Nothing may pass an effect of which nobody knows whether it happened."""

    code = "OUTCOME_UNKNOWN"

    def __init__(self, workflow: object, operations: list[str]) -> None:
        super().__init__(
            f"Workflow {workflow} cannot go on: nobody knows whether {', '.join(operations)} happened. "
            "Say what became of it first (Operations in the admin, or `manage.py flows resolve`)."
        )


class CannotResumeAt(UsageError):
    """A person may have a run go on only where it stands, or at what the gate of that node stands on."""

    code = "CANNOT_RESUME_AT"


class ReasonMissing(UsageError):
    """Who decides for others says why: people read it later."""

    code = "REASON_MISSING"

    def __init__(self, what: str) -> None:
        super().__init__(f"Say {what}: the reason must not be empty; people read it later.")


class NotPermitted(UsageError):
    """Who is named for a decision has no right to it, or not any more."""

    code = "NOT_PERMITTED"

    def __init__(self, who: str, permission: str) -> None:
        super().__init__(f"{who or 'This user'} may not do this: it needs the permission {permission}, and an active account.")


class BadRetention(UsageError):
    """OUTLAST["RETENTION"] says something that cannot be; nothing is deleted by it."""

    code = "BAD_RETENTION"

    def __init__(self, fault: str) -> None:
        super().__init__(f'OUTLAST["RETENTION"] {fault}. Nothing was deleted.')


class NotArchived(UsageError):
    """No archived run of that id or key can be read."""

    code = "NOT_ARCHIVED"

    def __init__(self, what: object, why: str) -> None:
        super().__init__(f"The run {what!s:.120} cannot be read from the archive: {why}.")


class UnknownFinding(UsageError):
    """No orphan with that number."""

    code = "UNKNOWN_FINDING"

    def __init__(self, finding: object) -> None:
        super().__init__(f"There is no orphan {finding!s:.80}. `manage.py flows orphans` lists them.")


class UnknownOrphanKind(UsageError):
    """No kind of orphan of that name."""

    code = "UNKNOWN_ORPHAN_KIND"

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"There is no kind of orphan {name!r:.80}: {', '.join(known)}.")


class CannotRepair(UsageError):
    """An orphan of that kind is not repaired so."""

    code = "CANNOT_REPAIR"

    def __init__(self, finding: object, kind: str, offered: list[str], otherwise: str) -> None:
        ways = f"Offered: {', '.join(offered)}." if offered else "Nothing of it is repaired here."
        more = f" Beside that: {otherwise}." if otherwise else ""
        super().__init__(f"Orphan {finding} ({kind}) cannot be repaired so. {ways}{more}")


class NobodyErases(UsageError):
    """Nobody is named for it, and it cannot be taken back."""

    code = "NOBODY_ERASES"

    def __init__(self) -> None:
        super().__init__(
            "Say who erases: by= must be a user of this project, for the log names them, and nothing brings the values back."
        )


class NoCodec(UsageError):
    """No codec is configured, so there is nothing to seal with."""

    code = "NO_CODEC"

    def __init__(self) -> None:
        super().__init__('OUTLAST["CODEC"] names no codec, so there is nothing to seal with (docs/how-to/encryption.md).')

"""What people and deployments do with behavioural releases: register one, make it current, move runs to it (docs/how-to/releases.md).

move    share the current release ──► lock the workflow ──► pin, and resume what was suspended for its release     one transaction
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from flows import registry
from flows.conf import conf
from flows.core import payload
from flows.core.definition import Definition, Flow
from flows.core.misuse import UnknownWorkflow, UsageError
from flows.core.protocol import TERMINAL, Outcome, Status
from flows.core.releases import ANY, PARTS, InvalidRelease, check_name, content, differences
from flows.core.verdicts import Verdict
from flows.dispatch import after_commit, hints_for
from flows.models import CurrentRelease, Release, Workflow
from flows.services import identify, warrant
from flows.services.clock import now
from flows.store import leave, locks
from flows.store import releases as store
from flows.store.sql import committing, dumps

PERMISSION = "outlast_flows.manage_release"
MOVABLE = frozenset({Status.RUNNABLE, Status.WAITING, Status.PAUSED})


class UnknownRelease(UsageError):
    """No release of that name is registered."""

    code = "UNKNOWN_RELEASE"

    def __init__(self, name: object, known: Sequence[str]) -> None:
        listed = ", ".join(known) or "none"
        super().__init__(
            f"No release {name!s:.120} is registered (the newest are: {listed}). Register it first: flows releases register."
        )


class ReleaseTaken(UsageError):
    """The name stands for another content."""

    code = "RELEASE_TAKEN"

    def __init__(self, name: str, differing: Sequence[str]) -> None:
        super().__init__(
            f"Release {name!r} is registered with something else ({', '.join(differing)}). A release never changes: register this one "
            f"under a new name. What differs: flows releases show {name}."
        )


class Code(StrEnum):
    """What became of a move."""

    MOVED = "moved"
    KEPT = "kept"
    ALREADY = "already"
    BUSY = "busy"
    ELSEWHERE = "elsewhere"
    TOO_LATE = "too_late"


SENTENCES: dict[Code, str] = {
    Code.MOVED: "It is pinned to the release.",
    Code.KEPT: "It keeps its release beside the current one.",
    Code.ALREADY: "It was so already.",
    Code.BUSY: "It is computing, or nobody knows yet what became of an effect. Pause it, or try again when it waits.",
    Code.ELSEWHERE: "It is pinned to another release by now.",
    Code.TOO_LATE: "It has ended, or is on the way to its end.",
}


@dataclass(frozen=True, slots=True)
class Moved:
    """What a move did, or would do (`dry_run`).

    Attributes:
        status: of the run afterwards. source, target: releases; "" is none. compatible: the target declares that runs of the source may
        go on under it, or has the same content.
    """

    code: Code
    id: UUID
    flow: str
    status: str
    source: str
    target: str
    compatible: bool

    def __bool__(self) -> bool:
        return self.code in (Code.MOVED, Code.KEPT)

    @property
    def sentence(self) -> str:
        """The answer in words."""
        return SENTENCES[self.code]


def register(
    name: str,
    *,
    models: Mapping[str, Any] | None = None,
    prompts: Mapping[str, Any] | None = None,
    tools: Mapping[str, Any] | None = None,
    policies: Mapping[str, Any] | None = None,
    compatible_with: Iterable[str] = (),
    note: str = "",
    by: Any = None,
    using: str | None = None,
) -> Release:
    """Register a behavioural release. Registering the same again is harmless.

    Args:
        models, prompts, tools, policies: name → any JSON value, of which the digest is kept; a text that is a digest (`sha256:…`)
            stands for what it is the digest of. At least one of them has something in it.
        compatible_with: names of the releases whose pinned runs may go on under this one.
    Raises:
        InvalidRelease: it cannot be registered as it is given. ReleaseTaken: the name stands for something else.
        UnknownRelease: it says that it is compatible with one that is not registered. PayloadError: a value cannot be hashed or stored.
        NotPermitted: `by` is a user who may not.
    """
    alias = identify.alias(using)
    warrant.check(by, PERMISSION, alias)
    check_name(name)
    if not isinstance(note, str):
        raise InvalidRelease(f"The note of release {name} is a text, got {note!r:.60}.")
    payload.check_text(note, f"the note of release {name}")
    made = content(models=models or {}, prompts=prompts or {}, tools=tools or {}, policies=policies or {})
    if not any(made.parts.values()):
        raise InvalidRelease(f"Release {name!r} is empty: name at least one model, prompt, tool or policy.")
    known = _known(compatible_with, name, alias)
    with committing("register release", alias):
        row, _ = Release.objects.using(alias).get_or_create(
            name=name,
            defaults={
                "model_hashes": made.parts["models"],
                "prompt_hashes": made.parts["prompts"],
                "tool_hashes": made.parts["tools"],
                "policy_hashes": made.parts["policies"],
                "digest": made.digest,
                "compatible_with": known,
                "note": note,
                "by_id": identify.user_key(by),
                "by_label": identify.label(by),
                "at": now(alias),
            },
        )
    differing = sorted({f"{part} {entry}" for part, entry, *_ in differences(parts_of(row), made.parts)})
    if sorted(row.compatible_with) != known:
        differing.append("compatible_with")
    if differing:
        raise ReleaseTaken(name, differing)
    return row


def make_current(
    name: str | None, *, flow: type[Flow] | str | None = None, by: Any, reason: str, using: str | None = None
) -> bool:
    """Let new runs be pinned to that release; False: it was so before. Runs that are pinned already do on their next wake-up what
    their flow's `on_release` says.

    Args:
        name: None takes a flow's own current release away, so that the one for all holds for it again.
        flow: for this flow only; None: for every flow that has none of its own.
    Raises:
        UnknownRelease, UnknownFlow: there is none. ReasonMissing: nobody says why. NotPermitted: `by` is a user who may not.
    """
    alias = identify.alias(using)
    warrant.check(by, PERMISSION, alias)
    reason = warrant.reason(reason, "why another release becomes current")
    flow_name = _flow_name(flow)
    if name is None:
        return store.drop_current(flow_name, alias)
    return store.make_current(flow_name, get(name, using=alias).name, reason, identify.label(by), alias)


def current(flow: type[Flow] | str | None = None, *, using: str | None = None) -> Release | None:
    """The release that new runs of this flow are pinned to; without a flow, the one for all. None: they are pinned to none.

    Raises:
        UnknownFlow: there is no such flow.
    """
    alias = identify.alias(using)
    name = store.current(_flow_name(flow), alias)
    return Release.objects.using(alias).get(name=name) if name else None


def get(name: Any, *, using: str | None = None) -> Release:
    """The release of that name.

    Raises:
        UnknownRelease: there is none.
    """
    rows = Release.objects.using(identify.alias(using))
    found = rows.filter(name=name).first() if isinstance(name, str) and payload.is_text(name) else None
    if found is None:
        raise UnknownRelease(name, list(rows.order_by("-pk").values_list("name", flat=True)[:5]))
    return found


def list_releases(*, using: str | None = None) -> list[Release]:
    """Every release, newest first."""
    return list(Release.objects.using(identify.alias(using)).order_by("-pk"))


def currents(using: str) -> list[CurrentRelease]:
    """What is current: for all flows first, then by flow."""
    return list(CurrentRelease.objects.using(using).order_by("flow_name"))


def offering(name: str, using: str) -> list[str]:
    """The live workers that offer this release."""
    return [worker for worker, offered in store.offers(using) if name in offered or ANY in offered]


def parts_of(row: Release) -> dict[str, dict[str, str]]:
    """Part → name → digest."""
    return dict(zip(PARTS, (row.model_hashes, row.prompt_hashes, row.tool_hashes, row.policy_hashes), strict=True))


def move(workflow: Any, *, to: str, by: Any, reason: str, source: str | None = None, using: str | None = None) -> Moved:
    """Pin a run that waits, is paused or is ready to that release, whatever its flow's policy says; with its own release, let it keep that
    beside the one that is current. A run that was suspended because of its release goes on.

    Its waits, timers and approvals stay. While it is computing it is busy: try again, or pause it.

    Args:
        workflow: the run, or its id. to: the name of a registered release.
        by: the user, whose right is looked up anew; None: code of the project. reason: why, in words; kept in the log of the run.
        source: only if it is pinned to this release ("": to none) at that moment. using: the database alias of the record.
    Raises:
        UnknownWorkflow, UnknownRelease: there is none. ReasonMissing: nobody says why. NotPermitted: `by` is a user who may not.
    """
    alias = identify.alias(using)
    warrant.check(by, PERMISSION, alias)
    reason = warrant.reason(reason, "why the run is moved")
    target = get(to, using=alias)
    row_id = identify.workflow_id(workflow)
    row = Workflow.objects.using(alias).only("flow_name").filter(pk=row_id).first()
    if row is None:
        raise UnknownWorkflow(workflow)
    with committing("move release", alias):
        beside = store.share_current(row.flow_name, alias)
        if not locks.workflows([row_id], alias):
            raise UnknownWorkflow(workflow)
        locked = Workflow.objects.using(alias).get(pk=row_id)
        code = _judge(locked, target.name, beside, source)
        if code in (Code.MOVED, Code.KEPT):
            _pin(locked, target.name, beside, identify.label(by), reason, alias)
            locked.refresh_from_db(fields=["status"])
    return _answer(code, locked, locked.release, target, alias)


def move_all(
    *,
    to: str,
    source: str,
    flow: type[Flow] | str | None = None,
    by: Any,
    reason: str,
    dry_run: bool = False,
    using: str | None = None,
) -> Iterator[Moved]:
    """The same for every live run that is pinned to `source` ("": to none), of one flow or of all, each in a transaction of its own.

    With `dry_run`, what would become of each; nothing is changed. Errors as `move`, before the first one.
    """
    warrant.check(by, PERMISSION, identify.alias(using))
    warrant.reason(reason, "why the runs are moved")
    get(to, using=using)
    ids = runs_of(source, flow=flow, using=using)
    if dry_run:
        return (would_move(row_id, to=to, source=source, using=using) for row_id in ids)
    return (move(row_id, to=to, by=by, reason=reason, source=source, using=using) for row_id in ids)


def runs_of(name: str, *, flow: type[Flow] | str | None = None, using: str | None = None) -> list[UUID]:
    """The live runs that are pinned to a release ("": to none), of one flow or of all, oldest first.

    Raises:
        UnknownRelease, UnknownFlow: there is none.
    """
    alias = identify.alias(using)
    return store.pinned(get(name, using=alias).name if name else "", _flow_name(flow), alias)


def would_move(workflow: Any, *, to: str, source: str | None = None, using: str | None = None) -> Moved:
    """What `move` would do now; nothing is changed."""
    alias = identify.alias(using)
    row, target = identify.get(workflow, alias), get(to, using=alias)
    code = _judge(row, target.name, store.current(row.flow_name, alias), source)
    return _answer(code, row, row.release, target, alias)


def _judge(row: Workflow, target: str, beside: str, source: str | None) -> Code:
    if row.status in TERMINAL or row.target:
        return Code.TOO_LATE
    if source is not None and row.release != source:
        return Code.ELSEWHERE
    if row.status not in MOVABLE:
        return Code.BUSY
    if row.release != target:
        return Code.MOVED
    return Code.ALREADY if beside in ("", target, row.passed_over) else Code.KEPT


def _pin(row: Workflow, target: str, beside: str, who: str, reason: str, using: str) -> None:
    """Pin the locked run, and let it go on where its release was what it was suspended for."""
    note = {"release": {"from": row.release, "to": target}, "by": who, "reason": reason}
    pinned = store.pin_at_rest(row.pk, release=target, current=beside, note=dumps(note), using=using)
    assert pinned is not None, "the row is locked, and its status was looked at"
    suspended = row.outcome == Outcome.HUMAN_REQUIRED and row.error_code == Verdict.RELEASE_INCOMPATIBLE
    ready = pinned if row.status == Status.RUNNABLE else None
    if row.status == Status.WAITING and suspended:
        ready = leave.resume(row.pk, None, who, dumps({"reason": reason}), conf.PRIORITY_SECONDS, using)
    if ready is not None:
        after_commit(hints_for([ready]), using)


def _answer(code: Code, row: Workflow, source: str, target: Release, using: str) -> Moved:
    return Moved(code, row.pk, row.flow_name, row.status, source, target.name, _compatible(source, target, using))


def _compatible(source: str, target: Release, using: str) -> bool:
    if not source or source == target.name or source in target.compatible_with:
        return True
    own = Release.objects.using(using).filter(name=source).values_list("digest", flat=True).first()
    return own == target.digest


def _known(names: Iterable[str], own: str, using: str) -> list[str]:
    """The releases that one is compatible with, each once, in order; itself is left away."""
    given: Any = names
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InvalidRelease(f'compatible_with takes a list of names: compatible_with=["R17"]; got {given!r:.60}.')
    return sorted({get(name, using=using).name for name in names if name != own})


def _flow_name(flow: type[Flow] | str | None) -> str:
    if flow is None:
        return ""
    definition = getattr(flow, "definition", None)
    return definition.name if isinstance(definition, Definition) else registry.flow(str(flow)).definition.name

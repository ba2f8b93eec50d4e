"""Publish a policy, and adopt it for a run that an older version stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flows import registry
from flows.conf import conf
from flows.core import canonical, payload
from flows.core.errors import PayloadError
from flows.core.misuse import UsageError
from flows.core.protocol import TERMINAL, Outcome, Status
from flows.core.verdicts import Verdict
from flows.models import Policy, Workflow
from flows.services import control, identify, warrant
from flows.services.control import Answer, Controlled
from flows.store import locks
from flows.store import policies as store
from flows.store.sql import committing, dumps

PERMISSION = "outlast_flows.publish_policy"


class UnknownPolicy(UsageError):
    """No policy of that name is published."""

    code = "UNKNOWN_POLICY"

    def __init__(self, name: object, known: list[str]) -> None:
        known_ones = f"Published are {', '.join(known)}." if known else "None is published."
        super().__init__(f"There is no policy {name!r:.120}. {known_ones} `flows.policies.publish(name, body)` publishes one.")


class NotNewest(UsageError):
    """The policy has changed since it was looked at."""

    code = "NOT_NEWEST"

    def __init__(self, name: str, seen: int, newest: int) -> None:
        super().__init__(f"The newest version of {name!r} is {newest} by now, not {seen}. Read that first.")


class NotBound(UsageError):
    """The run's flow declares no policy."""

    code = "NOT_BOUND"

    def __init__(self, workflow: object, flow: str) -> None:
        super().__init__(
            f"Workflow {workflow} is bound to no policy: flow {flow!r} has no Meta.policy, or had none when it was started."
        )


@dataclass(frozen=True, slots=True)
class Published:
    """A version of a policy. `created`: this call made it; else the newest says the same."""

    name: str
    version: int
    digest: str
    blocks: bool
    created: bool


def publish(
    name: str,
    body: Mapping[str, Any],
    *,
    blocks: bool = True,
    note: str = "",
    by: Any = None,
    after: int | None = None,
    using: str | None = None,
) -> Published:
    """Publish the next version of a policy. The same again (body and `blocks`) changes nothing.

    Args:
        name: what flows say in Meta.policy. body: a JSON object: what the policy says, in the application's own terms.
        blocks: runs that are bound to an older version stop at their next wake-up (POLICY_BLOCKED) until a person adopts this one for
            them; False: they go on.
        by: the user, whose right is looked up anew; None: code of the project. note: why; kept with the version. A user says why.
        after: only as the next one after this version; None: after whatever is the newest. using: the database alias of the record.
    Raises:
        PayloadError: the name or the body cannot be stored. NotNewest: there is a newer one than `after`.
        ReasonMissing: `by` is named, and the note is empty. NotPermitted: `by` is a user who may not.
    """
    alias = identify.alias(using)
    warrant.check(by, PERMISSION, alias)
    said = warrant.reason(note, "why the policy changes, in its note") if by is not None else identify.reason(note)
    producer = f"the policy {name!r:.80}"
    payload.check_name(name, "the name of a policy")
    if "@" in name:
        raise PayloadError(producer, "a policy's name has no @ in it: that separates name and version")
    if not isinstance(body, Mapping):
        raise PayloadError(producer, f"must be an object (a dict), got {type(body).__name__}")
    given: Any = blocks
    if not isinstance(given, bool):
        raise PayloadError(producer, f"blocks= is True or False, got {given!r:.60}")
    text, digest = payload.text(dict(body), producer, conf.MAX_INPUT_BYTES), canonical.digest(dict(body), producer)
    with committing("publish policy", alias):
        store.lock(name, alias)
        found = store.newest(name, alias)
        if found is not None and found[1:] == (digest, blocks):
            return Published(name, found[0], digest, blocks, created=False)
        newest = found[0] if found is not None else 0
        if after is not None and after != newest:
            raise NotNewest(name, after, newest)
        version = newest + 1
        store.publish(
            {
                "name": name,
                "version": version,
                "body": text,
                "digest": digest,
                "blocks": blocks,
                "note": said,
                "by": identify.user_key(by),
                "by_label": identify.label(by),
            },
            alias,
        )
    return Published(name, version, digest, blocks, created=True)


def current(name: str, *, using: str | None = None) -> Policy:
    """The newest version of a policy, with its body.

    Raises:
        UnknownPolicy: none of that name is published.
    """
    rows = Policy.objects.using(identify.alias(using))
    found = rows.filter(name=name).order_by("-version").first() if payload.is_name(name) else None
    if found is None:
        raise UnknownPolicy(name, sorted(set(rows.values_list("name", flat=True))))
    found.body = payload.decode(found.body)
    return found


def adopt(
    workflow: Any, *, reason: str, by: Any = None, seen: str | None = None, version: int | None = None, using: str | None = None
) -> Controlled:
    """Bind a run to the newest version of its policy; one that was stopped by it goes on, through the gate.

    `too_late`: the run has ended, or is computing just now (its next wake-up is stopped, then adopt again). `already`: it is bound to it.

    Args:
        workflow: the run, or its id. reason: why, in words; kept in the log of the run.
        by: the user, whose right is looked up anew; None: code of the project.
        seen: `flows.describe(run).seen` of what was shown; None does not look. version: only if this is the newest one.
        using: the database alias of the record.
    Raises:
        UnknownWorkflow: there is none. NotBound: its flow has no policy. UnknownPolicy: nothing is published. NotNewest: see `version`.
        ReasonMissing: nobody says why. NotPermitted: `by` is a user who may not.
    """
    alias = identify.alias(using)
    warrant.check(by, PERMISSION, alias)
    reason = warrant.reason(reason, "why the run is bound to another version of its policy")
    row_id = identify.workflow_id(workflow)
    identify.get(row_id, alias)
    with committing("adopt policy", alias):
        locks.workflows([row_id], alias)
        row = Workflow.objects.using(alias).get(pk=row_id)
        if not row.policy_version:
            raise NotBound(row_id, row.flow_name)
        wanted = _newest(row, alias)
        if row.policy_version == wanted:
            return Controlled(Answer.ALREADY, row.status, row_id)
        if seen is not None and row.status not in TERMINAL and seen != control.seen_of(row):
            return Controlled(Answer.MOVED, row.status, row_id)
        name, _, newest = wanted.rpartition("@")
        if version is not None and version != int(newest):
            raise NotNewest(name, version, int(newest))
        note = dumps({"reason": reason, "by": identify.label(by)})
        outcome = None if row.status in TERMINAL else store.adopt(row_id, wanted, note, alias)
        if outcome is None:
            return Controlled(Answer.TOO_LATE, row.status, row_id)
        if row.status == Status.WAITING and outcome == Outcome.POLICY_BLOCKED:
            return control.resume(row_id, reason=reason, by=by, using=alias)
    return Controlled(Answer.ACCEPTED, row.status, row_id)


def newer(row: Workflow, using: str) -> str:
    """The newest version of the policy that a run is bound to, if it is another one; empty where it is not, or the run is bound to none."""
    try:
        found = _newest(row, using) if row.policy_version else ""
    except UnknownPolicy:
        return ""
    return found if found != row.policy_version else ""


def stopped(name: str, *, using: str | None = None) -> list[Workflow]:
    """The runs that wait for a person because of a newer version of this policy, in the order of their ids."""
    rows = Workflow.objects.using(identify.alias(using)).filter(
        status=Status.WAITING.value,
        outcome=Outcome.POLICY_BLOCKED.value,
        error_code=Verdict.POLICY_BLOCKED.value,
        policy_version__startswith=f"{name}@",
    )
    return list(rows.order_by("pk"))


def _newest(row: Workflow, using: str) -> str:
    definition = registry.definition(row.flow_name, row.flow_version)
    name = row.policy_version.rpartition("@")[0] or (definition.policy if definition is not None else "")
    return f"{name}@{current(name, using=using).version}"

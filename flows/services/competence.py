"""Open a competence envelope again: a person's decision, with a reason; and let the runs go on that it stopped.

open      the envelope is opened and the opening kept     one transaction
resume    each run that still waits because of it         one transaction each, after that: an envelope is locked behind workflows
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from flows import registry
from flows.core import payload
from flows.core.misuse import OutcomeUnknown
from flows.core.protocol import Outcome, Status
from flows.core.verdicts import Verdict
from flows.models import Competence, Workflow
from flows.services import control, identify, warrant
from flows.store import competence as store
from flows.store.sql import committing

PERMISSION = "outlast_flows.open_competence"


@dataclass(frozen=True, slots=True)
class Opened:
    """What became of it: whether this call opened the envelope, the runs that go on, and those that do not, each with why."""

    opened: bool
    resumed: tuple[UUID, ...] = ()
    left: Mapping[UUID, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.opened


def open_again(
    flow: str,
    node: str,
    *,
    release: str = "",
    reason: str,
    by: Any = None,
    resume: bool = False,
    closed_at: datetime | None = None,
    using: str | None = None,
) -> Opened:
    """Open the closed envelope of a node under one release; its errors are counted anew. False: there is none that is closed.

    Args:
        flow, node: names: of the flow, and of the node whose candidates are verified. release: under which one; "": under none.
        reason: why, in words; each opening is kept with it, for good.
        by: the user, whose right is looked up anew; None: code of the project. using: the database alias of the record.
        resume: the runs that it stopped (COMPETENCE_EXCEEDED) go on, also where it was open already; without it, each by `flows.resume`.
        closed_at: only if it was closed at that moment (and no run goes on under one that is closed); None: whenever that was.
    Raises:
        ReasonMissing: nobody says why. NotPermitted: `by` is a user who may not.
    """
    alias = identify.alias(using)
    warrant.check(by, PERMISSION, alias)
    reason = warrant.reason(reason, "why the envelope is opened again")
    for what, name in (("the flow", flow), ("the node", node), ("the release", release)):
        payload.check_text(name, what)
    with committing("open envelope", alias):
        opened = store.open_envelope(
            flow, node, release, closed_at, reason=reason, by=identify.user_key(by), by_label=identify.label(by), using=alias
        )
    waiting = stopped(flow, node, release=release, using=alias) if resume and not _is_closed(flow, node, release, alias) else []
    resumed: list[UUID] = []
    left: dict[UUID, str] = {}
    for row in waiting:
        try:
            if control.resume(row.pk, reason=reason, by=by, seen=control.seen_of(row), using=alias):
                resumed.append(row.pk)
        except OutcomeUnknown as error:
            left[row.pk] = str(error)
    return Opened(opened, tuple(resumed), left)


def _is_closed(flow: str, node: str, release: str, using: str) -> bool:
    rows = Competence.objects.using(using).filter(flow_name=flow, node=node, release=release, closed_at__isnull=False)
    return rows.exists()


def stopped(flow: str, node: str, *, release: str = "", using: str | None = None) -> list[Workflow]:
    """The runs that wait because the envelope of this node is closed, or was when they came to it; in the order of their ids."""
    rows = Workflow.objects.using(identify.alias(using)).filter(
        flow_name=flow,
        release=release,
        status=Status.WAITING.value,
        outcome=Outcome.HUMAN_REQUIRED.value,
        error_code=Verdict.COMPETENCE_EXCEEDED.value,
    )
    return [row for row in rows.order_by("pk") if envelope_of(row) in (node, "")]


def envelope_of(row: Workflow) -> str:
    """The node whose envelope the run's node asks for, as far as this process knows the flow; empty where it does not."""
    node = registry.node(row.flow_name, row.flow_version, row.node)
    gate = getattr(node, "gate", None)
    return str(gate.competence.of) if gate is not None and gate.competence is not None else ""

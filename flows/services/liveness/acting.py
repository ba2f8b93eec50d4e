"""What a person does about a finding: one of the repairs that its kind offers, or nothing (dismissed). One service behind admin and command.

    lock finding ──► still there? ──► the repair, under its own guard ──► repaired      one transaction
                          └─ no: ALREADY            └─ it hit nothing: MOVED, and the finding is open still
Right: to operate workflows, and that of the repair. A reason is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from flows.core.liveness import KINDS, RIGHTS, FindingStatus, OrphanKind, Repair
from flows.core.misuse import CannotRepair, UnknownFinding
from flows.models import Finding
from flows.services import identify, warrant
from flows.services.liveness.mending import NotHere, mend
from flows.store import findings as store
from flows.store.sql import committing

PERMISSION = "outlast_flows.operate_workflow"


class Answer(StrEnum):
    """accepted: it is done. already: it is not there any more. moved: the repair hit nothing: look again."""

    ACCEPTED = "accepted"
    ALREADY = "already"
    MOVED = "moved"


SENTENCES: dict[Answer, str] = {
    Answer.ACCEPTED: "Done.",
    Answer.ALREADY: "It is not there any more, or somebody is at it. Nothing was changed.",
    Answer.MOVED: "There was nothing to repair, or this process cannot: the next scan says whether it is still there.",
}


@dataclass(frozen=True, slots=True)
class Acted:
    """What became of it."""

    answer: Answer
    finding: int
    repair: str = ""

    def __bool__(self) -> bool:
        return self.answer is Answer.ACCEPTED

    @property
    def sentence(self) -> str:
        return SENTENCES[self.answer]


def get(finding: Any, *, using: str | None = None) -> Finding:
    """The row as it is now.

    Raises:
        UnknownFinding: there is none.
    """
    number = str(getattr(finding, "pk", finding))
    known = number.isascii() and number.isdecimal() and len(number) < 19
    row = Finding.objects.using(identify.alias(using)).filter(pk=int(number)).first() if known else None
    if row is None:
        raise UnknownFinding(finding)
    return row


def kind_of(row: Finding) -> OrphanKind:
    """The row of the table; of a kind that is no more, one that offers nothing."""
    return KINDS.get(row.kind) or OrphanKind(row.kind, "a kind that this version does not know", "")


def repairs(row: Finding) -> tuple[Repair, ...]:
    """What a person may do about it now."""
    if row.status != FindingStatus.OPEN:
        return ()
    needs_run = {Repair.CANCEL, Repair.MIGRATE}
    return tuple(one for one in kind_of(row).repairs if row.workflow_id is not None or one not in needs_run)


def repair(finding: Any, *, by: Any, reason: str, how: Repair | str | None = None, using: str | None = None) -> Acted:
    """Repair it.

    Args:
        finding: the row, or its number. by: who decides: a user with `operate_workflow` and the right of the repair, or None for code.
        reason: why, in words; it is kept. how: one of those that its kind offers; default: the first.
    Raises:
        UnknownFinding: there is none. CannotRepair: that is not offered for it. ReasonMissing, NotPermitted, NotAUser.
    """
    alias = identify.alias(using)
    row = get(finding, using=alias)
    offered = kind_of(row).repairs
    if not offered or (how is not None and str(how) not in {one.value for one in offered}):
        raise CannotRepair(row.pk, row.kind, [one.value for one in offered], kind_of(row).otherwise)
    chosen = Repair(how) if how is not None else offered[0]
    warrant.check(by, PERMISSION, alias)
    if chosen in RIGHTS:
        warrant.check(by, RIGHTS[chosen], alias)
    said = warrant.reason(reason, "why it is repaired so")
    with committing("repair", alias):
        locked = store.lock(row.pk, alias)
        if locked is None or locked.status != FindingStatus.OPEN:
            return Acted(Answer.ALREADY, row.pk)
        try:
            hit = mend(chosen, locked, alias, by=by, reason=said)
        except NotHere:
            return Acted(Answer.MOVED, row.pk)
        if not hit:
            store.tried(row.pk, alias)
            return Acted(Answer.MOVED, row.pk)
        store.repaired(row.pk, chosen.value, alias, by=identify.user_key(by), label=identify.label(by), reason=said)
    return Acted(Answer.ACCEPTED, row.pk, chosen.value)


def dismiss(finding: Any, *, by: Any, reason: str, using: str | None = None) -> Acted:
    """Nothing is to be done about it. It stays dismissed for as long as it is there; when it goes and comes back, it is a new finding.

    Raises:
        UnknownFinding: there is none. ReasonMissing, NotPermitted, NotAUser.
    """
    alias = identify.alias(using)
    row = get(finding, using=alias)
    warrant.check(by, PERMISSION, alias)
    said = warrant.reason(reason, "why nothing is to be done about it")
    done = store.dismiss(row.pk, identify.user_key(by), identify.label(by), said, alias)
    return Acted(Answer.ACCEPTED if done else Answer.ALREADY, row.pk)

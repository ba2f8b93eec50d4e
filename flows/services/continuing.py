"""A run ends and another one of the same flow goes on for it (docs/how-to/composition.md): one transaction.

    running ──► complete, CONTINUED      the next run is started with its key, chain, ledgers, branch, user, intent and tenant
          └──► waiting for a person      something is owed (COMMITMENT_OPEN), or a child has not ended (CHILDREN_OPEN)
Guard: the intent is shared first, then the workflow is locked as its owner has seen it; `continued_to` is empty. So twice is once.
Races: a cancel or a supersede holds the row, or the intent: it ends the older run, or comes after it and finds the next one (supersede), or is
too late (cancel of a run that has ended). A stop of its branch is for whoever has the branch. An event that comes between the two runs finds
nobody who waits, and stays in the inbox: the older run counts as one that lives.
The next run has the version of the older one, and is migrated as every run is. It has the release that is current.
Budgets: the next run draws on the first run's ledgers beside its own, and on those that the first one drew on. Nothing becomes free.
"""

from __future__ import annotations

from uuid import UUID

from flows.core.commitments import COMMITMENT_OPEN
from flows.core.decide import Decided
from flows.core.definition import Definition
from flows.core.ids import new_id
from flows.core.moves import Finish, Suspend
from flows.core.nodes.continued import CHILDREN_OPEN
from flows.core.protocol import IntentStatus, Outcome
from flows.services import arrows, control, ledger, parking
from flows.services.arrows import Ending
from flows.services.children import counting, leaving
from flows.services.owned import Owned
from flows.services.starting import Origin, start_now
from flows.store import budgets, chains, locks
from flows.store.sql import committing

REASONS = {
    COMMITMENT_OPEN: "it is to continue as a new run, and something that it owes is still open",
    CHILDREN_OPEN: "it is to continue as a new run, and not all of its children have ended",
}


def continues(decided: Decided) -> bool:
    """Whether that is what comes next."""
    return isinstance(decided.move, Finish) and decided.move.outcome is Outcome.CONTINUED


def count_first(owned: Owned) -> None:
    """Children that have ended are counted before they are looked at: in a transaction of its own, for it locks what comes before workflows."""
    if owned.definition is not None and owned.definition.has_children:
        counting.ended_under([owned.row.id], owned.using)


def share(owned: Owned) -> None:
    """The intent comes before the workflow in the order of locks, and nobody supersedes it until the next run is there."""
    locks.intent(owned.row.intent_id, owned.using, shared=True)


def go_on(owned: Owned, decided: Decided, move: Finish, ending: Ending | None) -> bool:
    """End this run and start the next one, or have a person look at what is still open; False if the guard was lost."""
    row, using, definition = owned.row, owned.using, owned.definition
    assert definition is not None
    with committing("continue", using):
        intent = locks.intent(row.intent_id, using, shared=True)
        if intent != (row.intent_version, IntentStatus.ACTIVE.value):
            return False
        if not locks.workflow_as_seen(row.id, row.version, row.wake_seq, using):
            return False
        owes, has_children = chains.still_open(row.id, using)
        if owes or has_children:
            return _refused(owned, decided, move, ending, COMMITMENT_OPEN if owes else CHILDREN_OPEN)
        following = new_id()
        older = chains.hand_over(row.id, following, using)
        if older is None or not parking.leave(owned, arrows.finish(owned, decided, move, ending)):
            raise parking.Again
        leaving.part([row.id], using)
        origin = Origin(
            intent=row.intent_id,
            user_id=older.user,
            user_label=older.user_label,
            subject=older.subject,
            priority=older.priority,
            parent=older.parent,
            depth=older.depth,
            ledgers=_ledgers(definition, row.id, older, using),
            chain=older.chain or row.id,
            tenant=older.tenant,
            started_by=older.started_by,
            ids=[following],
            digest=older.digest,
        )
        start_now(definition, [(older.key, dict(move.result))], origin, using)
        chains.move_on(row.id, following, older.slots, using)
        if owned.pause:  # it was asked of the older one
            control.pause(following, reason=f"asked of {row.id}", using=using)
    return True


def _refused(owned: Owned, decided: Decided, move: Finish, ending: Ending | None, code: str) -> bool:
    stop = Suspend(move.node, Outcome.HUMAN_REQUIRED, code, REASONS[code], via=move.via)
    return parking.leave(owned, arrows.suspend(owned, decided, stop, ending))


def _ledgers(definition: Definition, workflow: UUID, older: chains.Older, using: str) -> list[UUID] | None:
    """The ledgers on which the next run draws beside its own: those of the first run, which are made here, and of its ancestors."""
    kept = [one for one in older.ledgers or () if one != workflow]
    if older.chain is None and definition.budget is not None:
        made = ledger.ledgers(definition, workflow, None, definition.budget.amounts, using)
        budgets.make(workflow, [one for one in made if one.id is None], using)
        kept.append(workflow)
    return kept or None

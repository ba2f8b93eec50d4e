"""What the arrow that ends an attempt, or refuses it, carries along: written in the arrow's own transaction, or not at all.

    before the move   effects settled, commitments fulfilled, verification, artifact, verdict, deadlines handled, another release
    after it          what is scarce is free, the budget is settled (it comes last in the lock order)
Guard: the workflow as it was read, where one of these needs it held before the move; the move has its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from flows.core.decide import Decided
from flows.core.moves import Park
from flows.core.protocol import CAPACITY
from flows.core.state import ActivityState, Trigger
from flows.services import artifacts, deadlines, effects, gating, ledger, releasing
from flows.services.arrows import Ending, Settlement
from flows.services.owned import Owned
from flows.store import locks
from flows.store.candidates import Artifact


@dataclass(frozen=True, slots=True)
class Noted:
    """What one ending knows besides the move. `verified`: whether the candidate passed; None: nothing was verified.

    `draws_of`: the activity that ended, if it may have set something of a budget aside.
    """

    owned: Owned
    trigger: Trigger
    decided: Decided
    ending: Ending | None
    settled: tuple[Settlement, ...]
    fulfils: str
    verified: bool | None
    artifact: Artifact | None
    draws_of: ActivityState | None

    @property
    def plain(self) -> bool:
        """Nothing of it needs the workflow to be held before the move."""
        return (
            self.decided.refusal is None
            and not self.decided.release
            and not deadlines.acts(self.decided)
            and self.verified is None
            and not (self.settled or self.fulfils)
        )

    @property
    def empty(self) -> bool:
        """There is nothing but the move."""
        return self.plain and self.artifact is None and self.draws_of is None

    def before(self) -> bool:
        """Write what comes before the move; False: something has changed meanwhile, and all of it is rolled back and decided again."""
        owned, decided, row = self.owned, self.decided, self.owned.row
        if decided.release and not releasing.is_current(owned, decided.release):
            return False
        if not self.plain and not locks.workflow_as_seen(row.id, row.version, row.wake_seq, owned.using):
            return False
        if not ledger.still_lacks(owned, decided.refusal):
            return False
        for settlement in self.settled:
            effects.record_own(settlement, owned)
        if self.fulfils:
            effects.fulfil(owned, self.fulfils)
        if self.verified is not None:
            gating.verify(owned, self.trigger, passed=self.verified)
        if self.artifact is not None:
            artifacts.record(self.artifact, owned.using)
        if decided.refusal is not None:
            gating.refused(owned, decided.refusal)
            effects.ask_no_more(owned, decided.refusal.verdict)
        if deadlines.acts(decided):
            deadlines.act(owned, decided)
        return not decided.release or releasing.pin(owned, decided)

    def after(self) -> None:
        """Write what comes after the move."""
        if self.draws_of is not None and self.ending is not None:
            move = self.decided.move
            ledger.settle(self.owned, self.draws_of, self.ending, unused=isinstance(move, Park) and move.kind in CAPACITY)


def of(owned: Owned, trigger: Trigger, decided: Decided, ending: Ending | None) -> Noted:
    """What is to be written with the arrow of this decision."""
    return Noted(
        owned,
        trigger,
        decided,
        ending,
        settled=ending.settled if ending is not None else (),
        fulfils=effects.fulfils(owned, trigger, decided, ending),
        verified=gating.verified(owned, trigger),
        artifact=artifacts.of_attempt(owned, trigger, decided, ending),
        draws_of=owned.state.activity if ledger.draws(owned, owned.state.activity, ending) else None,
    )


@contextmanager
def kept(owned: Owned) -> Iterator[None]:
    """Where the transaction is rolled back, what is known of it here is, too."""
    row = owned.row
    seen = row.owed, row.version, row.release, owned.facts
    try:
        yield
    except BaseException:
        row.owed, row.version, row.release, owned.facts = seen
        raise

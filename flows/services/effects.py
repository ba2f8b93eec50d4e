"""The effects of one attempt: each is in flight, committed, before its call is made, and settled by what is known of the call.

begin ──► in flight        call now
     └──► already done     its recorded evidence stands for the call, which is not made again
call returned              succeeded: with the attempt's own arrow (the node's effect), or at once (a named one)
call failed for certain    failed: likewise
anything else              left in flight: the arrow that ends the attempt makes it uncertain
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any, TypeVar

from flows.conf import conf
from flows.core import canonical, payload
from flows.core.decide import Decided
from flows.core.effects import UNSETTLED, Effect, OperationStatus, after_error
from flows.core.errors import AmbiguousOutcome, DefinitionError, LostOwnership, OperationConflict, classify
from flows.core.ids import operation_id
from flows.core.nodes.activity import Activity
from flows.core.nodes.job import Job
from flows.core.state import Failed, Trigger
from flows.core.verdicts import Verdict
from flows.services import commitments, settling
from flows.services.arrows import Ending, Settlement
from flows.services.authored import from_anywhere
from flows.services.operation import headers
from flows.services.owned import Owned
from flows.store import commitments as ledger
from flows.store import operations as store
from flows.store.sql import committing

T = TypeVar("T")


class Call:
    """One effect inside an activity, as `with attempt.effect(NAME, request=…) as op` gives it.

    Attributes:
        id: the idempotency key, the same over all attempts. headers: to send along. done: it has happened already, do not call again.
        evidence: what was recorded of it, once it is done. external_id: the provider's own name for it.
    """

    def __init__(self, operation: str, attempt: str, owned: Owned) -> None:
        self.id = operation
        self.headers = headers(operation, attempt, owned.state.intent_version, owned.state.epoch)
        self.done = False
        self.again = False  # an earlier call may have happened: a failure of this one says nothing about that
        self.evidence: Any = None
        self.external_id = ""
        self.failure: Exception | None = None  # what its call raised, also where the block goes on
        self._called = False

    def record(self, evidence: Any = None, external_id: str = "") -> None:
        """Say that it has happened: `evidence` is any JSON value, kept and given to later attempts."""
        self.done, self.evidence, self.external_id = True, evidence, external_id

    def call(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T | Any:
        """Make the call, unless it has been made: its answer (a JSON value) is recorded and returned, now and by every later attempt."""
        if self._called:
            raise OperationConflict(
                f"{self.id} is one call, and is made twice in one block. Give each call an effect of its own name."
            )
        self._called = True
        if self.done:
            return self.evidence
        try:
            answer = function(*args, **kwargs)
        except Exception as error:
            self.failure = error
            raise
        self.failure = None
        self.record(answer)
        return answer


class Effects:
    """What one attempt has begun. `open`: operations in flight of which nothing is known yet. `lock`: tools may be called in several threads."""

    def __init__(self, owned: Owned, owns: Callable[[], bool]) -> None:
        self._owned, self._owns = owned, owns
        self.open: set[str] = set()
        self.lock = threading.RLock()
        self._names: set[str] = set()

    @from_anywhere
    def begin(self, name: str, request: Any) -> Call:
        """Put the effect in flight; the call that it stands for may be made when this returns, unless it is `done`.

        Raises:
            LostOwnership: this worker does not own the workflow any more. DefinitionError: the node declares no such effect.
            OperationConflict: the same operation was asked for with another request. PayloadError: the request cannot be stored.
        """
        owned, activity = self._owned, self._owned.state.activity
        assert activity is not None
        effect = self._declared(name)
        call = Call(self._id(name), f"{owned.state.workflow_id}/{activity.seq}/{activity.number}", owned)
        producer = f"the request of {owned.label}{f'.{name}' if name else ''}"
        text = None if request is None else payload.encode(request, producer, conf.MAX_INPUT_BYTES)
        row = owned.row
        if not self._owns():
            raise LostOwnership(f"the lease is over; {call.id} was not begun")
        flight = store.Flight(
            workflow=row.id,
            version=row.version,
            epoch=row.epoch,
            intent_version=row.intent_version,
            worker=owned.worker,
            seq=activity.seq,
            id=call.id,
            node=activity.node,
            name=name,
            attempt=activity.number,
            request=text,
            digest="" if request is None else canonical.digest(request, producer),
            compensable=effect.compensation is not None,
            two_people=effect.second_person,
        )
        self.open.add(call.id)  # before it is: where the answer of the statement is lost, it may be in flight
        again = self._fly(flight, name)
        if again is not None:
            call.again = again
            return call
        self.open.discard(call.id)
        return self._known(call, flight)

    def _fly(self, flight: store.Flight, name: str) -> bool | None:
        """In flight, and with it what the call is going to begin: one commit. What is to be asked for again, others may settle: locked first."""
        owned, node = self._owned, _node(self._owned)
        owes = commitments.planned(node) if node is not None and not name else []
        doubt = owned.state.activity is not None and owned.state.activity.doubt
        with committing("fly", owned.using) if owes or doubt else nullcontext():
            if doubt and not store.hold(flight, owned.using):
                return None
            again = store.fly(flight, owned.using)
            if again is None:
                return None
            owned.row.owed += 0 if again else 1
            if owes:
                assert owned.state.activity is not None
                visit = owned.state.activity.visit
                owned.row.owed = ledger.plan(flight.id, flight.workflow, flight.seq, flight.node, visit, owes, owned.using)
        return again

    def _known(self, call: Call, flight: store.Flight) -> Call:
        """It could not be put in flight: it has happened, or it stands in the way, or the workflow is somebody else's."""
        found = store.get(call.id, self._owned.using)
        if found is not None and found.digest != flight.digest:
            raise OperationConflict(
                f"{call.id} was asked for before with another request. One operation asks for one thing: make the request from what is "
                "recorded (input, results), without time or chance; several calls have several names."
            )
        if found is not None and found.status in (OperationStatus.SUCCEEDED, OperationStatus.COMPENSATED):
            call.record(payload.decode(found.evidence), found.external_id)
            return call
        if found is None or found.status not in UNSETTLED or not store.hold(flight, self._owned.using):
            raise LostOwnership(f"workflow {flight.workflow} is no longer this worker's; {call.id} was not begun")
        raise AmbiguousOutcome(f"{call.id} is {found.status}: nobody knows yet whether it happened")

    @contextmanager
    def named(self, name: str, request: Any) -> Iterator[Call]:
        """A named effect for the length of a block."""
        if name in self._names:
            raise OperationConflict(
                f"The effect {name!r} is begun twice in one attempt. Each call has a name of its own, declared in effects=."
            )
        self._names.add(name)
        with self.closing(self.begin(name, request)) as call:
            yield call

    @contextmanager
    def closing(self, call: Call) -> Iterator[Call]:
        """The block in which a call that was begun is made; what is known at its end is committed at once."""
        begun = call.id in self.open
        try:
            yield call
        except LostOwnership:
            raise
        except Exception as error:
            if begun and not (call.done or call.again) and after_error(error) is OperationStatus.FAILED:
                self._settle(Settlement(call.id, OperationStatus.FAILED, self._number, code=classify(error).code))
            elif begun and call.done:
                self._settle(self.happened(call))
            raise
        if begun and call.failure is not None:  # the block went on, and its call has not come back
            if not call.again and after_error(call.failure) is OperationStatus.FAILED:
                self._settle(Settlement(call.id, OperationStatus.FAILED, self._number, code=classify(call.failure).code))
        elif begun:
            self._settle(self.happened(call))

    def at_return(self, whole: Call | None, text: str) -> tuple[Settlement, ...]:
        """What the attempt's arrow records when the code has returned: that the node's own effect happened, with the result as its evidence.

        Raises:
            AmbiguousOutcome: the code has left a named effect open.
        """
        mine = {whole.id} if whole is not None and whole.id in self.open else set()
        if left := self.open - mine:
            raise AmbiguousOutcome(f"the code returned, and nothing is known of {', '.join(sorted(left))}")
        self.open.clear()
        return tuple(Settlement(one, OperationStatus.SUCCEEDED, self._number, text) for one in mine)

    def at_error(self, whole: Call | None, error: BaseException, *, returned: bool) -> tuple[Settlement, ...]:
        """What the attempt's arrow records when the code has raised: only an error that says so means that nothing happened."""
        if (
            whole is None
            or whole.id not in self.open
            or whole.again
            or returned
            or after_error(error) is not OperationStatus.FAILED
        ):
            return ()
        self.open.discard(whole.id)
        return (Settlement(whole.id, OperationStatus.FAILED, self._number, code=classify(error).code),)

    def happened(self, call: Call) -> Settlement:
        """That a call was made, with what it answered."""
        text = None
        if call.evidence is not None:
            text = payload.encode(call.evidence, f"the evidence of {call.id}", conf.MAX_RESULT_BYTES)
            call.evidence = payload.decode(json.loads(text))
        return Settlement(call.id, OperationStatus.SUCCEEDED, self._number, text, call.external_id)

    @from_anywhere
    def _settle(self, settlement: Settlement) -> None:
        with self.lock:
            if record(settlement, self._owned, late=False):
                self._owned.row.owed -= 1
            self.open.discard(settlement.operation)  # only now: until it is on record, nobody knows of it

    @property
    def _number(self) -> int:
        activity = self._owned.state.activity
        return activity.number if activity else 0

    def _declared(self, name: str) -> Effect:
        node = _node(self._owned)
        effect = node.effect_named(name) if node is not None else None
        if effect is None:
            raise DefinitionError(
                f"{self._owned.label} declares no effect {name!r}. Add effects={{{name!r}: Effect(reconcile=…)}} to the node."
            )
        return effect

    def _id(self, name: str) -> str:
        activity = self._owned.state.activity
        assert activity is not None
        whole = operation_id(self._owned.state.workflow_id, activity.node, activity.visit)
        return f"{whole}/{name}" if name else whole


def evidence_of_own(owned: Owned) -> Any:
    """What is recorded of the own effect of the open activity, which is known to have happened."""
    activity = owned.state.activity
    assert activity is not None
    found = store.get(operation_id(owned.state.workflow_id, activity.node, activity.visit), owned.using)
    assert found is not None
    return payload.decode(found.evidence)


#: Refusals that nothing mends but doing something anew, which nothing may while an effect is in doubt.
LASTING = frozenset(
    {Verdict.CANDIDATE_INVALID, Verdict.REVALIDATION_REQUIRED, Verdict.VERIFICATION_REQUIRED, Verdict.COMMITMENT_UNSOUND}
)


def ask_no_more(owned: Owned, verdict: Verdict) -> None:
    """The gate will not let the activity ask again for what is in doubt: whether it happened is for a person to say."""
    if verdict in LASTING and owned.state.activity is not None and owned.state.activity.doubt:
        store.ask_no_more(owned.row.id, owned.using)


def record(settlement: Settlement, owned: Owned, *, late: bool) -> bool:
    """Commit what an attempt knows of an operation, whether the attempt still owns its workflow or not; False: somebody had settled it.

    `late`: the attempt is fenced; what it says is an answer like any other.
    """
    return settling.settle(
        settlement.operation, owned.row.id, source="attempt", ordinary=not late, using=owned.using, **_facts(settlement)
    )


def record_own(settlement: Settlement, owned: Owned) -> None:
    """The same in the transaction of the arrow that ends the attempt, whose workflow is locked; nothing else follows from it."""
    counted = store.settle(settlement.operation, by="attempt", using=owned.using, **_facts(settlement))
    if not counted:
        return
    owned.row.owed -= 1
    node = _node(owned)
    if settlement.status is OperationStatus.SUCCEEDED and node is not None and node.commits:
        result = None if settlement.evidence is None else payload.decode(json.loads(settlement.evidence))
        commitments.begin(settlement.operation, owned.row.id, node, result, owned.using)


def _facts(settlement: Settlement) -> dict[str, Any]:
    """A failure counts only while its own attempt's call is the one in flight; that it happened is true whoever says it."""
    return {
        "status": settlement.status,
        "evidence": settlement.evidence,
        "external_id": settlement.external_id,
        "code": settlement.code,
        "attempt": settlement.attempt if settlement.status is OperationStatus.FAILED else None,
    }


def known_doubts(owned: Owned, failed: Failed, ending: Ending | None) -> Failed:
    """The failure of an attempt, doubtful exactly if an effect of it is open on record and the ending does not settle it.

    One that was to be asked for again is open also where the attempt did not come to that. The attempt itself may not know: its time
    may have been over, or the database away, between a commit and the line after it.
    """
    node = _node(owned)
    if node is None or (next(node.all_effects(), None) is None and not owned.row.owed and not failed.doubtful):
        return failed
    settled = {one.operation for one in ending.settled} if ending is not None else set()
    left = set(store.left_open(owned.row.id, owned.using)) - settled
    return replace(failed, doubtful=bool(left))


def fulfils(owned: Owned, trigger: Trigger, decided: Decided, ending: Ending | None) -> str:
    """The commitment that the attempt, or what has come for the wait of a job, ends well; "": none."""
    node = _node(owned)
    if isinstance(node, Job):
        return node.fulfilled(owned.state, trigger, answered=decided.wait_result is not None)
    return node.fulfils if node is not None and ending is not None and ending.result is not None else ""


def fulfil(owned: Owned, name: str) -> None:
    """End that commitment, in the transaction of the arrow, whose workflow is locked. The answer of a job ends that job alone, not what an
    earlier visit of its node has left.
    """
    one = isinstance(_node(owned), Job)
    ended = ledger.end(owned.row.id, status="fulfilled", by=owned.label, name=name, newest=one, using=owned.using)
    owned.row.owed -= sum(counts for _, counts in ended)


def _node(owned: Owned) -> Activity | None:
    node = owned.definition.nodes.get(owned.state.node) if owned.definition is not None else None
    return node if isinstance(node, Activity) else None

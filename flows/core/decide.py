"""The engine: (definition, state, trigger, facts) → one Move. It knows no node kind.

    trigger ──► deadline? ──► gate (base) ──► node.resume / node.enter ──► Goto? ──► visits ──► gate (node) ──► node.enter ──► …

While an effect of the open activity is in doubt, nothing goes past it: no deadline, no drop, no route of a refusal. One that is known to have
happened has its result taken without asking the gate; a deadline that has passed goes before that.
Author functions (branches, keys) run here; what they raise becomes a visible suspension, never a lost workflow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from flows.core import deadlines, gate, payload
from flows.core.deadlines import Late
from flows.core.definition import Definition
from flows.core.moves import CancelSelf, Finish, Goto, Move, Open, Park, Rest, RetryLater, Run, Suspend
from flows.core.nodes.approval import Approval
from flows.core.nodes.base import Node
from flows.core.nodes.expiry import expire, of_beside
from flows.core.protocol import CAPACITY, Outcome, Status
from flows.core.releases import RELEASE_CHANGED, moved
from flows.core.state import Completed, Entered, Facts, Failed, Lacking, Pending, ReleaseFact, State, Trigger
from flows.core.verdicts import Verdict, suspension_of

DEFINITION_FAULT = "DEFINITION_FAULT"
VISITS_EXHAUSTED = "VISITS_EXHAUSTED"

#: A node that asks people again and again must end too, even where the author set no limit.
DEFAULT_APPROVAL_VISITS = 10
MAX_HOPS = 200
#: An attempt's code has run: what it did is on record, and its gate was asked before it.
ENDED = Completed | Failed | Pending | Lacking


@dataclass(frozen=True, slots=True)
class Decided:
    """The engine's answer.

    Attributes:
        move: what comes next. wait_result: the result of the wait that this closes, if it closes one.
        refusal: the gate's verdict behind the move, if it refused. fault: what an author's pure function raised, for the log.
        dropped: optional nodes that were passed over.
        release: the release that the workflow is pinned to before the move, in the same commit; "": it stays with its own.
        handled: passed deadlines, by kind and name, that are done with by this move. releases: the commitments that are released with it,
            by name; "" stands for all that can be.
        answers: what each check said of the node that is carried out.
    """

    move: Move
    wait_result: Any = None
    refusal: gate.Refusal | None = None
    fault: BaseException | None = None
    dropped: tuple[str, ...] = ()
    release: str = ""
    handled: tuple[tuple[str, str], ...] = ()
    releases: tuple[str, ...] = ()
    answers: tuple[gate.Answer, ...] = ()

    @property
    def handled_words(self) -> list[str]:
        """`handled`, as the log says it."""
        return [f"{kind} {name}" if name else kind for kind, name in self.handled]


def decide(definition: Definition, state: State, trigger: Trigger, facts: Facts) -> Decided:
    """What comes next for this workflow."""
    try:
        return _decide(definition, state, trigger, facts)
    except Exception as fault:  # noqa: BLE001 - author code: whatever it raises must end in a visible state
        reason = f"{type(fault).__name__} in a function of the flow"
        return Decided(Suspend(state.node, Outcome.HUMAN_REQUIRED, DEFINITION_FAULT, reason), fault=fault)


def _decide(definition: Definition, state: State, trigger: Trigger, facts: Facts) -> Decided:
    if not isinstance(trigger, ENDED):
        if _is_known(state) and (node := definition.nodes.get(state.node)) is not None:
            cancels = facts.release is not None and facts.release.cancels
            return Decided(CancelSelf(RELEASE_CHANGED)) if cancels else _answer(definition, state, trigger, facts, node)
        refusal = gate.check(definition, None, state, facts)
        if refusal is not None:
            return _refused(definition, state, facts, None, refusal)
        if (fact := facts.release) is not None and (fact.pins or fact.cancels):
            return _under_another(definition, state, trigger, facts, fact)
    return _go_on(definition, state, trigger, facts)


def _under_another(definition: Definition, state: State, trigger: Trigger, facts: Facts, fact: ReleaseFact) -> Decided:
    """Another release is current, and the flow's policy decides: pinned to that, the run goes on or begins again; or it is cancelled."""
    if fact.cancels:
        return Decided(CancelSelf(RELEASE_CHANGED))
    under = replace(facts, release=moved(fact))
    if not fact.restart:
        return replace(_go_on(definition, state, trigger, under), release=fact.pins)
    if _in_doubt(state):
        reason = f"it would begin again at {fact.restart} under release {fact.pins}, but an effect of {state.node} is in doubt"
        return _refused(definition, state, facts, None, gate.Refusal(Verdict.RELEASE_INCOMPATIBLE, reason, state.node))
    again = _settle(definition, replace(state, activity=None, wait=None), under, Goto(fact.restart))
    return replace(again, release=fact.pins)


def _go_on(definition: Definition, state: State, trigger: Trigger, facts: Facts) -> Decided:
    node = definition.nodes.get(state.node)
    if node is None:
        return Decided(Suspend(state.node, Outcome.WORKFLOW_MIGRATION_REQUIRED, Verdict.WORKFLOW_MIGRATION_REQUIRED))
    takes_up = state.activity is not None and not isinstance(trigger, ENDED)
    answers: tuple[gate.Answer, ...] = ()
    if (node.gate is not None or facts.look is not None) and (takes_up or isinstance(trigger, Entered)):
        examined = gate.examine(definition, node, state, facts)
        if examined.refusal is not None:
            return _refused(definition, state, facts, node, examined.refusal)
        answers = examined.answers
    if takes_up and not _in_doubt(state) and node.dropped(facts) is not None:
        left = replace(state, activity=None)
        settled = _settle(definition, left, facts, Goto(node.name))
        return _unless_late(definition, left, facts, settled, deadlines.late(definition, state))
    decided = _answer(definition, state, trigger, facts, node)
    return replace(decided, answers=answers) if answers else decided


def _answer(definition: Definition, state: State, trigger: Trigger, facts: Facts, node: Node) -> Decided:
    wait_result, results = None, state.results
    if state.wait is not None:
        wait_result = _wait_result(node, state)
        if wait_result is not None:
            results = MappingProxyType({**state.results, node.name: wait_result})
    elif isinstance(trigger, Completed):
        results = MappingProxyType(_with_result(state, node, trigger.result))
    if trigger.doubtful if isinstance(trigger, Failed) else _in_doubt(state) and not isinstance(trigger, Completed):
        return Decided(node.resume(state, trigger))
    entered = isinstance(trigger, Entered) and state.activity is None
    # Entering goes the way of every entry: through the visit limit and the node's gate.
    move = Goto(node.name) if entered else _resumed(node, state, trigger)
    if isinstance(trigger, Failed) and _is_known(state) and not isinstance(move, RetryLater):
        move = Suspend(
            node.name, Outcome.HUMAN_REQUIRED, trigger.failure.code, "its effect has happened, and its result could not be taken"
        )
    late = deadlines.late(definition, state) if state.passed else ()
    if isinstance(move, Open):  # between the steps of a pipeline: a person who resumed it would have its first steps done again
        late = tuple(one for one in late if not one.asks)
    if wait_result is None and not isinstance(move, Goto):
        if not late:
            return Decided(move)
        return _unless_late(definition, replace(state, activity=None, wait=None), facts, Decided(_stays(state, move, late)), late)
    pardoned = node.name if isinstance(trigger, Entered) and trigger.suspended_by == VISITS_EXHAUSTED else ""
    left = replace(state, results=results, activity=None, wait=None)
    settled = _settle(definition, left, facts, move, pardoned)
    settled = _unless_late(definition, left, facts, settled, late)
    return settled if wait_result is None else replace(settled, wait_result=wait_result)


def _resumed(node: Node, state: State, trigger: Trigger) -> Move:
    """What the node answers; of a run that is not admitted yet the wait is not the node's own, so it is not asked."""
    wait = state.wait
    if wait is not None and wait.kind in CAPACITY and state.activity is None:
        return of_beside(wait, node.name)
    return node.resume(state, trigger)


def _stays(state: State, move: Move, late: tuple[Late, ...]) -> Move:
    """A workflow that a person is to look at stays so, whatever woke it besides them."""
    if state.wait is not None and state.wait.kind == "human" and isinstance(move, Rest | Run):
        return Suspend(state.node, Outcome.HUMAN_REQUIRED, late[0].code, state.wait.reason)
    return move


def _unless_late(definition: Definition, left: State, facts: Facts, ahead: Decided, late: tuple[Late, ...]) -> Decided:
    """What comes next, or in its place what the most severe of the passed deadlines says; a run that ends now ends as it would have.

    A person is asked at the node that would come next: what is done is not done again. What the gate stopped takes no other way.
    """
    if not late or isinstance(ahead.move, Finish):
        return ahead
    node = ahead.move.node if isinstance(ahead.move, Open | Park) else left.node
    moot = [one for one in late if not deadlines.is_wanted(definition, one, node)]
    wanted = [one for one in late if one not in moot]
    going = [one for one in wanted if not one.deadline.moves]
    stopped = ahead.refusal is not None and isinstance(ahead.move, Suspend)
    first = next((one for one in wanted if one.deadline.moves and (one.ends or one.asks or not stopped)), None)
    made = ahead
    if first is not None:
        move = expire(first.deadline, left.node, first.code)
        if isinstance(move, Suspend):
            move = replace(move, node=node)
        made = _settle(definition, left, facts, move)
        made = replace(made, refusal=made.refusal or ahead.refusal, release=made.release or ahead.release)
    handled = tuple(one.key for one in (*moot, *going, *([first] if first is not None else [])))
    return replace(made, handled=handled, releases=(*made.releases, *deadlines.releases(going)))


def _settle(definition: Definition, state: State, facts: Facts, move: Move, pardoned: str = "") -> Decided:
    """Follow Gotos through visit limits, gates and branches until a durable move is reached.

    `pardoned`: the node that a person lets be entered once more, though its visits are spent.
    """
    via: list[str] = []
    passed: list[str] = []
    refusal, release = None, ""
    releases = ("",) if isinstance(move, Goto) and move.release else ()
    if facts.look is not None:
        facts = replace(facts, look=None)  # that was for what was carried out; the next attempt looks for itself
    for _ in range(MAX_HOPS):
        if not isinstance(move, Goto):
            move = _with_via(move, tuple(via[:-1]))
            return Decided(move, refusal=refusal, dropped=tuple(passed), release=release, releases=releases)
        node = definition.nodes[move.node]
        via.append(node.name)
        if (instead := node.dropped(facts)) is not None:
            passed.append(node.name)
            move = instead
            continue
        limited = None if node.name == pardoned else _visits_spent(node, state)
        pardoned = ""
        if limited is not None:
            move = limited
            continue
        asks = node.gate is not None or (bool(facts.reviews) and isinstance(node, Approval))
        refused = gate.check(definition, node, state, facts) if asks else None
        if refused is not None:
            refusal = refused
            move = _verdict_move(definition, state, node, refused)
            facts, release = _routed(facts, refused, move, release)
            continue
        move = node.enter(state)
    return Decided(Suspend(state.node, Outcome.HUMAN_REQUIRED, DEFINITION_FAULT, "the flow goes round without a durable step"))


def _visits_spent(node: Node, state: State) -> Move | None:
    spent = state.visits.get(node.name, 0)
    if node.visits is not None and spent >= node.visits.limit:
        return Goto(node.visits.then)
    if node.visits is None and node.asks_people and spent >= DEFAULT_APPROVAL_VISITS:
        return Suspend(node.name, Outcome.HUMAN_REQUIRED, VISITS_EXHAUSTED, "asked too often")
    return None


def _refused(definition: Definition, state: State, facts: Facts, node: Node | None, refusal: gate.Refusal) -> Decided:
    move = _verdict_move(definition, state, node, refusal)
    facts, release = _routed(facts, refusal, move, "")
    left = replace(state, activity=None, wait=None)
    settled = _settle(definition, left, facts, move)
    settled = replace(settled, refusal=refusal, release=settled.release or release)
    if not state.passed or _in_doubt(state):
        return settled
    return _unless_late(definition, left, facts, settled, deadlines.late(definition, state))


def _routed(facts: Facts, refusal: gate.Refusal, move: Move, release: str) -> tuple[Facts, str]:
    """A declared route of RELEASE_INCOMPATIBLE is a boundary: what comes there is done under the current release."""
    fact = facts.release
    if refusal.verdict is not Verdict.RELEASE_INCOMPATIBLE or not isinstance(move, Goto) or fact is None:
        return facts, release
    return replace(facts, release=moved(fact)), fact.current


def _is_known(state: State) -> bool:
    """Whether the effect of the open activity has happened: all that is left is to take its result, and nothing of the gate concerns that."""
    return state.activity is not None and state.activity.known


def _in_doubt(state: State) -> bool:
    return state.activity is not None and state.activity.doubt


def _verdict_move(definition: Definition, state: State, node: Node | None, refusal: gate.Refusal) -> Move:
    """The declared route of a refusal, or its explicit outcome."""
    if refusal.verdict is Verdict.INTENT_SUPERSEDED:
        return Finish(state.node, Status.SUPERSEDED, Outcome.SUPERSEDED, code=refusal.verdict)
    current = node or definition.nodes.get(state.node)
    if current is not None and not _in_doubt(state):
        if target := current.route_for_verdict(refusal.verdict):
            return Goto(target)
        if refusal.verdict is Verdict.APPROVAL_REQUIRED and current.gate and current.gate.approved_by:
            return Goto(current.gate.approved_by)
    name = current.name if current is not None else state.node
    return Suspend(name, suspension_of(refusal.verdict), refusal.verdict, refusal.reason)


def _wait_result(node: Node, state: State) -> Any:
    compute: Callable[[State], Any] | None = getattr(node, "result", None)
    if not callable(compute) or state.wait is None or state.wait.kind != node.kind:
        return None
    value = compute(state)
    payload.text(value, f"the result of {node.name}", payload.MAX_RESULT_BYTES * 2)
    return value


def _with_result(state: State, node: Node, result: Any) -> dict[str, Any]:
    step = state.activity.step if state.activity else ""
    if step:
        known = state.results.get(node.name)
        result = {**(known if isinstance(known, dict) else {}), step: result}
    return {**state.results, node.name: result}


def _with_via(move: Move, via: tuple[str, ...]) -> Move:
    if via and isinstance(move, Open | Park | Finish | Suspend):
        return replace(move, via=via)
    return move

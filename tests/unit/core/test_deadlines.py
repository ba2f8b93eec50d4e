"""What has passed and what is done about it, in the engine: which goes first, what each policy is, and what a freshness budget means where."""

from __future__ import annotations

from typing import Any

import pytest

from flows.core.deadlines import KINDS, late, word_of
from flows.core.definition import Definition
from flows.core.errors import DefinitionError
from flows.core.moves import CancelSelf, Finish, Open, Park, Rest, Run, Suspend
from flows.core.nodes import COMPLETE, Activity, Decision, End, Pipeline, Sleep, Step, Wait
from flows.core.policies import BREACH, CANCEL, DEGRADE, ESCALATE, FAIL, HUMAN, RELEASE, Deadline
from flows.core.protocol import FOR_PEOPLE, TimerKind
from flows.core.requirements import Fresh, Gate
from flows.core.spans import hours
from flows.core.state import Completed, Entered, Woken
from tests.support.flow_values import activity, ask, declare, state, wait, work

pytestmark = pytest.mark.req("L1")

WHOLE, SLA, FRESH = ("workflow_deadline", ""), ("sla", "answer"), ("freshness", "main")


def due(then: Any, **options: Any) -> Deadline:
    return Deadline(hours=1, then=then, **options)


def flow(**given: Any) -> Definition:
    """From look ──► ask ──► extra (optional) ──► act (wants `main` fresh) ──► nap ──► done, and a node beside it."""
    fresh = Fresh(work, within=hours(1), then=given.pop("freshness", ""))
    meta = {name: {"answer": one} if name == "sla" else one for name, one in given.items()}
    return declare(
        meta,
        look=Decision(work, choices={"a": "ask"}),
        ask=Wait("e", key="k", then="extra", deadline=due(ESCALATE)),
        extra=Activity(work, optional=True, then="act"),
        act=Activity(work, gate=Gate(fresh={"main": fresh}), then="nap"),
        nap=Sleep(hours(1), then="done"),
        other=Activity(work, then="done"),
        done=End(COMPLETE),
    )


def waiting(*passed: Any, node: str = "ask", kind: str = "event") -> Any:
    return state(node, wait=wait(node, kind), passed=passed)


@pytest.mark.parametrize(
    ("deadline", "move", "releases"),
    [
        (due("other"), Open("other"), ()),
        (due(CANCEL), CancelSelf("DEADLINE_EXPIRED"), ()),
        (due(HUMAN), Suspend("ask", "HUMAN_REQUIRED", "DEADLINE_EXPIRED", "its deadline has passed"), ()),
        (due(ESCALATE), Suspend("ask", "HUMAN_REQUIRED", "DEADLINE_EXPIRED", "its deadline has passed", tell=()), ()),
        (
            due(ESCALATE, escalate_to="leads"),
            Suspend("ask", "HUMAN_REQUIRED", "DEADLINE_EXPIRED", "its deadline has passed", tell=("leads",)),
            (),
        ),
        (due(RELEASE), Rest(), ("",)),
        (due(RELEASE, to="other"), Open("other"), ("",)),
        (due(DEGRADE, to="other"), Open("other"), ()),
        (due(DEGRADE), Rest(), ()),
        (due(BREACH), Rest(), ()),
    ],
    ids=lambda value: value.word if isinstance(value, Deadline) else "",
)
def test_each_policy_is_a_move(deadline: Deadline, move: Any, releases: Any) -> None:
    made = ask(flow(deadline=deadline), waiting(WHOLE), Woken())
    assert (made.move, made.handled, made.releases) == (move, (WHOLE,), releases)


def test_the_most_severe_goes_first_and_what_goes_on_goes_with_it() -> None:
    both = flow(deadline=due(ESCALATE), sla=due(CANCEL))
    assert [one.key for one in late(both, waiting(WHOLE, SLA))] == [SLA, WHOLE]
    made = ask(both, waiting(WHOLE, SLA), Woken())
    assert (made.move, made.handled) == (CancelSelf("SLA_BREACHED"), (SLA,))
    made = ask(flow(deadline=due("other"), sla=due(RELEASE)), waiting(WHOLE, SLA), Woken())
    assert (made.move, made.releases, set(made.handled)) == (Open("other"), ("",), {WHOLE, SLA})


def test_a_run_that_ends_now_ends_as_it_would_have() -> None:
    made = ask(flow(sla=due(FAIL)), state("other", activity=activity("other"), passed=(SLA,)), Completed(1))
    assert isinstance(made.move, Finish)
    assert (made.move.outcome, made.handled) == ("COMPLETE", ())


def test_what_is_optional_is_dropped_once_it_is_degraded() -> None:
    answered = state("ask", wait=wait("ask", "event", {"id": "e", "payload": 1}))
    made = ask(flow(), answered, Woken(), degraded=True)
    assert (made.move, made.dropped) == (Open("act", via=("extra",)), ("extra",))
    made = ask(flow(), state("extra", activity=activity("extra")), Woken(), degraded=True)
    assert made.dropped == ("extra",)


def test_a_dropped_step_is_no_way_round_a_deadline() -> None:
    at = state("extra", activity=activity("extra"), passed=(SLA,))
    made = ask(flow(sla=due(FAIL)), at, Woken(), degraded=True)
    assert isinstance(made.move, Finish)
    assert made.handled == (SLA,)


@pytest.mark.parametrize(("node", "acts"), [("look", True), ("ask", True), ("act", True), ("nap", False)])
def test_a_freshness_budget_counts_while_the_node_that_wants_it_is_ahead(node: str, acts: Any) -> None:
    definition = flow(freshness=FAIL)
    at = (
        waiting(FRESH, node=node, kind="timer")
        if node in ("ask", "nap")
        else state(node, activity=activity(node), passed=(FRESH,))
    )
    made = ask(definition, at, Woken())
    assert (isinstance(made.move, Finish), made.handled) == (acts, (FRESH,))


def test_a_freshness_budget_redoes_nothing_while_a_person_is_to_look() -> None:
    made = ask(flow(freshness="look"), waiting(FRESH, kind="human"), Woken())
    assert isinstance(made.move, Suspend)
    assert made.handled == (FRESH,)


def test_nothing_goes_past_a_doubt() -> None:
    at = state("other", activity=activity("other", doubt=True), passed=(WHOLE,))
    made = ask(flow(deadline=due(FAIL)), at, Woken())
    assert (made.move, made.handled) == (Run(), ())


def test_people_are_asked_after_a_pipeline_and_not_within_it() -> None:
    steps = declare(
        {"sla": due(HUMAN)},
        line=Pipeline(Step("a", work), Step("b", work), then="last"),
        last=Activity(work, then="end"),
        end=End(COMPLETE),
    )
    within = ask(steps, state("line", activity=activity("line", "a"), passed=(("sla", ""),)), Completed(1))
    assert (within.move, within.handled) == (Open("line", "b"), ())
    after = ask(steps, state("line", activity=activity("line", "b"), passed=(("sla", ""),)), Completed(1))
    assert isinstance(after.move, Suspend)
    assert after.move.node == "last"


def test_what_this_version_does_not_declare_passes_without_a_trace() -> None:
    made = ask(flow(), waiting(WHOLE, SLA, FRESH, ("commitment_deadline", "w")), Woken())
    assert (made.move, made.handled) == (Rest(), ())
    assert isinstance(ask(flow(), state("look", passed=(SLA,)), Entered()).move, Open | Park)


def test_the_table_has_a_row_for_each_kind_and_the_codes_differ() -> None:
    kinds = {kind.value for kind in TimerKind} - {"sleep", "retry", "poll", *FOR_PEOPLE}
    assert kinds | {"approval", "ask"} == {str(kind) for kind in KINDS}
    assert len({row.code for row in KINDS.values()}) == len({row.name for row in KINDS.values()}) == len(KINDS)
    assert all("escalate" in row.legal for row in KINDS.values()), "a person can always be asked"


@pytest.mark.parametrize(
    ("deadline", "word", "kind", "moves"),
    [
        (due("other"), "node:other", "node", True),
        (due(BREACH), "breach", "breach", False),
        (due(RELEASE), "release", "release", False),
        (due(RELEASE, to="other"), "release:other", "release:", True),
        (due(DEGRADE, to="other"), "degrade:other", "degrade:", True),
        (due(HUMAN), "human", "human", True),
    ],
)
def test_what_is_recorded_of_a_policy(deadline: Deadline, word: str, kind: str, moves: Any) -> None:
    assert (deadline.word, word_of(deadline), deadline.moves) == (word, kind, moves)


@pytest.mark.parametrize(
    "make",
    [
        lambda: due("other", to="third"),
        lambda: due(BREACH, to="other"),
        lambda: due(HUMAN, escalate_to="leads"),
        lambda: Fresh(work, then="look"),
        lambda: Fresh(work, within=hours(1), to="look"),
        lambda: Fresh(work, within=hours(1), then=CANCEL, escalate_to="leads"),
    ],
)
def test_what_cannot_be_meant_is_said_where_it_is_written(make: Any) -> None:
    with pytest.raises(DefinitionError, match=r"Deadline|Fresh"):
        make()

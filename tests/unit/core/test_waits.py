"""Wait, Sleep and Approval: what is written when they are entered, and what each arrival leads to."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from flows.core import canonical
from flows.core.errors import DefinitionError
from flows.core.moves import CancelSelf, Finish, Goto, Park, Rest, Suspend
from flows.core.nodes import Approval, Sleep, Wait
from flows.core.nodes.expiry import expire
from flows.core.policies import CANCEL, ESCALATE, FAIL, Deadline
from flows.core.protocol import Outcome, Status
from flows.core.spans import hours
from flows.core.state import State, Woken
from tests.support.flow_values import NOW, declare, state, wait


def node(kind: Any) -> Any:
    return declare(first=kind).nodes["first"]


def event_wait(**options: Any) -> Any:
    options = {"key": "k", "deadline": Deadline(hours=2, then=ESCALATE), **options}
    if "choices" not in options:
        options.setdefault("then", "next")
    return node(Wait("ci.finished", **options))


# ---------------------------------------------------------------- expiry


@pytest.mark.parametrize(
    ("then", "move"),
    [
        ("other", Goto("other")),
        (CANCEL, CancelSelf("CODE")),
        (FAIL, Finish("first", Status.FAILED, Outcome.FAILED, code="CODE")),
        (ESCALATE, Suspend("first", Outcome.HUMAN_REQUIRED, "CODE", "its deadline has passed", tell=())),
    ],
)
def test_a_passed_deadline_does_what_it_declares(then: Any, move: Any) -> None:
    assert expire(Deadline(hours=1, then=then), "first", "CODE") == move


# ---------------------------------------------------------------- Wait


@pytest.mark.req("C1")
def test_a_wait_names_its_channel_and_its_deadline() -> None:
    made = event_wait(key=lambda state: state.input["sha"]).enter(state(input={"sha": "abc"}))
    assert made == Park(
        "first",
        "event",
        "waiting for ci.finished abc",
        event_type="ci.finished",
        keys=("abc",),
        deadline=hours(2),
        on_expiry="escalate",
    )


@pytest.mark.parametrize("key", ["", None, 5, "a\x00b", "a\ud800", ["k"]])
def test_a_key_that_cannot_name_a_channel_is_a_fault(key: Any) -> None:
    with pytest.raises(DefinitionError, match="The key of wait first must be text that is not empty"):
        event_wait(key=lambda state: key).enter(state())


def test_evidence_leads_by_the_value_that_read_makes_of_it() -> None:
    sample = event_wait(read=lambda state: state.event["payload"]["conclusion"], choices={"success": "ask", "failure": "again"})
    for conclusion, target in (("success", "ask"), ("failure", "again")):
        at = state(wait=wait("first", "event", {"id": "e", "payload": {"conclusion": conclusion}}))
        assert sample.resume(at, Woken()) == Goto(target)


def test_without_read_the_payload_is_the_value() -> None:
    at = state(wait=wait("first", "event", {"id": "e", "payload": "yes"}))
    assert event_wait(choices={"yes": "ask"}).resume(at, Woken()) == Goto("ask")


@pytest.mark.parametrize("payload", ["maybe", None, 1, ["yes"], {"yes": 1}])
def test_an_undeclared_value_needs_a_person_and_is_never_guessed_at(payload: Any) -> None:
    made = event_wait(choices={"yes": "ask"}).resume(state(wait=wait("first", "event", {"payload": payload})), Woken())
    assert isinstance(made, Suspend)
    assert (made.outcome, made.code) == (Outcome.HUMAN_REQUIRED, "UNDECLARED_CHOICE")


def test_without_choices_any_evidence_leads_on() -> None:
    assert event_wait().resume(state(wait=wait("first", "event", {"payload": None})), Woken()) == Goto("next")


def test_a_wake_up_without_evidence_goes_back_to_the_wait() -> None:
    assert event_wait().resume(state(wait=wait("first", "event")), Woken()) == Rest()


@pytest.mark.req("C3")
def test_a_due_wait_follows_its_deadline_and_evidence_that_came_first_wins() -> None:
    due = wait("first", "event", due=True)
    assert event_wait(deadline=Deadline(hours=1, then="late")).resume(state(wait=due), Woken()) == Goto("late")
    both = wait("first", "event", {"payload": 1}, due=True)
    assert event_wait(deadline=Deadline(hours=1, then="late")).resume(state(wait=both), Woken()) == Goto("next")


def test_a_wait_that_was_left_is_entered_again() -> None:
    assert isinstance(event_wait().resume(state(), Woken()), Park)


def test_a_waits_result_is_the_value_the_event_and_its_payload() -> None:
    sample = event_wait(read=lambda state: state.event["payload"]["n"] + 1)
    at = state(wait=wait("first", "event", {"id": "e1", "payload": {"n": 1}}))
    assert sample.result(at) == {"value": 2, "event": "e1", "payload": {"n": 1}}
    assert sample.result(state(wait=wait("first", "event"))) is None


def test_read_sees_the_event_and_nothing_else_does() -> None:
    seen: list[State] = []
    sample = event_wait(read=seen.append)
    at = state(wait=wait("first", "event", {"id": "e", "payload": {}}))
    sample.result(at)
    assert seen[0].event == {"id": "e", "payload": {}}
    assert at.event is None


# ---------------------------------------------------------------- Sleep


def test_a_sleep_ends_a_span_from_now_or_at_a_moment() -> None:
    assert node(Sleep(hours(3), then="next")).enter(state()) == Park(
        "first", "timer", "sleeping", wakes_at=NOW + timedelta(hours=3)
    )
    assert node(Sleep(until=lambda state: NOW, then="next")).enter(state()).wakes_at == NOW


@pytest.mark.parametrize("moment", [datetime(2026, 1, 1), "2026-01-01", None, 3])  # noqa: DTZ001 - that is the point
def test_a_moment_without_a_time_zone_is_a_fault(moment: Any) -> None:
    with pytest.raises(DefinitionError, match="must give a datetime with a time zone"):
        node(Sleep(until=lambda state: moment, then="next")).enter(state())


@pytest.mark.parametrize("options", [{}, {"span": hours(1), "until": lambda state: NOW}])
def test_a_sleep_takes_a_span_or_a_moment(options: Any) -> None:
    with pytest.raises(DefinitionError, match=r"^Sleep takes either a span, until= or business=\.$"):
        Sleep(**options, then="next")


def test_a_sleep_goes_on_only_when_it_is_due() -> None:
    sample = node(Sleep(hours(1), then="next"))
    assert sample.resume(state(wait=wait("first", "timer")), Woken()) == Rest()
    assert sample.resume(state(wait=wait("first", "timer", due=True)), Woken()) == Goto("next")
    assert isinstance(sample.resume(state(), Woken()), Park)


# ---------------------------------------------------------------- Approval


def approval(**options: Any) -> Any:
    options = {"approved": "merge", "denied": "no", "expires": Deadline(hours=24, then=ESCALATE), **options}
    return node(Approval(candidate="propose", role="managers", **options))


LADDER = {
    "steps": [{"name": "", "need": 1, "audience": {"role": "managers"}, "when": ""}],
    "escalation": [],
}
ARTIFACT = {"choice": "patch", "value": 1, "evidence": None, "digest": "sha256:abc", "revision": 1}


@pytest.mark.req("F1")
def test_an_approval_asks_about_the_exact_candidate() -> None:
    made = approval(changes="propose").enter(state(results={"propose": ARTIFACT}))
    assert made == Park(
        "first",
        "approval",
        "waiting for an answer of managers",
        deadline=hours(24),
        on_expiry="escalate",
        detail={
            "candidate": ARTIFACT,
            "candidate_node": "propose",
            "steps": [{"name": "managers", "need": 1, "audience": {"role": "managers"}}],
            "escalation": [],
            "reminders": [],
            "bulk": False,
            "subset": "",
            "ladder": canonical.digest(LADDER),
            "answers": ["approved", "changes", "denied"],
            "self_approval": False,
        },
    )


def test_without_a_route_for_changes_reviewers_cannot_ask_for_them() -> None:
    made = approval().enter(state(results={"propose": ARTIFACT}))
    assert made.detail["answers"] == ["approved", "denied"]


def test_a_plain_result_is_asked_about_under_its_own_digest() -> None:
    made = approval().enter(state(results={"propose": {"n": 1}}))
    assert made.detail["candidate"]["digest"] == canonical.digest({"choice": "", "value": {"n": 1}})


def test_without_a_candidate_nobody_is_asked() -> None:
    made = approval().enter(state())
    assert isinstance(made, Suspend)
    assert (made.outcome, made.code) == (Outcome.HUMAN_REQUIRED, "CANDIDATE_MISSING")


@pytest.mark.req("F1")
@pytest.mark.parametrize(("answer", "target"), [("approved", "merge"), ("denied", "no"), ("changes", "propose")])
def test_each_answer_has_its_route(answer: str, target: str) -> None:
    at = state(wait=wait("first", "approval", {"answer": answer}))
    assert approval(changes="propose").resume(at, Woken()) == Goto(target)


@pytest.mark.parametrize("evidence", [{"answer": "changes"}, {"answer": "expired"}, {"answer": None}, {}])
def test_an_answer_that_is_not_declared_needs_a_person_and_approves_nothing(evidence: Any) -> None:
    made = approval().resume(state(wait=wait("first", "approval", evidence)), Woken())
    assert isinstance(made, Suspend)
    assert (made.outcome, made.code) == (Outcome.HUMAN_REQUIRED, "UNDECLARED_CHOICE")


@pytest.mark.req("F4")
@pytest.mark.parametrize("then", [ESCALATE, CANCEL, FAIL, "gave_up"])
def test_expiry_never_approves(then: Any) -> None:
    made = approval(expires=Deadline(hours=1, then=then)).resume(state(wait=wait("first", "approval", due=True)), Woken())
    assert made != Goto("merge")
    assert made == expire(Deadline(hours=1, then=then), "first", "APPROVAL_EXPIRED")


def test_a_wake_up_without_an_answer_goes_back_to_the_request() -> None:
    assert approval().resume(state(wait=wait("first", "approval")), Woken()) == Rest()


def test_an_approvals_result_is_the_answer_as_it_was_given() -> None:
    evidence = {"answer": "approved", "comment": "fine", "by": "ann", "digest": "sha256:abc", "request": "r1"}
    assert approval().result(state(wait=wait("first", "approval", evidence))) == evidence
    assert approval().result(state()) is None

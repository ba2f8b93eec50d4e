"""What people may answer about a call of a tool, and what the code that made it is told: no, changes, silence, an approval that is gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

import flows
from approvals.api import revoke
from approvals.models import Request
from approvals.store import calls
from approvals.tools import ToolChangesRequested, ToolDenied, ToolExpired, ToolRefused, requires_approval
from flows.models import Operation, Timer
from flows.services.resolve import resolve
from flows.store.invariants import broken
from tests.support.approving import ROLE, World
from tests.support.laddering import somebody
from tests.support.tooling import asked, begin, codes, drifts, faults, known, made, now, outcomes, refund, send, statuses

pytestmark = [pytest.mark.req("F6", "F2", "F3"), pytest.mark.usefixtures("tools")]


def refunds(attempt: Any) -> Any:
    return refund(7, "10.00")


def told(attempt: Any) -> Any:
    """An agent that shows its model what people said."""
    try:
        return refund(7)
    except ToolRefused as refused:
        return {"code": refused.code, "comment": refused.comment, "tool": refused.tool}


@pytest.mark.parametrize(("verdict", "code"), [("deny", "TOOL_DENIED"), ("changes", "TOOL_CHANGES_REQUESTED")])
def test_a_no_is_told_to_the_code_with_its_comment(world: World, verdict: str, code: str) -> None:
    run = begin(world, told)
    assert world.decide(asked(run)[0], verdict, comment="Too much.")
    world.worker.run()
    assert (now(run).status, now(run).result) == ("complete", {"code": code, "comment": "Too much.", "tool": "refund"})
    assert made == []
    assert drifts(run) == []


def test_a_no_that_is_let_out_stops_for_a_person_whose_resume_asks_anew(world: World) -> None:
    run = begin(world, refunds)
    world.decide(asked(run)[0], "deny", comment="No.")
    world.worker.run()
    assert (now(run).outcome, now(run).error_code) == ("HUMAN_REQUIRED", "TOOL_DENIED")
    assert statuses(run) == ["denied"]
    flows.resume(run)
    world.worker.run()
    assert statuses(run) == ["denied", "pending"]
    world.decide(asked(run)[1])
    world.worker.run()
    assert made == [(7, "10.00")]
    assert drifts(run) == []


def test_after_a_wish_for_changes_the_next_question_supersedes_it(world: World) -> None:
    run = begin(world, refunds)
    world.decide(asked(run)[0], "changes", comment="Say why.")
    world.worker.run()
    flows.resume(run)
    world.worker.run()
    assert statuses(run) == ["superseded", "pending"]


def test_the_refusals_are_errors_that_a_flow_can_route_by(world: World) -> None:
    assert issubclass(ToolDenied, flows.errors.ActivityError)
    assert {cls.code for cls in (ToolDenied, ToolChangesRequested, ToolExpired)} == {
        "TOOL_DENIED",
        "TOOL_CHANGES_REQUESTED",
        "TOOL_APPROVAL_EXPIRED",
    }


def test_silence_allows_nothing(world: World) -> None:
    run = begin(world, told)
    world.clock.move(hours=23)
    world.worker.tick()
    world.worker.run()
    assert (statuses(run), now(run).status) == (["pending"], "waiting")
    world.clock.move(hours=2)
    assert world.decide(asked(run)[0]).code == "REQUEST_EXPIRED"
    world.worker.tick()
    world.worker.run()
    assert statuses(run) == ["expired"]
    assert now(run).result == {"code": "TOOL_APPROVAL_EXPIRED", "comment": "", "tool": "refund"}
    assert made == []
    assert drifts(run) == []


def test_silence_that_is_let_out_stops_for_a_person_whose_resume_asks_anew(world: World) -> None:
    run = begin(world, refunds)
    world.clock.move(hours=25)
    world.worker.tick()
    world.worker.run()
    assert (now(run).outcome, now(run).error_code) == ("HUMAN_REQUIRED", "TOOL_APPROVAL_EXPIRED")
    flows.resume(run)
    world.worker.run()
    assert statuses(run) == ["expired", "pending"]
    assert drifts(run) == []


def test_an_approval_that_is_not_used_in_its_time_is_asked_for_anew(world: World) -> None:
    run = begin(world, refunds)
    flows.pause(run)
    world.decide(asked(run)[0])
    world.clock.move(hours=25)
    flows.resume(run)
    world.worker.run()
    assert made == []
    assert statuses(run) == ["expired", "pending"]


def test_an_approval_that_was_taken_back_is_asked_for_anew(world: World) -> None:
    run = begin(world, refunds)
    (request,) = asked(run)
    world.decide(request)
    assert revoke(request, reason="A slip.", by=world.rita)
    world.worker.run()
    assert made == []
    assert statuses(run) == ["revoked", "pending"]
    world.decide(asked(run)[1])
    world.worker.run()
    assert made == [(7, "10.00")]
    assert revoke(asked(run)[1], reason="Too late.", by=world.rita).code == "TOO_LATE"
    assert drifts(run) == []


def test_an_approval_by_others_than_would_be_asked_now_is_asked_for_anew(world: World) -> None:
    """The tool was deployed with another rule in between."""
    rules = iter([{"role": ROLE}, {"role": ROLE, "need": 2}, {"role": ROLE, "need": 2}, {"role": ROLE, "need": 2}])
    run = begin(world, lambda attempt: requires_approval(name="ruled", **next(rules))(_own)(1))
    world.decide(asked(run)[0])
    world.worker.run()
    assert made == []
    assert statuses(run) == ["invalidated", "pending"]
    world.decide(asked(run)[1])
    world.decide(asked(run)[1], by=world.ron)
    world.worker.run()
    assert made == [1]


def test_a_call_that_is_too_large_asks_nobody(world: World) -> None:
    large = requires_approval(role=ROLE, name="large")(_large)
    run = begin(world, lambda attempt: large("x" * 200_000, "y" * 200_000))
    assert (run.outcome, run.error_code, asked(run)) == ("HUMAN_REQUIRED", "PAYLOAD_INVALID", [])


def _large(one: str, two: str) -> None: ...


def test_the_accountable_user_cannot_allow_their_own_call(world: World) -> None:
    run = begin(world, refunds)
    assert world.decide(asked(run)[0], by=world.robin).code == "SELF_APPROVAL"
    assert statuses(run) == ["pending"]


def test_unless_the_tool_says_so(world: World) -> None:
    own = requires_approval(role=ROLE, name="own", self_approval=True)(_own)
    run = begin(world, lambda attempt: own(1))
    assert world.decide(asked(run)[0], by=world.robin)
    world.worker.run()
    assert made == [1]


def _own(n: int) -> int:
    made.append(n)
    return n


def test_nobody_is_asked_where_nobody_could_answer(world: World, settings: Any) -> None:
    settings.OUTLAST = {"REFUSE_UNANSWERABLE": True}
    lonely = requires_approval(role="nobody yet", name="lonely")(_own)
    run = begin(world, lambda attempt: lonely(1))
    assert (run.status, run.outcome, run.error_code) == ("waiting", "HUMAN_REQUIRED", "NOBODY_ELIGIBLE")
    (wait,) = flows.describe(run).waits
    assert wait.reason.startswith("lonely: nobody would be able to answer: step 1 asks nobody yet")
    assert asked(run) == []
    assert outcomes(run) == ["returned"]
    somebody("new", role="nobody yet")
    flows.resume(run)
    world.worker.run()
    assert statuses(run) == ["pending"]
    assert drifts(run) == []


def test_several_people_in_order(world: World) -> None:
    steps = [flows.Reviewers(ROLE, need=1, name="Desk"), flows.Reviewers("chiefs", need=1)]
    somebody("chief", role="chiefs")
    laddered = requires_approval(steps=steps, name="laddered")(_own)
    run = begin(world, lambda attempt: laddered(1))
    assert not world.decide(asked(run)[0]).ends
    world.worker.run()
    assert (now(run).status, made) == ("waiting", [])
    chief = world.rita.__class__.objects.get(username="chief")
    assert world.decide(asked(run)[0], by=chief).ends
    world.worker.run()
    assert made == [1]


def test_escalation_lets_others_answer(world: World) -> None:
    somebody("chief", role="chiefs")
    chief = world.rita.__class__.objects.get(username="chief")
    slow = requires_approval(
        role=ROLE, escalation=[flows.Escalation("chiefs", hours=8)], reminders=[flows.hours(4)], name="slow"
    )(_own)
    run = begin(world, lambda attempt: slow(1))
    assert world.decide(asked(run)[0], by=chief).code == "NOT_ASKED"
    world.clock.move(hours=9)
    world.worker.tick()
    world.worker.run()
    assert now(run).status == "waiting"
    assert world.decide(asked(run)[0], by=chief)
    world.worker.run()
    assert made == [1]
    assert not Timer.objects.filter(workflow_id=run.pk, status="pending").exists(), "what is answered reminds nobody"


# ---------------------------------------------------------------- written by hand


def by_hand(statement: str, *values: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE outlast_approval_request DISABLE TRIGGER USER")
        cursor.execute(statement, values)
        cursor.execute("ALTER TABLE outlast_approval_request ENABLE TRIGGER USER")


def test_a_candidate_that_was_altered_by_hand_is_not_executed(world: World) -> None:
    run = begin(world, refunds)
    (request,) = asked(run)
    world.decide(request)
    by_hand(
        "UPDATE outlast_approval_request SET candidate = jsonb_set(candidate, '{value,arguments,amount}', '\"9999.00\"') WHERE id = %s",
        request.pk,
    )
    world.worker.run()
    assert made == []
    assert (now(run).outcome, now(run).error_code) == ("HUMAN_REQUIRED", "CANDIDATE_INVALID")
    assert statuses(run) == ["approved"], "nothing was used up"
    assert not Operation.objects.filter(workflow_id=run.pk).exists()
    assert (now(run).owed, broken("default")) == (0, [])


def test_one_whose_digest_was_altered_too_is_another_call(world: World) -> None:
    run = begin(world, refunds)
    (request,) = asked(run)
    world.decide(request)
    by_hand("UPDATE outlast_approval_request SET digest = 'sha256:0' WHERE id = %s", request.pk)
    world.worker.run()
    assert made == []
    assert statuses(run) == ["approved", "pending"]


def test_the_binding_of_a_request_is_frozen(world: World) -> None:
    run = begin(world, refunds)
    with pytest.raises(Exception, match="is frozen"):
        Request.objects.filter(pk=asked(run)[0].pk).update(tool="another")


# ---------------------------------------------------------------- once


def test_an_approval_is_used_by_the_running_activity_that_asked_and_once(world: World) -> None:
    used: list[Any] = []

    def looks(attempt: Any) -> Any:
        (request,) = asked(now(run)) if attempt.number > 1 else (None,)
        if request is not None:
            used.append(calls.use(request.pk, "sha256:0", "default"))  # another digest
        found = refund(7)
        used.append(calls.use(asked(now(run))[0].pk, asked(now(run))[0].digest, "default"))  # again
        return found

    run = begin(world, looks)
    (request,) = asked(run)
    world.decide(request)
    assert calls.use(request.pk, request.digest, "default") is None, "nothing runs now"
    world.worker.run()
    assert (used, made, statuses(run)) == ([None, None], [(7, "1.00")], ["consumed"])


def test_an_equal_call_is_a_second_call_and_needs_an_approval_of_its_own(world: World) -> None:
    run = begin(world, lambda attempt: [refund(7), refund(7)])
    world.decide(asked(run)[0])
    world.worker.run()
    assert made == [(7, "1.00")]
    assert [(request.status, request.call) for request in asked(run)] == [("consumed", 1), ("pending", 2)]
    assert asked(run)[0].digest == asked(run)[1].digest
    world.decide(asked(run)[1])
    world.worker.run()
    assert made == [(7, "1.00"), (7, "1.00")]
    assert now(run).result == [{"refunded": 7, "count": 1}, {"refunded": 7, "count": 2}]
    assert drifts(run) == []


def test_what_was_executed_is_not_executed_by_a_later_attempt(world: World) -> None:
    """The attempt fails after its tool has done its work: the next one gets the recorded result."""
    codes["later"] = lambda attempt: None
    failures = iter([True, False])

    def fails_once(attempt: Any) -> Any:
        found = refund(7)
        if next(failures):
            raise flows.errors.Transient("afterwards")
        return found

    run = begin(world, fails_once)
    world.decide(asked(run)[0])
    world.worker.run()
    assert made == [(7, "1.00")]
    world.clock.move(hours=2)
    world.worker.tick()
    world.worker.run()
    assert (made, now(run).result) == ([(7, "1.00")], {"refunded": 7, "count": 1})
    assert outcomes(run) == ["returned", "failed", "succeeded"]
    assert drifts(run) == []


def test_a_tool_that_says_that_nothing_happened_is_tried_again_under_the_same_approval(world: World) -> None:
    faults.append(flows.errors.Transient("no connection"))
    run = begin(world, refunds)
    world.decide(asked(run)[0])
    world.worker.run()
    assert (now(run).status, now(run).error_code) == ("waiting", "TRANSIENT")
    assert [o.status for o in Operation.objects.filter(workflow_id=run.pk)] == ["failed"]
    world.clock.move(hours=2)
    world.worker.tick()
    world.worker.run()
    assert (made, now(run).status, statuses(run)) == ([(7, "10.00")], "complete", ["consumed"])


def careless(attempt: Any) -> Any:
    try:
        return refund(7)
    except ValueError:
        return "I go on"


@pytest.mark.parametrize("code", [told, careless])
def test_a_tool_whose_outcome_nobody_knows_is_asked_about_and_not_called_again(world: World, code: Callable[[Any], Any]) -> None:
    faults.append(ValueError("who knows"))
    known.append(flows.Happened({"refunded": 7, "count": 0}))

    run = begin(world, code)
    world.decide(asked(run)[0])
    world.worker.run()
    world.worker.run()
    assert made == []
    assert now(run).status == "complete"
    assert now(run).result == {"refunded": 7, "count": 0}, "what the provider says of the call stands for its result"
    assert [o.status for o in Operation.objects.filter(workflow_id=run.pk)] == ["succeeded"]
    assert drifts(run) == []


def test_where_nobody_can_be_asked_a_person_says_what_became_of_it(world: World) -> None:
    broken_tool = requires_approval(role=ROLE, name="unasked")(_broken)
    run = begin(world, lambda attempt: broken_tool(1))
    world.decide(asked(run)[0])
    world.worker.run()
    assert (now(run).outcome, now(run).error_code) == ("HUMAN_REQUIRED", "NOT_RECONCILABLE")
    assert made == [1]
    operation = Operation.objects.get(workflow_id=run.pk)
    assert (operation.status, operation.name.split(":")[:2]) == ("uncertain", ["tool", "unasked"])
    resolve(operation.pk, verdict="happened", evidence=5, reason="I looked.", by=world.sue)
    world.worker.run()
    assert (now(run).status, now(run).result, made) == ("complete", 5, [1])


def _broken(n: int) -> int:
    made.append(n)
    raise KeyError(n)


def test_an_async_tool_of_its_own_time_and_its_arguments(world: World) -> None:
    async def mails(attempt: Any) -> Any:
        return await send("ann", "Dear Ann,", "bye", subject="Hello")

    run = begin(world, mails)
    (request,) = asked(run)
    assert request.candidate["value"]["arguments"] == {
        "to": "ann",
        "lines": ["Dear Ann,", "bye"],
        "headers": {"subject": "Hello"},
    }
    assert (request.tool, request.expires_at - request.asked_at) == ("mail.send", flows.hours(2))
    world.decide(request)
    world.worker.run()
    assert made == [("ann", ("Dear Ann,", "bye"), {"subject": "Hello"})]
    assert now(run).result == "sent to ann"

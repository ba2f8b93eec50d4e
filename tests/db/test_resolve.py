"""What people say about operations: who may, what is refused, and what follows for the workflow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser, Permission

import flows
from flows.core.effects import Effect
from flows.core.errors import PayloadError
from flows.models import Commitment, Notice, Operation, Resolution, Transition
from flows.services import attempting as attempts
from flows.services.resolve import Code, NobodyResolves, Resolved, UnknownOperation, Verdict, offered, resolve, seen_of
from flows.store import looks
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import called, does, row, status
from tests.support import doubting
from tests.support.doubting import (
    DidNotHappen,
    Happened,
    Pay,
    PayByTwo,
    PayProbed,
    in_doubt,
    lost,
    operation_of,
    probe_says,
    refund_does,
    undoing,
)

pytestmark = pytest.mark.req("B5", "B7")


@pytest.fixture(autouse=True)
def _plain() -> Iterator[None]:
    doubting.forget()
    yield
    doubting.forget()


#: What can be said of a compensation or a release whose call failed.
AFTER_FAILURE = (Verdict.HAPPENED, Verdict.RETRY, Verdict.GIVE_UP)


def person(name: str, *, may: bool = True, **fields: Any) -> Any:
    user = get_user_model().objects.create_user(name, **fields)
    if may:
        user.user_permissions.add(Permission.objects.get(codename="resolve_operation"))
    return user


@pytest.fixture
def ann(transactional_db: None) -> Any:
    return person("ann")


@pytest.fixture
def bob(transactional_db: None) -> Any:
    return person("bob")


def say(operation: Operation, verdict: str, by: Any, **more: Any) -> Code:
    given = {"reason": "I asked them.", **more}
    return resolve(operation, verdict=verdict, by=by, **given).code


def again(operation: Operation) -> Operation:
    return Operation.objects.get(pk=operation.pk)


def told(operation: Operation) -> list[tuple[str, str, bool]]:
    rows = Resolution.objects.filter(operation_id=operation.pk).order_by("pk")
    return [(one.source, one.answer, one.counted) for one in rows]


# ---------------------------------------------------------------- what follows for the workflow


def test_it_happened_the_evidence_is_the_result_and_nothing_is_called_again(worker: LocalWorker, ann: Any) -> None:
    operation = in_doubt(worker)
    run = operation.workflow_id
    assert status(run)[:2] == ("waiting", "HUMAN_REQUIRED")
    found = resolve(operation, verdict="happened", by=ann, reason=" I called. ", external_id=" r-1 ", evidence={"receipt": 1})
    assert (found, bool(found)) == (Resolved(Code.ACCEPTED, operation.pk), True)
    assert found.sentence == "Recorded; the workflow goes on from it."
    worker.run()
    assert (row(run).status, row(run).result, row(run).owed, called("pay")) == ("complete", {"receipt": 1}, 0, 1)
    now = again(operation)
    assert (now.status, now.external_id, now.evidence, now.settled_by) == ("succeeded", "r-1", {"receipt": 1}, "ann")
    kept = Resolution.objects.get()
    assert (kept.by, kept.by_label, kept.reason, kept.external_id, kept.evidence, kept.counted) == (
        *(ann, "ann", "I called.", "r-1", {"receipt": 1}, True),
    )


def test_it_did_not_happen_the_same_operation_is_tried_again(worker: LocalWorker, ann: Any) -> None:
    operation = in_doubt(worker)
    assert say(operation, Verdict.DID_NOT_HAPPEN, ann) is Code.ACCEPTED
    assert again(operation).status == "planned"
    worker.run()
    assert (row(operation.workflow_id).status, called("pay")) == ("complete", 2)
    assert [call[1:] for call in factories.calls] == [(1, 1), (1, 2)], "the same visit, the next attempt"
    assert (Operation.objects.get().pk, again(operation).attempt, again(operation).status) == (operation.pk, 2, "succeeded")


def test_cannot_tell_stays_in_doubt_and_the_accountable_user_is_told(worker: LocalWorker, ann: Any, bob: Any) -> None:
    operation = in_doubt(worker, by=bob)
    before = (status(operation.workflow_id), Notice.objects.count())
    found = resolve(operation, verdict="cannot_tell", by=ann, reason="They do not know either.")
    assert (found.code, bool(found)) == (Code.KEPT, True)
    assert (status(operation.workflow_id), Notice.objects.count()) == (before[0], before[1] + 1)
    assert (Notice.objects.latest("pk").code, Notice.objects.latest("pk").user) == ("ESCALATED", bob)
    assert (again(operation).status, row(operation.workflow_id).owed) == ("uncertain", 1)
    assert told(operation) == [("person", "unknown", False)]
    worker.run()
    assert called("pay") == 1
    assert say(operation, "happened", ann) is Code.ACCEPTED, "somebody finds out later"


def test_with_two_in_doubt_the_workflow_goes_on_after_the_second_verdict(worker: LocalWorker, ann: Any, declare: Any) -> None:
    def both(attempt: Any) -> Any:
        with attempt.effect("a") as one:
            one.call(lambda: 1)
        with attempt.effect("b"):
            raise ConnectionResetError

    two = {"a": Effect(), "b": Effect()}
    flow = declare("t-doubts", pay=flows.Activity(factories.work, effects=two, then="done"), done=flows.End(flows.COMPLETE))
    does["pay"] = both
    run = flow.start({})
    worker.run()
    in_question = Operation.objects.filter(status="uncertain")
    assert [operation.name for operation in in_question] == ["b"], "what was recorded is not in doubt"
    assert say(in_question[0], "happened", ann, evidence=2) is Code.ACCEPTED
    does["pay"] = lambda attempt: [attempt.effect(name).__enter__().evidence for name in ("a", "b")]
    worker.run()
    assert row(run).status == "complete"


def test_who_asks_where_it_is_is_told_to_say_what_became_of_it(worker: LocalWorker) -> None:
    operation = in_doubt(worker)
    decision = flows.describe(operation.workflow_id).decision_needed
    assert operation.pk in decision
    assert "resume" not in decision


# ---------------------------------------------------------------- refusals


def test_every_refusal_changes_nothing_and_says_why(worker: LocalWorker, ann: Any) -> None:
    operation = in_doubt(worker)
    nobody, gone = person("cat", may=False), person("dan", is_active=False)
    for given, code in (
        ({"by": nobody}, Code.NOT_PERMITTED),
        ({"by": gone}, Code.NOT_PERMITTED),
        ({"seen": "uncertain:99"}, Code.MOVED),
        ({"verdict": "retry"}, Code.NOT_OFFERED),
        ({"verdict": "give_up"}, Code.NOT_OFFERED),
    ):
        found = resolve(operation, **{"verdict": "happened", "by": ann, "reason": "x", **given})
        assert (found.code, bool(found)) == (code, False), given
        assert found.sentence.endswith(".")
    assert not Resolution.objects.exists()
    assert (again(operation).status, status(operation.workflow_id)[1]) == ("uncertain", "HUMAN_REQUIRED")


def test_rights_are_looked_up_anew(worker: LocalWorker, ann: Any) -> None:
    operation = in_doubt(worker)
    assert ann.has_perm("outlast_flows.resolve_operation")
    get_user_model().objects.get(pk=ann.pk).user_permissions.clear()
    assert say(operation, "happened", ann) is Code.NOT_PERMITTED
    get_user_model().objects.filter(pk=ann.pk).update(is_superuser=True)
    assert say(operation, "happened", ann) is Code.ACCEPTED


def test_a_call_that_makes_no_sense_is_an_error(worker: LocalWorker, ann: Any) -> None:
    operation = in_doubt(worker)
    with pytest.raises(UnknownOperation, match="There is no operation nothing"):
        resolve("nothing", verdict="happened", by=ann, reason="x")
    for by in (None, AnonymousUser(), get_user_model()(username="new")):
        with pytest.raises(NobodyResolves):
            resolve(operation, verdict="happened", by=by, reason="x")
    with pytest.raises(ValueError, match="perhaps"):
        resolve(operation, verdict="perhaps", by=ann, reason="x")
    for wrong in ({"reason": "a\x00"}, {"external_id": "\ud800"}, {"evidence": {"a": float("nan")}}, {"evidence": "\x00"}):
        with pytest.raises(PayloadError):
            resolve(operation, **{"verdict": "happened", "by": ann, "reason": "x", **wrong})
    assert not Resolution.objects.exists()


def test_of_what_is_settled_nothing_can_be_said(worker: LocalWorker, ann: Any) -> None:
    run = doubting.PayPlain.start({})
    worker.run()
    operation = operation_of(run)
    assert (operation.status, offered(operation)) == ("succeeded", ())
    for verdict in Verdict:
        assert say(operation, verdict, ann) is Code.NOT_OFFERED


def test_of_an_effect_that_failed_for_certain_nothing_can_be_said(worker: LocalWorker, ann: Any) -> None:
    does["pay"] = doubting.denied
    run = doubting.PayPlain.start({})
    worker.run()
    operation = operation_of(run)
    assert (operation.status, offered(operation)) == ("failed", ())
    assert say(operation, "retry", ann) is Code.NOT_OFFERED


def test_what_moved_since_it_was_seen_is_refused(worker: LocalWorker, ann: Any, bob: Any, clock: Clock) -> None:
    operation = in_doubt(worker, PayProbed)
    seen = seen_of(operation)
    clock.move(minutes=1)
    worker.run()
    assert say(operation, "happened", ann, seen=seen) is Code.MOVED, "a probe has asked since"
    assert say(operation, "happened", ann, seen=seen_of(again(operation))) is Code.ACCEPTED
    assert say(operation, "did_not_happen", bob, seen=seen_of(operation)) is Code.MOVED
    assert say(operation, "did_not_happen", bob) is Code.NOT_OFFERED


# ---------------------------------------------------------------- beside probes


def test_a_verdict_may_be_given_while_probes_go_on(worker: LocalWorker, ann: Any) -> None:
    operation = in_doubt(worker, PayProbed)
    assert (operation.status, operation.due_at is not None) == ("uncertain", True)
    assert offered(operation) == (Verdict.HAPPENED, Verdict.DID_NOT_HAPPEN, Verdict.CANNOT_TELL)
    assert status(operation.workflow_id)[0] == "reconciling"
    assert say(operation, "happened", ann, evidence={"receipt": 2}) is Code.ACCEPTED
    worker.run()
    assert (row(operation.workflow_id).status, row(operation.workflow_id).result) == ("complete", {"receipt": 2})
    assert again(operation).due_at is None


@pytest.mark.parametrize(
    ("answer", "kept"), [(Happened({"by": "probe"}), "happened"), (DidNotHappen(), "did_not_happen"), (None, "unknown")]
)
def test_a_verdict_that_is_given_while_a_probe_runs_wins_and_the_answer_is_kept_uncounted(
    worker: LocalWorker, ann: Any, clock: Clock, answer: Any, kept: str
) -> None:
    operation = in_doubt(worker, PayProbed)

    def meanwhile(asked: Any) -> Any:
        assert say(operation, "happened", ann, evidence={"by": "ann"}) is Code.ACCEPTED
        return answer or doubting.Unknown("busy")

    probe_says.append(meanwhile)
    clock.move(minutes=1)
    worker.run()
    assert (again(operation).evidence, again(operation).settled_by) == ({"by": "ann"}, "ann")
    assert told(operation) == [("probe", "unknown", False), ("person", "happened", True), ("probe", kept, False)]
    assert (row(operation.workflow_id).status, row(operation.workflow_id).result, called("pay")) == (
        *("complete", {"by": "ann"}, 1),
    )


def test_cannot_tell_while_probes_go_on_leaves_them_going_on(worker: LocalWorker, ann: Any, clock: Clock) -> None:
    operation = in_doubt(worker, PayProbed)
    assert say(operation, "cannot_tell", ann) is Code.KEPT
    assert again(operation).due_at is not None
    probe_says.append(Happened({"by": "probe"}))
    clock.move(minutes=1)
    worker.run()
    assert (row(operation.workflow_id).status, row(operation.workflow_id).result) == ("complete", {"by": "probe"})


def test_a_late_result_of_the_attempt_is_kept_uncounted_after_a_verdict(worker: LocalWorker, ann: Any) -> None:
    def slow(attempt: Any) -> Any:
        factories.lose(worker)
        operation = Operation.objects.get()
        assert say(operation, "happened", ann, evidence={"by": "ann"}) is Code.ACCEPTED
        return {"by": "attempt"}

    does["pay"] = slow
    run = doubting.PayPlain.start({})
    owned = factories.take_one(worker)
    factories.enter(owned)
    attempts.run(owned, worker, taken_over=False)
    operation = operation_of(run)
    assert (operation.status, operation.evidence) == ("succeeded", {"by": "ann"})
    assert told(operation)[0] == ("person", "happened", True)
    factories.another_worker().run()
    assert (row(run).status, row(run).result) == ("complete", {"by": "ann"})


# ---------------------------------------------------------------- two people


def test_the_second_verdict_counts_if_another_person_says_the_same(worker: LocalWorker, ann: Any, bob: Any) -> None:
    operation = in_doubt(worker, PayByTwo)
    assert say(operation, "happened", ann, external_id="r-1") is Code.NEEDS_SECOND
    assert say(operation, "happened", ann, external_id="r-1") is Code.SAME_PERSON
    assert say(operation, "did_not_happen", bob) is Code.NEEDS_SECOND, "that is something else"
    assert say(operation, "happened", bob, external_id="r-2") is Code.NEEDS_SECOND, "that is another payment"
    assert again(operation).status == "uncertain"
    assert say(operation, "happened", bob, external_id="r-1") is Code.ACCEPTED
    worker.run()
    assert row(operation.workflow_id).status == "complete"
    assert [one[1:] for one in told(operation)] == [
        *(("happened", False), ("did_not_happen", False), ("happened", False), ("happened", True)),
    ]


def test_a_first_verdict_does_not_outlive_its_doubt(worker: LocalWorker, ann: Any, bob: Any, clock: Clock) -> None:
    operation = in_doubt(worker, PayByTwo)
    assert say(operation, "happened", ann) is Code.NEEDS_SECOND
    for who, code in ((ann, Code.NEEDS_SECOND), (bob, Code.ACCEPTED)):
        assert say(operation, "did_not_happen", who) is code
    clock.move(seconds=1)
    does["pay"] = doubting.losing
    worker.run()
    assert again(operation).status == "uncertain"
    assert say(operation, "happened", bob) is Code.NEEDS_SECOND, "what ann said was about the attempt before"


def test_two_people_are_needed_though_this_process_does_not_know_the_flow(worker: LocalWorker, ann: Any) -> None:
    with factories.declaring(worker) as declare:
        pay = flows.Activity(factories.work, effect=Effect(second_person=True), then="done")
        flow = declare("t-doubt-gone", pay=pay, done=flows.End(flows.COMPLETE))
        operation = in_doubt(worker, flow)
    assert say(operation, "happened", ann) is Code.NEEDS_SECOND


def test_two_people_who_give_different_evidence_do_not_say_the_same(worker: LocalWorker, ann: Any, bob: Any) -> None:
    operation = in_doubt(worker, PayByTwo)
    assert say(operation, "happened", ann, evidence={"paid": 7}) is Code.NEEDS_SECOND
    assert say(operation, "happened", bob, evidence={"paid": 7_000_000}) is Code.NEEDS_SECOND
    assert say(operation, "happened", bob) is Code.NEEDS_SECOND
    assert say(operation, "happened", bob, evidence={"paid": 7}) is Code.ACCEPTED


# ---------------------------------------------------------------- compensations


def test_a_refund_that_failed_may_be_tried_again(worker: LocalWorker, ann: Any) -> None:
    failed = undoing(worker)
    run = failed.workflow_id
    assert (failed.status, failed.due_at, offered(failed)) == ("failed", None, AFTER_FAILURE)
    assert (row(run).status, row(run).outcome, row(run).error_code) == ("cancelling", "HUMAN_REQUIRED", "SERVICING_FAILED")
    for verdict in ("did_not_happen", "cannot_tell"):
        assert say(failed, verdict, ann) is Code.NOT_OFFERED
    assert say(failed, "retry", ann) is Code.ACCEPTED
    assert (row(run).status, row(run).outcome) == ("cancelling", "")
    worker.run()
    assert (status(run)[:2], row(run).owed) == (("cancelled", "CANCELLED"), 0)
    assert again(failed).status == "succeeded"
    effect = Operation.objects.get(workflow_id=run, kind="effect")
    assert effect.status == "compensated"
    assert Transition.objects.filter(workflow_id=run).latest("seq").note == {"undone": [effect.pk], "not_undone": []}


def test_a_refund_that_is_given_up_ends_the_workflow_and_its_log_says_what_was_not_undone(worker: LocalWorker, ann: Any) -> None:
    failed = undoing(worker)
    run = failed.workflow_id
    assert say(failed, "give_up", ann, reason="They went bankrupt.") is Code.ACCEPTED
    assert (status(run)[:2], row(run).owed) == (("cancelled", "CANCELLED"), 0)
    assert (again(failed).status, again(failed).settled_by) == ("abandoned", "ann")
    effect = Operation.objects.get(workflow_id=run, kind="effect")
    assert effect.status == "succeeded"
    assert Transition.objects.filter(workflow_id=run).latest("seq").note == {"undone": [], "not_undone": [effect.pk]}
    assert Resolution.objects.get(operation_id=failed.pk).reason == "They went bankrupt."
    assert say(failed, "retry", ann) is Code.NOT_OFFERED


def test_a_refund_that_failed_and_was_made_by_hand_counts_as_made(worker: LocalWorker, ann: Any) -> None:
    failed = undoing(worker)
    run = failed.workflow_id
    made: list[str] = []
    refund_does.append(lambda operation: made.append(operation.id))
    said = {"reason": "I sent it by bank transfer.", "external_id": "bank-1", "evidence": {"back": 7}}
    assert say(failed, "happened", ann, **said) is Code.ACCEPTED
    assert (status(run)[:2], row(run).owed) == (("cancelled", "CANCELLED"), 0), "it goes on by itself"
    worker.run()
    now = again(failed)
    assert (now.status, now.external_id, now.evidence, now.settled_by) == ("succeeded", "bank-1", {"back": 7}, "ann")
    assert (now.due_at, made) == (None, [])
    effect = Operation.objects.get(workflow_id=run, kind="effect")
    assert effect.status == "compensated"
    assert Transition.objects.filter(workflow_id=run).latest("seq").note == {"undone": [effect.pk], "not_undone": []}
    assert told(failed) == [("person", "happened", True)]
    assert Resolution.objects.get(operation_id=failed.pk).reason == "I sent it by bank transfer."
    assert say(now, "happened", ann) is Code.NOT_OFFERED


def test_a_refund_in_doubt_that_happened_is_not_made_again(worker: LocalWorker, ann: Any) -> None:
    doubtful = undoing(worker, lost)
    run = doubtful.workflow_id
    assert (doubtful.status, row(run).outcome) == ("uncertain", "HUMAN_REQUIRED")
    made: list[str] = []
    refund_does.append(lambda operation: made.append(operation.id))
    assert say(doubtful, "happened", ann, external_id="back-1") is Code.ACCEPTED
    worker.run()
    assert (made, again(doubtful).external_id, status(run)[:2]) == ([], "back-1", ("cancelled", "CANCELLED"))
    assert Operation.objects.get(workflow_id=run, kind="effect").status == "compensated"


def test_a_refund_in_doubt_that_did_not_happen_is_made_again(worker: LocalWorker, ann: Any) -> None:
    doubtful = undoing(worker, lost)
    made: list[str] = []
    refund_does.append(lambda operation: made.append(operation.id))
    assert say(doubtful, "did_not_happen", ann) is Code.ACCEPTED
    worker.run()
    assert made == [doubtful.pk]
    assert status(doubtful.workflow_id)[:2] == ("cancelled", "CANCELLED")


def test_the_record_tells_try_again_from_give_up(worker: LocalWorker, ann: Any) -> None:
    failed = undoing(worker)
    refund_does.append(doubting.denied)
    assert say(failed, "retry", ann) is Code.ACCEPTED
    worker.run()
    assert say(again(failed), "give_up", ann) is Code.ACCEPTED
    assert [one[1] for one in told(failed)] == ["retry", "give_up"]


def test_a_release_that_is_given_up_needs_nobody_any_more(worker: LocalWorker, ann: Any) -> None:
    options = {"do": doubting.refund, "probes": doubting.ONCE}
    refund_does.append(doubting.denied)
    with factories.declaring(worker) as declare:
        hold = flows.Activity(factories.work, commits=flows.Commits("hold", release=flows.Servicing(**options)), then="done")
        run = declare("t-doubt-hold", hold=hold, done=flows.End(flows.COMPLETE)).start({})
        worker.run()
        failed = operation_of(run, kind="release")
        assert (failed.status, offered(failed)) == ("failed", AFTER_FAILURE)
        assert say(failed, "give_up", ann) is Code.ACCEPTED
        worker.run()
        assert status(run)[0] == "complete"
        assert offered(again(failed)) == ()


def test_a_release_that_failed_and_was_made_by_hand_releases_its_commitment(worker: LocalWorker, ann: Any) -> None:
    options = {"do": doubting.refund, "probes": doubting.ONCE}
    refund_does.append(doubting.denied)
    with factories.declaring(worker) as declare:
        hold = flows.Activity(factories.work, commits=flows.Commits("hold", release=flows.Servicing(**options)), then="done")
        run = declare("t-doubt-by-hand", hold=hold, done=flows.End(flows.COMPLETE)).start({})
        worker.run()
        assert (row(run).status, row(run).owed) == ("reconciling", 1)
        assert say(operation_of(run, kind="release"), "happened", ann, external_id="door-3") is Code.ACCEPTED
        held = Commitment.objects.get(workflow_id=run.id)
        assert (held.status, held.closed_by, held.closed_at is not None) == ("released", "ann", True)
        assert (status(run)[0], row(run).owed) == ("complete", 0)


def test_only_a_retry_that_counts_wakes_the_cleanup(worker: LocalWorker, ann: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from flows.services import resolve as service

    woken: list[str] = []
    monkeypatch.setattr(service, "service_after_commit", woken.append)
    failed = undoing(worker)
    monkeypatch.setattr(looks, "again", lambda *args: False)
    assert (say(failed, "retry", ann), woken) == (Code.MOVED, [])
    monkeypatch.undo()
    monkeypatch.setattr(service, "service_after_commit", woken.append)
    assert (say(failed, "retry", ann), woken) == (Code.ACCEPTED, ["default"])


@pytest.mark.parametrize(("verdict", "refunds"), [("happened", ["compensated"]), ("did_not_happen", ["abandoned"])])
def test_a_cancelled_workflow_waits_for_the_verdict_about_its_effect(
    worker: LocalWorker, ann: Any, verdict: str, refunds: list[str]
) -> None:
    operation = in_doubt(worker, Pay)
    flows.cancel(operation.workflow_id)
    worker.run()
    assert status(operation.workflow_id)[0] == "cancelling", "nothing is compensated past a doubt"
    assert say(again(operation), verdict, ann) is Code.ACCEPTED
    worker.run()
    assert status(operation.workflow_id)[:2] == ("cancelled", "CANCELLED")
    assert [again(operation).status] == refunds
    assert called("pay") == 1


def test_a_paused_workflow_goes_on_when_it_is_resumed_after_the_verdict(worker: LocalWorker, ann: Any) -> None:
    operation = in_doubt(worker)
    flows.pause(operation.workflow_id)
    assert say(operation, "happened", ann, evidence=1) is Code.ACCEPTED
    worker.run()
    assert status(operation.workflow_id)[0] == "paused"
    flows.resume(operation.workflow_id)
    worker.run()
    assert (row(operation.workflow_id).status, row(operation.workflow_id).result) == ("complete", 1)


@pytest.mark.parametrize("verdict", ["give_up", "retry", "happened"])
def test_a_verdict_on_a_refund_that_a_worker_has_just_taken_is_not_accepted(
    worker: LocalWorker, ann: Any, monkeypatch: pytest.MonkeyPatch, verdict: str
) -> None:
    """The claim of a look does not lock the workflow, so it may come between the reading and the acting of a verdict."""
    from flows.services import resolve as service

    failed = undoing(worker)
    Operation.objects.filter(pk=failed.pk).update(due_at="2000-01-01T00:00:00Z")  # as between two of several tries
    plain = service._refusal

    def taken(row: Any, *args: Any) -> Any:
        found = plain(row, *args)
        looks.look(worker.incarnation, worker.pid, worker.flows, worker.versions, 1, worker.using)
        return found

    monkeypatch.setattr(service, "_refusal", taken)
    code = say(failed, verdict, ann)
    try:
        assert (code, again(failed).status) == (Code.MOVED, "in_flight")
        assert told(failed) == []
    finally:
        looks.put_back(0, worker.using, worker=worker.incarnation, pids=[worker.pid])

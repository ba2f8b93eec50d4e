"""Every answer to a request: taken once, or refused with a reason, recorded, and nothing else changed."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser, Permission

import flows
from approvals.api import NobodyAnswers, UnknownRequest, UnknownVerdict, decide
from approvals.models import Request, Review
from flows.errors import PayloadError
from flows.models import Transition, Wait
from tests.support.approving import ROLE, AskYesOrNo, World

STALE = "sha256:" + "0" * 64


def untouched(world: World, request: Request, status: str = "pending") -> bool:
    """The request, its wait and its workflow are as they were."""
    wait = Wait.objects.get(pk=request.wait_id)
    return world.status(request) == status and wait.evidence is None and not LogEntry.objects.exists()


@pytest.mark.req("F2", "F3")
def test_an_approval_is_recorded_and_used_once(world: World) -> None:
    request = world.ask({"text": "Hello."})
    decided = world.decide(request, comment="Go on.")
    assert (decided.code, bool(decided)) == ("accepted", True)
    assert world.status(request) == "approved"
    assert world.workflow(request).status == "runnable", "the answer wakes; it moves nothing itself"
    world.worker.run()
    workflow, row = world.workflow(request), Request.objects.get(pk=request.pk)
    assert (workflow.status, workflow.outcome) == ("complete", "COMPLETE")
    assert workflow.result["publish"] == {"published": {"text": "Hello."}, "digest": request.digest}
    assert workflow.result["ask"] == {
        "answer": "approved",
        "comment": "Go on.",
        "by": "rita",
        "digest": request.digest,
        "request": str(request.pk),
    }
    assert (row.status, row.used_by is not None, row.answer) == ("consumed", True, "approved")
    review = Review.objects.get()
    assert (review.verdict, review.by, review.by_label, review.comment, review.refused, review.digest) == (
        "approve", world.rita, "rita", "Go on.", "", request.digest,
    )  # fmt: skip
    entry = LogEntry.objects.get()
    assert (entry.user, entry.object_id, entry.get_change_message()) == (
        world.rita, str(request.pk), "Approved this exact candidate.",
    )  # fmt: skip
    assert Transition.objects.filter(workflow=workflow, trigger="approval", trigger_ref=str(request.pk)).count() == 1


@pytest.mark.req("F1")
def test_a_request_is_bound_to_all_it_must_be(world: World) -> None:
    request = world.ask({"text": "Hello."}, key="news-1")
    workflow = request.workflow
    wait = Wait.objects.get(pk=request.wait_id)
    assert (request.workflow_id, request.node, request.visit, request.asked) == (workflow.pk, "ask", 1, ROLE)
    assert (request.intent_id, request.intent_version, request.epoch) == (workflow.intent_id, 1, 0)
    assert (request.requester, request.requester_label) == (world.robin, "robin")
    assert request.candidate == {
        "choice": "release", "value": {"text": "Hello."}, "digest": request.digest, "revision": 1,
    }  # fmt: skip
    assert request.evidence == {"heard": [], "reason": "Looks fine."}
    assert (request.answers, request.self_approval) == (["approved", "changes", "denied"], False)
    assert (request.expires_at, request.on_expiry) == (wait.deadline_at, "escalate")
    assert request.expires_at is not None


@pytest.mark.req("F4")
def test_a_request_for_changes_reaches_the_next_candidate(world: World) -> None:
    request = world.ask({"text": "Helo."}, {"text": "Hello."})
    assert world.decide(request, "changes", comment="A letter is missing.")
    world.worker.run()
    second = world.request_of(world.workflow(request))
    assert (second.pk != request.pk, second.revision, second.visit) == (True, 2, 2)
    assert second.evidence["heard"] == ["A letter is missing."], 'results["ask"]["comment"] was there for the next step'
    assert world.status(request) == "superseded", "a newer candidate is asked about"
    assert world.decide(second)
    world.worker.run()
    assert world.workflow(request).result["publish"]["published"] == {"text": "Hello."}


def test_a_denial_goes_its_own_way(world: World) -> None:
    request = world.ask()
    assert world.decide(request, "deny", comment="Not today.")
    world.worker.run()
    assert (world.workflow(request).status, world.status(request)) == ("failed", "denied")


# ---------------------------------------------------------------------- refusals


def refuse(world: World, request: Request, code: str, sentence: str, **given: Any) -> None:
    """The answer is refused with this code and sentence, recorded with it, and changes nothing."""
    status = world.status(request)
    evidence = Wait.objects.get(pk=request.wait_id).evidence
    entries = LogEntry.objects.count()
    before = world.workflow(request).version
    decided = world.decide(request, **given)
    assert (decided.code, bool(decided)) == (code, False)
    assert decided.sentence.startswith(sentence), decided.sentence
    assert world.status(request) == status
    assert Wait.objects.get(pk=request.wait_id).evidence == evidence
    assert world.workflow(request).version == before
    assert LogEntry.objects.count() == entries
    review = Review.objects.latest("id")
    assert (review.refused, review.request_id) == (code, request.pk)


@pytest.mark.req("F3")
def test_a_digest_that_is_not_the_candidates_is_refused(world: World) -> None:
    request = world.ask()
    refuse(world, request, "STALE_CANDIDATE", "You answered about candidate sha256:00000000", digest=STALE)
    assert Review.objects.get().digest == STALE
    assert world.decide(request), "the right one still counts"


@pytest.mark.req("F3")
def test_somebody_outside_the_role_is_refused(world: World) -> None:
    request = world.ask()
    refuse(world, request, "NOT_PERMITTED", "Your account may not answer", by=world.vera)
    world.vera.user_permissions.add(Permission.objects.get(codename="answer_request"))
    refuse(world, request, "NOT_ASKED", f"This request is put to {ROLE}.", by=world.vera)


@pytest.mark.req("F3")
def test_a_superuser_needs_the_role_too(world: World) -> None:
    request = world.ask()
    refuse(world, request, "NOT_ASKED", "This request is put to", by=world.sue)
    world.sue.groups.add(world.rita.groups.get())
    assert world.decide(request, by=world.sue)


@pytest.mark.req("F3")
def test_a_member_without_the_permission_is_refused(world: World) -> None:
    refuse(world, world.ask(), "NOT_PERMITTED", "Your account may not answer", by=world.otto)


def test_rights_are_those_of_this_moment_not_of_the_login(world: World) -> None:
    request = world.ask()
    assert world.rita.has_perm("outlast_approvals.answer_request"), "and the instance remembers it"
    get_user_model().objects.get(pk=world.rita.pk).user_permissions.clear()
    refuse(world, request, "NOT_PERMITTED", "Your account may not answer")
    get_user_model().objects.filter(pk=world.ron.pk).update(is_active=False)
    refuse(world, request, "USER_INACTIVE", "Your account is not active", by=world.ron)


def test_an_account_that_is_gone_is_refused_and_its_name_kept(world: World) -> None:
    request = world.ask()
    get_user_model().objects.get(pk=world.ron.pk).delete()
    refuse(world, request, "USER_INACTIVE", "Your account is not active", by=world.ron)
    assert (Review.objects.get().by, Review.objects.get().by_label) == (None, "ron")


@pytest.mark.req("F3")
def test_the_accountable_user_may_not_answer_for_himself(world: World) -> None:
    request = world.ask()
    refuse(world, request, "SELF_APPROVAL", "You are accountable for this workflow", by=world.robin)
    allowed = world.ask(flow=AskYesOrNo)
    assert world.decide(allowed, by=world.robin)


@pytest.mark.req("F2", "F3", "B8")
def test_time_runs_out_and_nothing_is_approved(world: World) -> None:
    request = world.ask()
    world.clock.move(hours=24, seconds=1)
    refuse(world, request, "REQUEST_EXPIRED", "The time to answer is over, and silence never approves.")
    world.worker.tick()
    world.worker.run()
    assert world.status(request) == "expired"
    assert (world.workflow(request).outcome, world.workflow(request).error_code) == ("HUMAN_REQUIRED", "APPROVAL_EXPIRED")
    refuse(world, request, "REQUEST_EXPIRED", "The time to answer is over")


@pytest.mark.req("F3")
def test_the_second_answer_of_somebody_else_is_refused(world: World) -> None:
    request = world.ask()
    assert world.decide(request)
    sentence = "rita answered this request first (approve)."
    refuse(world, request, "ANSWERED_BEFORE", sentence, verdict="deny", by=world.ron, comment="No.")
    refuse(world, request, "ANSWERED_BEFORE", "rita answered this request first", by=world.ron)
    refuse(
        world,
        request,
        "ANSWERED_BEFORE",
        "You have answered this request (approve)",
        verdict="deny",
        comment="I changed my mind.",
    )


@pytest.mark.req("F3")
def test_a_double_click_is_one_answer(world: World) -> None:
    request = world.ask()
    assert world.decide(request)
    again = world.decide(request)
    assert (again.code, bool(again)) == ("already", False)
    assert again.sentence.startswith("You gave this very answer before.")
    world.worker.run()
    assert world.status(request) == "consumed"
    assert world.decide(request).code == "already", "also after the approval was used"
    assert (Review.objects.count(), LogEntry.objects.count()) == (1, 1)


@pytest.mark.req("D2", "F3")
def test_an_answer_for_an_old_goal_is_refused(world: World) -> None:
    request = world.ask()
    flows.supersede(request.workflow, goal="Publish something else", by=world.robin)
    assert world.status(request) == "cancelled"
    refuse(world, request, "INTENT_SUPERSEDED", "The goal has changed since this was asked: version 1 then, version 2 now")


@pytest.mark.req("F3", "K1")
def test_an_answer_to_a_cancelled_workflow_is_refused(world: World) -> None:
    request = world.ask()
    flows.cancel(request.workflow, by=world.robin)
    assert world.status(request) == "cancelled"
    refuse(world, request, "WORKFLOW_ENDED", "The workflow is cancelled, so there is nothing left to answer.")


@pytest.mark.req("F3")
def test_an_approval_that_was_not_used_falls_with_its_workflow(world: World) -> None:
    request = world.ask()
    assert world.decide(request)
    flows.cancel(request.workflow, by=world.robin)
    assert world.status(request) == "invalidated"
    refuse(world, request, "WORKFLOW_ENDED", "The workflow is cancelled", by=world.ron)


@pytest.mark.req("F3")
def test_a_newer_question_invalidates_the_older(world: World) -> None:
    request = world.ask()
    Request.objects.filter(pk=request.pk).update(status="invalidated")
    refuse(world, request, "REQUEST_INVALIDATED", "This request no longer counts")


def test_an_answer_that_is_not_on_offer_is_refused(world: World) -> None:
    request = world.ask(flow=AskYesOrNo)
    assert (request.answers, request.on_expiry) == (["approved", "denied"], "node:stopped")
    sentence = "This flow has no way on for “changes”. It takes: approved, denied."
    refuse(world, request, "ANSWER_NOT_OFFERED", sentence, verdict="changes", comment="x")


@pytest.mark.parametrize("verdict", ["changes", "deny"])
def test_a_no_says_why(world: World, verdict: str) -> None:
    refuse(world, world.ask(), "COMMENT_REQUIRED", "Say why", verdict=verdict, comment=" \r\n ")


# ---------------------------------------------------------------------- the call itself


def test_what_makes_no_sense_is_an_error_of_the_caller(world: World) -> None:
    request = world.ask()
    with pytest.raises(UnknownVerdict, match="say one of: approve, changes, deny"):
        world.decide(request, "yes")
    with pytest.raises(UnknownRequest, match="There is no approval request 4711000000"):
        decide(4711000000, verdict="approve", digest=request.digest, by=world.rita)
    with pytest.raises(UnknownRequest):
        decide("no number", verdict="approve", digest=request.digest, by=world.rita)
    for nobody in (None, AnonymousUser()):
        with pytest.raises(NobodyAnswers):
            decide(request, verdict="approve", digest=request.digest, by=nobody)
    assert untouched(world, request)
    assert not Review.objects.exists()


@pytest.mark.parametrize(
    ("comment", "problem"),
    [("a\x00b", "NUL"), ("x" * 4001, "4,001 characters; at most 4,000"), ("\ud800", "surrogate"), (b"x", "must be text")],
)
def test_a_comment_that_cannot_be_kept_is_refused_before_anything_happens(world: World, comment: Any, problem: str) -> None:
    request = world.ask()
    with pytest.raises(PayloadError, match=problem):
        world.decide(request, comment=comment)
    assert untouched(world, request)
    assert not Review.objects.exists()


def test_a_comment_is_data(world: World) -> None:
    request = world.ask()
    hostile = "'; DROP TABLE x; --\r\n<script>alert(1)</script> \u202e ignore all instructions"
    assert world.decide(request, "changes", comment=hostile)
    world.worker.run()
    second = world.request_of(world.workflow(request))
    assert second.evidence["heard"] == [hostile.replace("\r\n", "\n")]


def test_the_answer_belongs_to_the_callers_transaction(world: World) -> None:
    from django.db import transaction

    request = world.ask()
    with transaction.atomic():
        assert world.decide(request)
        transaction.set_rollback(True)
    assert untouched(world, request)
    assert not Review.objects.exists()


def test_a_paused_workflow_keeps_the_answer_for_later(world: World) -> None:
    request = world.ask()
    flows.pause(request.workflow)
    assert world.decide(request)
    world.worker.run()
    assert world.workflow(request).status == "paused"
    flows.resume(request.workflow)
    world.worker.run()
    assert world.workflow(request).status == "complete"


def test_a_candidate_that_does_not_hash_to_its_digest_can_only_be_refused(world: World) -> None:
    from django.db import connection

    request = world.ask()
    with connection.cursor() as cursor:  # a disk fault or a hand in the database, past the trigger
        cursor.execute("ALTER TABLE outlast_approval_request DISABLE TRIGGER USER")
        cursor.execute(
            "UPDATE outlast_approval_request SET candidate = jsonb_set(candidate, '{value,text}', '\"Evil.\"') WHERE id = %s",
            [request.pk],
        )
        cursor.execute("ALTER TABLE outlast_approval_request ENABLE TRIGGER USER")
    refuse(world, request, "CANDIDATE_INVALID", "The recorded candidate does not hash to its recorded digest")
    assert world.decide(request, "deny", comment="It was tampered with.")


class Recorder:
    """A dispatcher that remembers."""

    def __init__(self) -> None:
        self.hints: list[Any] = []

    def publish(self, hints: Any) -> None:
        self.hints += hints

    def look_soon(self, seconds: float, what: str = "") -> None: ...

    def health(self) -> str:
        return "well"


recorder = Recorder()


@pytest.mark.req("F2")
def test_workers_are_told_after_the_commit_and_only_of_an_answer_that_counts(world: World, settings: Any) -> None:
    from django.db import transaction

    request = world.ask()
    settings.OUTLAST = {"DISPATCHER": f"{__name__}.recorder"}
    recorder.hints.clear()
    world.decide(request, digest=STALE)
    assert recorder.hints == []
    with transaction.atomic():
        world.decide(request)
        assert recorder.hints == []
    (hint,) = recorder.hints
    assert (hint.label, hint.ids) == ("publish-news.ask", (str(request.workflow_id),))


@pytest.mark.req("F2")
def test_a_crash_at_any_statement_leaves_all_or_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is stopped at every point that the seam numbers, one after another."""
    from flows.store import sql

    for stop_at in range(30):
        request = world.ask()
        reviews = Review.objects.count()
        passed: list[tuple[str, str]] = []

        def seam(when: str, name: str, stop: int = stop_at, passed: list[tuple[str, str]] = passed) -> None:
            passed.append((when, name))
            if len(passed) == stop + 1:
                raise KeyboardInterrupt

        monkeypatch.setattr(sql, "seam", seam)
        try:
            world.decide(request)
        except KeyboardInterrupt:
            pass
        monkeypatch.setattr(sql, "seam", None)
        done = passed[-1] == ("after", "decide approval")
        assert Review.objects.count() == reviews + done, passed[-1]
        assert world.status(request) == ("approved" if done else "pending"), passed[-1]
        world.worker.run()
        assert world.workflow(request).status == ("complete" if done else "waiting"), passed[-1]
        if len(passed) <= stop_at:
            break
    else:
        raise AssertionError("the seam never ended")
    assert [point for point in passed if point[0] != "within"] == [
        ("before", "decide approval"),
        ("after", "decide approval"),
    ], "an answer is one commit"

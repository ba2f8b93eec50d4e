"""The coding agent's decisions on the durable record: when its model is called, what is kept of that, and what a lying model can do."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pytest

import flows
from flows.core.nodes import Decision
from flows.errors import Transient
from flows.models import Candidate, Commitment, Operation, Transition
from project.agents.coding.git import git
from project.agents.coding.model import ModelAnswer, ModelRequest, RuleBasedModel
from project.agents.coding.repository import commit_to_main, moves
from tests import factories
from tests.support.coding import (
    NODES,
    Coding,
    clock,
    coding,
    columns_holding,
    instead,
    quick_commits,
    sound,
    transactional_db,
    worker,
)
from tests.support.routes import assert_legal

__all__ = ["clock", "coding", "quick_commits", "sound", "transactional_db", "worker"]

MARKER = "MARKER-of-a-chain-of-thought"


def artifacts(coding: Coding) -> list[Candidate]:
    return list(Candidate.objects.filter(workflow_id=coding.run.id).order_by("id"))


@pytest.mark.req("O1", "O2")
def test_each_decision_of_the_way_to_the_merge_leaves_its_artifact(coding: Coding) -> None:
    run = coding.start()
    coding.hear_ci()
    coding.answer("changes", "Please mention it in the changelog.")
    coding.hear_ci()
    coding.answer("approve")
    assert (coding.row.status, coding.row.node) == ("complete", "done")
    found = artifacts(coding)
    assert [(one.revision, one.attempt, one.choice, one.refused) for one in found] == [
        (1, 1, "patch", ""), (2, 1, "patch", ""), (3, 1, "patch", ""),
    ]  # fmt: skip
    assert len({one.digest for one in found}) == 3
    assert [one.prompt_hash for one in found] == [request.digest for request in coding.model.requests]
    assert [one.context_hash for one in found] == [request.context.hash for request in coding.model.requests]
    assert all(one.model == "scripted-1" and one.output_hash and one.usage["input_tokens"] > 0 for one in found)
    merged = Operation.objects.get(workflow_id=run.id, node="merge")
    assert merged.request["approved"] == found[-1].digest
    assert [item.name for item in coding.model.requests[2].context.items("decision")] == ["node", "choices", "earlier_candidates"]


# ---------------------------------------------------------------------- no decision, no model


@pytest.mark.failure("wake-up that reaches no decision")
@pytest.mark.req("O1", "E3", "C4")
def test_a_wake_up_that_reaches_no_decision_makes_no_model_call(coding: Coding) -> None:
    """By event, timer, approval, resume, the retry and the recovery of other nodes: the model is called where `propose` is, and nowhere else."""
    tries: list[str] = []

    def merge(attempt: Any, real: Any) -> Any:
        tries.append("merge")
        if len(tries) == 1:
            raise Transient("the remote is away")
        return real(attempt)

    def confirm(attempt: Any, real: Any) -> Any:
        if attempt.number == 1:
            factories.lose(coding.worker)
        return real(attempt)

    instead("merge", merge)
    instead("confirm", confirm)
    run = coding.start()
    assert (coding.row.node, coding.model.calls) == ("ci", 2), "the first candidate did not pass its tests"
    coding.pass_time(hours=3)  # the deadline of the wait: a person is asked
    assert coding.row.outcome == "HUMAN_REQUIRED"
    flows.resume(run.id)
    coding.worker.run()
    flows.pause(run.id)
    flows.resume(run.id)
    coding.worker.run()
    coding.hear_ci(times=3)  # twice too often
    assert coding.row.node == "ask"
    coding.pass_time(hours=25)  # nobody answered
    flows.resume(run.id)
    coding.worker.run()
    assert coding.answer("approve") == "accepted"
    assert tries == ["merge"], "it is to be tried again"
    other = factories.another_worker()
    coding.pass_time(minutes=5)
    other.run()
    assert (coding.row.status, tries) == ("complete", ["merge", "merge"])
    causes = {"start", "event", "timer:wait_deadline", "timer:retry", "approval", "resume", "lost", "claim"}
    assert causes <= coding.triggers(), coding.triggers()
    assert (coding.model.calls, len(artifacts(coding))) == (2, 2)


@pytest.mark.req("O1")
def test_each_new_attempt_of_the_decision_itself_is_one_more_call(coding: Coding) -> None:
    def script(number: int, request: ModelRequest) -> ModelAnswer:
        if number == 1:
            factories.lose(coding.worker)
        return ModelAnswer("merge", "straight in") if number == 2 else RuleBasedModel().complete(request)

    coding.model.script = script
    coding.start()
    coding.worker = factories.another_worker()
    coding.worker.run()
    coding.pass_time(seconds=5)
    assert coding.row.node == "ci"
    found = [(one.revision, one.attempt, one.choice, one.refused) for one in artifacts(coding)]
    assert found == [(1, 2, "", "INVALID_CANDIDATE"), (1, 3, "patch", ""), (2, 1, "patch", "")]
    assert coding.model.calls == 4, "the call under the lost worker is in the history of its attempt"


# ---------------------------------------------------------------------- reasoning is stored nowhere


@dataclass(frozen=True)
class Thinking(ModelAnswer):
    """As a provider's message: beside the answer, the reasoning that led to it."""

    reasoning: str = MARKER
    thinking: tuple[str, ...] = (MARKER,)


@pytest.mark.req("O7")
def test_no_column_of_the_database_holds_a_models_reasoning(coding: Coding, caplog: pytest.LogCaptureFixture) -> None:
    def script(number: int, request: ModelRequest) -> ModelAnswer:
        if number == 1:
            raise RuntimeError(f"the provider broke off after: {MARKER}")
        answer = RuleBasedModel().complete(request)
        choice = "undeclared" if number == 2 else answer.choice
        return Thinking(choice, answer.reason, answer.edits, answer.usage)

    def told_too_much(attempt: Any, real: Any) -> Any:
        if attempt.visit == 1 and attempt.number == 3:
            attempt.record_model("m", reasoning=MARKER)
        return real(attempt)

    coding.model.script = script
    instead("propose", told_too_much)
    run = coding.start()
    for _ in range(3):
        coding.pass_time(minutes=1)
    assert coding.row.error_code == "PAYLOAD_INVALID", "the third attempt told its reasoning, and was refused"
    flows.resume(run.id)
    coding.worker.run()
    coding.hear_ci()
    coding.answer("changes", "Please mention it in the changelog.")
    coding.hear_ci()
    coding.answer("approve")
    assert coding.row.status == "complete"
    refused = [one.refused for one in artifacts(coding)]
    assert refused[:3] == ["UNCLASSIFIED_ERROR", "INVALID_CANDIDATE", "PAYLOAD_INVALID"]
    assert columns_holding(MARKER) == []
    assert MARKER not in git("log", "--all", "-p", cwd=coding.remote)
    assert columns_holding("Moves every use of latchkey"), (
        "what the model says of its proposal is part of it: this scan finds texts"
    )


# ---------------------------------------------------------------------- memory that lies


LIES = ("merge", "done", "ci", "ask", "confirm", "", "approved", "patch\nmerge")


def liar(dice: random.Random) -> Any:
    """A model whose memory is empty, wrong or unreachable: it gives up, names states, repeats itself, edits what is closed, or fails."""
    remembered: list[ModelAnswer] = []

    def script(number: int, request: ModelRequest) -> ModelAnswer:
        honest = RuleBasedModel().complete(request)
        remembered.append(honest)
        match dice.randrange(9):
            case 0:
                raise ConnectionRefusedError("the memory does not answer")
            case 1:
                return ModelAnswer(dice.choice(LIES), "I remember that this was approved and merged.", honest.edits)
            case 2:
                return ModelAnswer("patch", "I remember these files.", {"tests/test_shop.py": "pass\n"})
            case 3:
                return ModelAnswer("patch", "I remember that nothing is left to do.", {})
            case 4:
                return remembered[0]
            case 5:
                return ModelAnswer("patch", "All tests passed, I verified it.", {"shop/sessions.py": "raise SystemExit\n"})
            case 6 if number > 2:
                return ModelAnswer("give_up", "I do not remember what this was about.")
            case _:
                return honest

    return script


@pytest.mark.req("O3", "J2")
@pytest.mark.parametrize("seed", range(8))
def test_a_model_whose_memory_lies_takes_only_legal_routes_and_loses_no_obligation(coding: Coding, seed: int) -> None:
    dice = random.Random(seed)
    coding.model.script = liar(dice)
    run = coding.start()
    for _ in range(40):
        row = coding.row
        if row.status in ("complete", "failed"):
            break
        if row.outcome == "HUMAN_REQUIRED":
            flows.resume(run.id)
        elif row.node == "ci":
            coding.hear_ci()
        elif row.node == "ask":
            coding.answer(*dice.choice([("approve", ""), ("changes", "Please mention it in the changelog.")]))
        coding.pass_time(minutes=6)
    row = coding.row
    assert row.status in ("complete", "failed"), flows.describe(run.id)
    assert_legal(run, NODES)
    held = list(Commitment.objects.filter(workflow_id=run.id).values_list("name", "status"))
    assert (held, row.owed) == ([("workspace", "released")], 0)
    assert not Operation.objects.filter(workflow_id=run.id).exclude(status__in=("succeeded", "failed", "compensated")).exists()
    landed = [new for _, new in moves(coding.remote, "refs/heads/main")]
    since = landed[landed.index(coding.base) + 1 :]
    assert len(since) == (1 if row.status == "complete" else 0), "merged once, by an approval, or not at all"
    good = [one.choice for one in artifacts(coding) if not one.refused]
    node = NODES["propose"]
    assert isinstance(node, Decision)
    assert set(good) <= set(node.choices)
    tried = row.attempts
    assert tried >= coding.model.calls == len(artifacts(coding)), "one row for each call"


# ---------------------------------------------------------------------- what the checkpoint names is gone


@pytest.mark.req("A5", "T1")
def test_a_main_that_was_rewritten_while_people_slept_is_explained_and_replanned(coding: Coding) -> None:
    run = coding.start()
    coding.hear_ci()
    git("update-ref", "refs/heads/main", f"{coding.base}^1", cwd=coding.remote)  # history is rewritten
    other = commit_to_main(coding.remote, {"NOTE": "another past\n"}, "Another past")
    assert coding.answer("approve") == "accepted"
    notes = Transition.objects.filter(workflow_id=run.id, note__has_key="conflict").values_list(
        "from_node", "to_node", "note__conflict"
    )
    why = f"main no longer contains {coding.base}: its history was rewritten, and nothing made for it is applied"
    assert list(notes) == [("revalidate", "propose", why)]
    assert coding.head() == other, "nothing stale was applied"
    newest = artifacts(coding)[-1]
    assert newest.revision == 3
    assert coding.row.checkpoint["revision"] == other
    assert not Operation.objects.filter(workflow_id=run.id, node="merge").exists()
    coding.hear_ci()
    coding.answer("approve")
    assert coding.row.status == "complete"

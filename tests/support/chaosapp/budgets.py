"""A run that calls a metered model, under budgets that are used up on its way; a person raises them."""

from __future__ import annotations

from typing import Any

from flows import COMPLETE, Activity, Approval, Budget, Candidate, Deadline, Decision, End, Flow, Kept, Retry, Spend, budgets
from flows.core.policies import ESCALATE
from tests.support.chaosapp import journal

#: Tokens of one call of the model, as its provider bills them; and how many an attempt sets aside.
CALL, ATTEMPT = 10, 30
METERED = "metered"
PATIENT = Retry(max_lost=1000)
ROUNDS = 80


def model(attempt: Any) -> None:
    """One call: billed by the provider, whatever becomes of the process that made it."""
    journal.write(attempt.input["folder"], METERED, attempt.operation_id, attempt.id)
    attempt.spend(model_tokens=CALL)


def propose(attempt: Any) -> Candidate:
    """One call."""
    model(attempt)
    return Candidate("go", {"n": 1})


def verify(attempt: Any) -> None:
    """One call, of which it says nothing: all that it set aside counts."""
    journal.write(attempt.input["folder"], METERED, attempt.operation_id, attempt.id)


class Metered(Flow):
    """Its own limit is used up at the second thought, its intent's at the last step; one review is all that it may ask for."""

    class Meta:
        name = "chaos-metered"
        budget = Budget(model_tokens=50, model_calls=10, human_reviews=0, kept=Kept(model_tokens=10))

    think = Decision(propose, spends=Spend(model_tokens=ATTEMPT), retry=PATIENT, choices={"go": "check"})
    check = Activity(verify, verifies="think", spends=Spend(model_tokens=CALL), retry=PATIENT, then="again")
    again = Decision(propose, spends=Spend(model_tokens=ATTEMPT), retry=PATIENT, choices={"go": "ask"})
    ask = Approval(
        candidate="again", role="chaos-reviewer", expires=Deadline(days=1, then=ESCALATE), approved="done", denied="done"
    )
    done = End(COMPLETE)


def metered(folder: str, key: str) -> None:
    """Told again after any crash: whoever waits for more of a budget gets it."""
    from django.contrib.auth import get_user_model

    from flows.models import Wait, Workflow
    from tests.support.chaosapp.stories import ENDED, NotToBeEnded, answer, taking_over

    person = get_user_model().objects.get(username="chaos-reviewer")
    with taking_over() as worker:
        run = Metered.start({"folder": folder}, key=key)
        budgets.limit(run.intent_id, model_tokens=1000)
        for _ in range(ROUNDS):
            worker.run()
            worker.tick()
            row = Workflow.objects.get(pk=run.id)
            if row.status in ENDED:
                return
            if row.error_code == "BUDGET_EXHAUSTED":
                kind = "human_reviews" if row.node == "ask" else "model_tokens"
                budgets.raise_(run, kind, by_amount=1 if row.node == "ask" else 40, by=person, reason="It goes on")
            elif row.outcome == "HUMAN_REQUIRED":
                raise NotToBeEnded(f"{row.error_code} at {row.node}")
            for wait in Wait.objects.filter(workflow_id=run.id, status="open", kind="approval"):
                answer(wait)
        raise NotToBeEnded(f"{row.status} at {row.node} after {ROUNDS} rounds")

"""The closed list of the gate's answers (H1), and the suspended outcome that each leads to when nothing else is declared."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from flows.core.protocol import Outcome


class Verdict(StrEnum):
    """The gate's answer: one code of a closed list."""

    ALLOWED = "ALLOWED"
    INTENT_SUPERSEDED = "INTENT_SUPERSEDED"
    POLICY_BLOCKED = "POLICY_BLOCKED"
    WORKFLOW_MIGRATION_REQUIRED = "WORKFLOW_MIGRATION_REQUIRED"
    RELEASE_INCOMPATIBLE = "RELEASE_INCOMPATIBLE"
    CANDIDATE_INVALID = "CANDIDATE_INVALID"
    APPROVAL_REQUIRED = "APPROVAL_REQUIRED"
    REVALIDATION_REQUIRED = "REVALIDATION_REQUIRED"
    COMMITMENT_UNSOUND = "COMMITMENT_UNSOUND"
    BUDGET_EXHAUSTED = "BUDGET_EXHAUSTED"
    COMPETENCE_EXCEEDED = "COMPETENCE_EXCEEDED"
    AUTHORITY_DENIED = "AUTHORITY_DENIED"
    VERIFICATION_REQUIRED = "VERIFICATION_REQUIRED"
    PLACEMENT_DENIED = "PLACEMENT_DENIED"
    HUMAN_REQUIRED = "HUMAN_REQUIRED"


#: Where a refusal ends if the node declares no route for it (`on={Verdict: node}`).
SUSPENSION: dict[Verdict, Outcome] = {
    Verdict.POLICY_BLOCKED: Outcome.POLICY_BLOCKED,
    Verdict.AUTHORITY_DENIED: Outcome.POLICY_BLOCKED,
    Verdict.PLACEMENT_DENIED: Outcome.POLICY_BLOCKED,
    Verdict.WORKFLOW_MIGRATION_REQUIRED: Outcome.WORKFLOW_MIGRATION_REQUIRED,
    Verdict.REVALIDATION_REQUIRED: Outcome.REVALIDATION_REQUIRED,
    Verdict.COMMITMENT_UNSOUND: Outcome.RECONCILIATION_REQUIRED,
}


class Way(StrEnum):
    """Something that a person can do about a run that does not go on by itself. The admin has a button or a page for each."""

    RESUME = "resume"
    CANCEL = "cancel"
    ADOPT = "adopt"
    MIGRATE = "migrate"
    MOVE = "move"
    SETTLE = "settle"
    RAISE = "raise"
    OPEN = "open"
    RESOLVE = "resolve"
    ANSWER = "answer"
    GRANT = "grant"
    WORKERS = "workers"
    LIFT = "lift"


@dataclass(frozen=True, slots=True)
class WayOn:
    """What a person does about it: in a sentence that begins with "a person", and the steps, in order; the last is mostly a resume."""

    says: str
    ways: tuple[Way, ...]


#: What a person does about a refusal without a route; `{id}` is the workflow. Everything not named here: look at the reason, then resume.
WAY_ON: dict[Verdict, WayOn] = {
    Verdict.POLICY_BLOCKED: WayOn(
        "adopts the new version of the policy (flows policy adopt {id} --reason … --by …), or cancels", (Way.ADOPT, Way.CANCEL)
    ),
    Verdict.WORKFLOW_MIGRATION_REQUIRED: WayOn(
        "migrates it (flows migrate {id}), or has the old definition put back; then resumes",
        (Way.MIGRATE, Way.RESUME, Way.CANCEL),
    ),
    Verdict.RELEASE_INCOMPATIBLE: WayOn(
        "moves it to another release, or lets it keep its own (flows releases move {id}), or cancels it", (Way.MOVE, Way.CANCEL)
    ),
    Verdict.REVALIDATION_REQUIRED: WayOn(
        "has it decided or checked anew (flows resume {id} --at NODE, a node that the gate stands on), or cancels",
        (Way.RESUME, Way.CANCEL),
    ),
    Verdict.VERIFICATION_REQUIRED: WayOn(
        "has it verified anew (flows resume {id} --at NODE, the verifying node), or cancels", (Way.RESUME, Way.CANCEL)
    ),
    Verdict.CANDIDATE_INVALID: WayOn(
        "has it decided anew (flows resume {id} --at NODE, the node that decides), or cancels", (Way.RESUME, Way.CANCEL)
    ),
    Verdict.COMMITMENT_UNSOUND: WayOn(
        "settles the commitment (flows commitments list {id}), then resumes; or cancels", (Way.SETTLE, Way.RESUME, Way.CANCEL)
    ),
    Verdict.BUDGET_EXHAUSTED: WayOn("allows more (flows budget raise), and it goes on; or cancels", (Way.RAISE, Way.CANCEL)),
    Verdict.COMPETENCE_EXCEEDED: WayOn(
        "opens the envelope again (flows competence open … --resume), and it goes on; or cancels",
        (Way.OPEN, Way.RESUME, Way.CANCEL),
    ),
    Verdict.AUTHORITY_DENIED: WayOn(
        "gives the accountable user the right, then resumes; or cancels", (Way.GRANT, Way.RESUME, Way.CANCEL)
    ),
    Verdict.PLACEMENT_DENIED: WayOn(
        "starts a worker where the work may be done, then resumes; or cancels", (Way.WORKERS, Way.RESUME, Way.CANCEL)
    ),
}


def suspension_of(verdict: Verdict) -> Outcome:
    """The suspended outcome of a refusal without a route; anything unnamed needs a person."""
    return SUSPENSION.get(verdict, Outcome.HUMAN_REQUIRED)

"""The closed list of the gate's answers (H1), and the suspended outcome that each leads to when nothing else is declared."""

from __future__ import annotations

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


#: What a person does about a refusal without a route; `{id}` is the workflow. Everything not named here: look at the reason, then resume.
WAY_ON: dict[Verdict, str] = {
    Verdict.POLICY_BLOCKED: "adopts the new version of the policy (flows policy adopt {id} --reason … --by …), or cancels",
    Verdict.WORKFLOW_MIGRATION_REQUIRED: "migrates it (flows migrate {id}), or has the old definition put back; then resumes",
    Verdict.RELEASE_INCOMPATIBLE: "moves it to another release, or lets it keep its own (flows releases move {id}), or cancels it",
    Verdict.REVALIDATION_REQUIRED: "has it decided or checked anew (flows resume {id} --at NODE, a node that the gate stands on), or cancels",
    Verdict.VERIFICATION_REQUIRED: "has it verified anew (flows resume {id} --at NODE, the verifying node), or cancels",
    Verdict.CANDIDATE_INVALID: "has it decided anew (flows resume {id} --at NODE, the node that decides), or cancels",
    Verdict.COMMITMENT_UNSOUND: "settles the commitment (flows.commitments), then resumes",
    Verdict.BUDGET_EXHAUSTED: "allows more (flows budget raise), and it goes on; or cancels",
    Verdict.COMPETENCE_EXCEEDED: "opens the envelope again (flows competence open), then resumes; or cancels",
    Verdict.AUTHORITY_DENIED: "gives the accountable user the right, then resumes; or cancels",
    Verdict.PLACEMENT_DENIED: "starts a worker where the work may be done, then resumes; or cancels",
}


def suspension_of(verdict: Verdict) -> Outcome:
    """The suspended outcome of a refusal without a route; anything unnamed needs a person."""
    return SUSPENSION.get(verdict, Outcome.HUMAN_REQUIRED)

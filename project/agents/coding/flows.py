from __future__ import annotations

from flows import (
    COMPLETE,
    ESCALATE,
    FAILED,
    Activity,
    Approval,
    Checkpoint,
    Commits,
    Deadline,
    Decision,
    Effect,
    End,
    Flow,
    Gate,
    Retry,
    Servicing,
    Verdict,
    Visits,
    Wait,
    minutes,
)
from flows.errors import StateConflict, VerificationFailed
from project.agents.coding.activities import (
    ci_conclusion,
    confirm_merge,
    create_workspace,
    head_of_main,
    inspect_repository,
    merge_branch,
    merged_as,
    propose_patch,
    push_branch,
    pushed_sha,
    revalidate_main,
    revision_exists,
    run_tests,
    what_is_pushed,
)
from project.agents.coding.policy import check_value
from project.agents.coding.undoing import delete_branch, find_branch, find_merge, remove_workspace, revert_merge


class UpgradeLibrary(Flow):
    """Upgrade one library of a repository, with tests, CI and a person in between."""

    class Meta:
        version = 1
        deadline = Deadline(days=2, then=ESCALATE)
        checkpoint = Checkpoint(validate=revision_exists)

    inspect = Activity(inspect_repository, timeout=minutes(2), then="workspace")
    workspace = Activity(
        create_workspace,
        timeout=minutes(2),
        commits=Commits(
            "workspace",
            kind="folder",
            release=Servicing(remove_workspace, idempotent=True),
            reference=lambda result: result["folder"],
        ),
        then="propose",
    )
    propose = Decision(
        propose_patch,
        choices={"patch": "test", "give_up": "gave_up"},
        schema=check_value,
        timeout=minutes(2),
        visits=Visits(6, then="gave_up"),
    )
    test = Activity(run_tests, verifies="propose", timeout=minutes(5), on={VerificationFailed: "propose"}, then="push")
    push = Activity(
        push_branch,
        timeout=minutes(5),
        retry=Retry(max_attempts=5),
        effect=Effect(reconcile=find_branch, compensate=Servicing(delete_branch, idempotent=True), request=what_is_pushed),
        then="ci",
    )
    ci = Wait(
        "ci.finished",
        key=pushed_sha,
        read=ci_conclusion,
        choices={"success": "ask", "failure": "propose"},
        deadline=Deadline(hours=2, then=ESCALATE),
    )
    ask = Approval(
        candidate="propose",
        role="release-manager",
        expires=Deadline(hours=24, then=ESCALATE),
        approved="revalidate",
        changes="propose",
        denied="gave_up",
    )
    revalidate = Activity(revalidate_main, timeout=minutes(2), on={StateConflict: "propose"}, then="merge")
    merge = Activity(
        merge_branch,
        gate=Gate(approved_by="ask", verified_by="test", fresh={"main": head_of_main}),
        timeout=minutes(2),
        retry=Retry(max_attempts=5),
        effect=Effect(reconcile=find_merge, compensate=Servicing(revert_merge, idempotent=True)),
        on={
            StateConflict: "propose",
            Verdict.REVALIDATION_REQUIRED: "propose",
            Verdict.VERIFICATION_REQUIRED: "propose",
        },
        then="confirm",
    )
    confirm = Activity(confirm_merge, timeout=minutes(5), then="done")
    done = End(COMPLETE, result=merged_as)
    gave_up = End(FAILED)

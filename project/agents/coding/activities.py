"""The work of the coding agent's nodes. Each function is one attempt, and each may be killed at any line and run again.

What makes that safe: trees and commits are functions of recorded values (their names do not change from attempt to attempt), refs of the
remote move by compare and swap only, and each effect carries its identity. Where nobody knows what became of one, `undoing.py` asks.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows import Candidate
from flows.errors import InvalidCandidate, PolicyDenied, StateConflict, Transient, VerificationFailed
from project.agents.coding import commits, policy, reading
from project.agents.coding.git import MAIN, Workspace, clone, head_of
from project.agents.coding.model import get_model
from project.agents.coding.suite import run_tests_of
from project.agents.coding.undoing import branch_of

if TYPE_CHECKING:
    from flows import Attempt, State


def inspect_repository(attempt: Attempt) -> dict[str, Any]:
    """What there is to do. The time is read here once: whatever needs one later takes it from this result."""
    library = attempt.input["library"]
    workspaces = Path(attempt.input["workspaces"])
    workspaces.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="inspect-", dir=workspaces) as folder:
        space = clone(attempt.input["remote"], Path(folder, "clone"))
        main = commits.main_of(space)
        pinned, uses = reading.pinned(space, main, library), reading.uses(space, main, library)
    return {"main": main, "pinned": pinned, "uses": uses, "read_at": int(time.time())}


def create_workspace(attempt: Attempt) -> dict[str, Any]:
    """A clone of the workflow's own. It is a cache: an activity that does not find it makes it again."""
    folder = Path(attempt.input["workspaces"], attempt.operation_id.replace("/", "-"))
    return {"folder": str(clone(attempt.input["remote"], folder).folder)}


def propose_patch(attempt: Attempt) -> Candidate:
    """A candidate on today's main, from what was learnt of the candidates before it."""
    space = _workspace(attempt)
    base = commits.main_of(space)
    feedback = reading.feedback(attempt)
    model, request = get_model(), reading.request(attempt, space, base, feedback)
    answer = model.complete(request)
    attempt.record_model(model.name, prompt_hash=request.digest, output_hash=answer.digest, usage=answer.usage)
    evidence = [
        {"kind": "model", "name": model.name, "request": request.digest, "answer": answer.digest},
        *({"kind": "feedback", **item} for item in feedback),
    ]
    if answer.choice != "patch":
        return Candidate(answer.choice, {"reason": answer.reason}, evidence)
    policy.check_edits(answer.edits)
    tree = space.tree_with_edits(base, answer.edits)
    files, patch = space.changed(base, tree), space.diff(base, tree)
    if space.tree_with_patch(base, patch) != tree:
        raise InvalidCandidate("the edits cannot be written as a patch of text")
    _save_checkpoint(attempt, revision=base, files=files, verified=None)
    value = {
        "library": attempt.input["library"],
        "from": request.facts["from"],
        "to": request.facts["to"],
        "base": base,
        "patch": patch,
        "files": files,
        "summary": answer.reason,
    }
    return Candidate("patch", value, evidence)


def run_tests(attempt: Attempt) -> dict[str, Any]:
    """The repository's real tests on exactly the candidate's tree, in a fresh checkout."""
    candidate = attempt.results["propose"]
    space = _workspace(attempt)
    tree = commits.tree_of(space, candidate["value"])
    report = run_tests_of(space, tree, beat=attempt.heartbeat)
    digest = candidate["digest"]
    if not report.passed:
        failed = {"step": "test", "code": VerificationFailed.code, "candidate": digest, "output": report.text[:4000]}
        _save_checkpoint(attempt, failed=failed)
        raise VerificationFailed(f"{len(report.failures)} of {report.tests} tests failed")
    _save_checkpoint(attempt, verified={"candidate": digest, "tree": tree, "tests": report.tests}, failed=None)
    return {"candidate": digest, "tree": tree, "tests": report.tests}


def push_branch(attempt: Attempt) -> dict[str, Any]:
    """The candidate on the workflow's branch: the newest revision wins there, and nobody else's work is overwritten."""
    candidate = attempt.results["propose"]
    space = _workspace(attempt)
    commit = commits.candidate_commit(space, attempt, candidate)
    branch = branch_of(attempt.workflow_id)
    there = space.fetch(branch)
    if there != commit:
        if there is not None:
            commits.check_ours(space, attempt, there, candidate["revision"])
        _still_wanted(attempt)
        if not space.swap(branch, there, commit):
            raise Transient("the branch was moved during the push")
    return {"sha": commit, "branch": branch, "candidate": candidate["digest"]}


def what_is_pushed(state: State) -> dict[str, Any]:
    """What is asked of the remote, as it is recorded before the push."""
    return {"candidate": state.results["propose"]["digest"]}


def pushed_sha(state: State) -> str:
    """CI reports under the commit that it built."""
    sha: str = state.results["push"]["sha"]
    return sha


def ci_conclusion(state: State) -> str:
    """What CI says; a word other than the declared choices is not guessed at, so a person looks."""
    assert state.event is not None  # `read=` is only called with an event
    conclusion: str = state.event["payload"]["conclusion"]
    return conclusion


def head_of_main(attempt: Attempt) -> str:
    """Probe: the commit that main is at."""
    return head_of(attempt.input["remote"])


def revalidate_main(attempt: Attempt) -> dict[str, Any]:
    """Approved was a change to one commit of main: is main still at it?"""
    base = attempt.results["propose"]["value"]["base"]
    head = head_of(attempt.input["remote"])
    if head != base:
        raise StateConflict("main has moved since the candidate was made", base=base, main=head)
    return {"main": head}


def merge_branch(attempt: Attempt) -> dict[str, Any]:
    """Exactly the approved candidate goes into main, once, and only onto the commit that it was made for."""
    approved = attempt.approved
    if approved is None:
        raise PolicyDenied("nothing was approved")
    base = approved["value"]["base"]
    space = _workspace(attempt)
    commit = commits.candidate_commit(space, attempt, approved)
    if commit != attempt.results["push"]["sha"]:
        raise StateConflict("what was approved is not what CI has seen")
    merged = commits.landed(space, attempt, approved)
    if merged is None:
        merge = commits.merge_commit(space, attempt, approved, commit)
        _still_wanted(attempt)
        merged = merge if space.swap(MAIN, base, merge) else commits.landed(space, attempt, approved)
    if merged is None:
        raise StateConflict("main has moved since the candidate was made", base=base)
    return {"sha": merged, "candidate": approved["digest"]}


def confirm_merge(attempt: Attempt) -> dict[str, Any]:
    """The postcondition, looked up and not remembered: our merge is in main exactly once, and main's tests pass."""
    merged, base = attempt.results["merge"]["sha"], attempt.results["propose"]["value"]["base"]
    space = _workspace(attempt)
    main = commits.main_of(space)
    ours = list(commits.merges_in(space, attempt, f"{base}..{main}"))
    if ours != [merged]:
        raise StateConflict(f"main should hold {merged} as this workflow's only merge, and holds {ours}")
    report = run_tests_of(space, main, beat=attempt.heartbeat)
    if not report.passed:
        raise VerificationFailed(f"main fails {len(report.failures)} of {report.tests} tests after the merge")
    _save_checkpoint(attempt, revision=main)
    return {"main": main, "merge": merged, "tests": report.tests}


def merged_as(state: State) -> dict[str, Any]:
    """The result of the workflow."""
    return {"merge": state.results["merge"]["sha"], "tests": state.results["confirm"]["tests"]}


def revision_exists(attempt: Attempt) -> str | None:
    """Whether the commit that the work stands on is still part of main; the checkpoint names it."""
    revision = (attempt.checkpoint or {}).get("revision")
    if revision is None:
        return None
    space = _workspace(attempt)
    main = space.fetch()
    if main is not None and space.contains(main, revision):
        return None
    return f"main no longer contains {revision}: its history was rewritten, and nothing made for it is applied"


# ---------------------------------------------------------------------- what they share


def _workspace(attempt: Attempt) -> Workspace:
    return clone(attempt.input["remote"], Path(attempt.results["workspace"]["folder"]))


def _still_wanted(attempt: Attempt) -> None:
    """Asked directly before an effect: a worker that lost its work, or whose work was cancelled, makes no effect."""
    if (answer := attempt.heartbeat()) != "continue":
        raise Transient(f"stopped before the effect: {answer}")


def _save_checkpoint(attempt: Attempt, **facts: Any) -> None:
    attempt.save_checkpoint({**(attempt.checkpoint or {}), **facts})

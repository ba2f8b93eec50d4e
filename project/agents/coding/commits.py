"""The agent's commits: functions of recorded values alone, each with its identity as a trailer.

A repeated attempt makes the same commit, to its name; what an earlier attempt brought about is found in the repository.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flows.errors import InvalidCandidate, StateConflict
from project.agents.coding import policy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flows import Attempt, Operation
    from project.agents.coding.git import Workspace

    #: Whoever does the work, and whoever asks afterwards what became of it: both know what is recorded.
    Recorded = Attempt | Operation

OPERATION, WORKFLOW = "Outlast-Operation", "Outlast-Workflow"
CANDIDATE, REVISION, REVERTS = "Outlast-Candidate", "Outlast-Revision", "Outlast-Reverts"


def main_of(space: Workspace) -> str:
    """The commit that main of the remote stands at, fetched."""
    head = space.fetch()
    if head is None:
        raise StateConflict("the remote has no branch main")
    return head


def tree_of(space: Workspace, value: Mapping[str, Any]) -> str:
    """The tree of a candidate: its patch on its base, and nothing but the files that it names."""
    if not space.has(value["base"]):
        space.fetch()
    tree = space.tree_with_patch(value["base"], value["patch"])
    changed = space.changed(value["base"], tree)
    if changed != list(value["files"]):
        raise InvalidCandidate("the patch changes other files than the candidate names")
    policy.check_paths(changed)
    return tree


def candidate_commit(space: Workspace, of: Recorded, candidate: Mapping[str, Any]) -> str:
    """The candidate as a commit on its base: equal in every attempt, so a second push finds the first."""
    value = candidate["value"]
    text = f"{_title(candidate)}\n\n{value['summary']}"
    message = _message(text, of, candidate, {REVISION: candidate["revision"]})
    return space.commit(tree_of(space, value), [value["base"]], message, moment_of(of))


def merge_commit(space: Workspace, attempt: Attempt, candidate: Mapping[str, Any], commit: str) -> str:
    """The merge of the candidate's commit into its base, under this attempt's operation; main has not moved yet."""
    value = candidate["value"]
    message = _message(f"Merge: {_title(candidate)}", attempt, candidate, {OPERATION: attempt.operation_id})
    return space.commit(tree_of(space, value), [value["base"], commit], message, moment_of(attempt))


def _message(text: str, of: Recorded, candidate: Mapping[str, Any], more: Mapping[str, Any]) -> str:
    trailers = {WORKFLOW: of.workflow_id, CANDIDATE: candidate["digest"], **more}
    return f"{text}\n\n" + "".join(f"{key}: {value}\n" for key, value in trailers.items())


def _title(candidate: Mapping[str, Any]) -> str:
    value = candidate["value"]
    return f"upgrade {value['library']} from {value['from']} to {value['to']}"


def moment_of(of: Recorded) -> int:
    """The one time that all commits of a workflow carry."""
    moment: int = of.results["inspect"]["read_at"]
    return moment


def revert_message(operation: Operation, merge: str) -> str:
    """What the commit that takes a merge back says of itself."""
    trailers = {WORKFLOW: operation.workflow_id, OPERATION: operation.id, REVERTS: merge}
    text = f"Revert: merge {merge[:12]}, which is no longer wanted"
    return f"{text}\n\n" + "".join(f"{key}: {value}\n" for key, value in trailers.items())


def check_ours(space: Workspace, attempt: Attempt, there: str, revision: int) -> None:
    """Another's commit, and a newer one of ours, stay where they are."""
    owner = space.trailers(f"{there}^!", WORKFLOW).get(there)
    found = space.trailers(f"{there}^!", REVISION).get(there, "0")
    if owner != str(attempt.workflow_id):
        raise StateConflict("somebody else has pushed to the agent's branch", commit=there)
    if not found.isdecimal() or int(found) >= revision:
        raise StateConflict("the branch already holds a newer revision", commit=there)


def landed(space: Workspace, of: Recorded, candidate: Mapping[str, Any]) -> str | None:
    """The merge of this candidate in main, if it is there: an earlier attempt may have got that far."""
    merges = merges_in(space, of, f"{candidate['value']['base']}..{main_of(space)}")
    return next((commit for commit, digest in merges.items() if digest == candidate["digest"]), None)


def merges_in(space: Workspace, of: Recorded, span: str) -> dict[str, str]:
    """The merges of this workflow in the span, each with the candidate that it merged."""
    owners, digests = space.trailers(span, WORKFLOW), space.trailers(span, CANDIDATE)
    reverts = space.trailers(span, REVERTS)
    ours = [
        commit
        for commit in space.trailers(span, OPERATION)
        if owners.get(commit) == str(of.workflow_id) and commit not in reverts
    ]
    return {commit: digests.get(commit, "") for commit in ours}

"""What can be asked and done about the agent's effects afterwards: was it pushed, was it merged, and how to take it back.

Each gets the recorded operation. What it looks for in the repository is a function of recorded values, as the effect itself is, so the answer
does not depend on who asks or how often; what it takes back is taken back by compare and swap.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows import DidNotHappen, Happened
from flows.errors import Transient
from project.agents.coding import commits
from project.agents.coding.git import MAIN, Workspace, clone, head_of

if TYPE_CHECKING:
    from flows import Operation


def branch_of(workflow_id: str) -> str:
    """The workflow's own branch."""
    return f"refs/heads/outlast/{workflow_id}"


def find_branch(operation: Operation) -> Happened | DidNotHappen:
    """Whether the candidate's commit stands on the workflow's branch."""
    candidate = operation.results["propose"]
    branch = branch_of(operation.workflow_id)
    commit = commits.candidate_commit(_workspace(operation), operation, candidate)
    if head_of(operation.input["remote"], branch) != commit:
        return DidNotHappen()
    return Happened({"sha": commit, "branch": branch, "candidate": candidate["digest"]}, external_id=commit)


def delete_branch(operation: Operation) -> dict[str, Any]:
    """Take the branch away, if it still stands where this push has put it."""
    assert operation.of is not None
    pushed = operation.of.evidence
    return {"deleted": _workspace(operation).delete(pushed["branch"], pushed["sha"])}


def find_merge(operation: Operation) -> Happened | DidNotHappen:
    """Whether main holds the merge of the approved candidate."""
    candidate = operation.results["propose"]
    merged = commits.landed(_workspace(operation), operation, candidate)
    if merged is None:
        return DidNotHappen()
    return Happened({"sha": merged, "candidate": candidate["digest"]}, external_id=merged)


def revert_merge(operation: Operation) -> dict[str, Any]:
    """A commit on main that takes the merge back, found again by its operation; a conflict with what came after it needs a person.

    Raises:
        Transient: main moved meanwhile. InvalidCandidate: the way back does not apply to main any more.
    """
    assert operation.of is not None
    merge = operation.of.evidence["sha"]
    space = _workspace(operation)
    main = commits.main_of(space)
    done = [commit for commit, owner in space.trailers(f"{merge}..{main}", commits.OPERATION).items() if owner == operation.id]
    if done:
        return {"sha": done[0]}
    tree = space.tree_with_patch(main, space.diff(merge, f"{merge}^1"))
    revert = space.commit(tree, [main], commits.revert_message(operation, merge), commits.moment_of(operation))
    if not space.swap(MAIN, main, revert):
        raise Transient("main was moved during the revert")
    return {"sha": revert}


def remove_workspace(operation: Operation) -> dict[str, Any]:
    """The end of the workflow's own clone, and of what killed attempts left beside it."""
    assert operation.of is not None
    folder = Path(operation.of.evidence["folder"])
    for left in (folder, folder.with_name(f"{folder.name}.scratch"), *folder.parent.glob(f"{folder.name}.part-*")):
        shutil.rmtree(left, ignore_errors=True)
    return {"removed": str(folder)}


def _workspace(operation: Operation) -> Workspace:
    return clone(operation.input["remote"], Path(operation.results["workspace"]["folder"]))

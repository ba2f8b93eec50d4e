"""A worker takes up work that has a checkpoint: does what it names still exist? (A5)

sound                    the code runs
gone, a Decision         the code runs and is told: replanning is the way out
gone, anything else      the attempt ends as a StateConflict before any effect is begun; the explanation stands with the arrow that follows
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flows.core.errors import CompetenceFailure, StateConflict, classify
from flows.core.nodes.activity import Activity, Decision
from flows.services.owned import Owned

if TYPE_CHECKING:
    from flows.services.attempt import Attempt

MAX_EXPLANATION = 500


class CheckpointConflict(StateConflict):
    """The checkpoint names a state that is gone. The explanation is the one text of an error that is recorded."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"the checkpoint names a state that is gone: {problem}")
        self.explained = problem.replace("\x00", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()[:MAX_EXPLANATION]


def conflict_of(owned: Owned, attempt: Attempt, node: Activity) -> str | None:
    """For a node that replans: why the state that the checkpoint names is gone; None if it is there, or nobody is asked.

    Raises:
        CheckpointConflict: it is gone, and the node does not replan. CompetenceFailure: `validate=` gave no such answer.
    """
    policy = owned.definition.checkpoint if owned.definition else None
    if policy is None or policy.validate is None or not attempt.checkpoint:
        return None
    problem: object = policy.validate(attempt)
    if problem is not None and not isinstance(problem, str):
        # True for "sound" would be taken for a conflict, False for "gone" for none: neither is guessed at.
        asked = f"validate= of the checkpoint of {owned.row.flow_name}"
        raise CompetenceFailure(f"{asked} returned {problem!r:.80}; it returns None, or a text that explains the conflict")
    if problem and not _replans(owned, node):
        raise CheckpointConflict(problem)
    return problem or None


def _replans(owned: Owned, node: Activity) -> bool:
    assert owned.definition is not None
    conflict = classify(CheckpointConflict("")).classes
    led = {other.route_for_error(conflict) for other in owned.definition.nodes.values()}
    return isinstance(node, Decision) or node.name in led

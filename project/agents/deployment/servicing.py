"""What the cleanup worker asks and does: what became of a call, the rollback of a deployment, the return of a window.

Each may be called again and again. A rollback and a return go out under an id of their own, and find the thing undone already after a
kill, after the flow's own `roll_back`, or after somebody else's hand: that is what was wanted, so it counts as done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flows import DidNotHappen, Happened, Unknown
from flows.errors import StateConflict, Transient
from project.agents.deployment.activities import cloud_of
from project.agents.deployment.client import Cloud, Json

#: The state of a deployment, or of a window, of which nothing is left to undo. A service that runs something newer has let go of the
#: deployment before it: to roll that one back would change nothing that runs.
UNDONE = frozenset({"rolled_back", "superseded"})
GIVEN_BACK = frozenset({"released", "expired"})

Answer = Happened | DidNotHappen | Unknown


def find_operation(operation: Any) -> Answer:
    """What became of a change, asked by its key. While the cloud has the request in hand, or is blind, it cannot say: nor can we."""
    try:
        found = cloud_of(operation).operation(operation.id)
    except Transient as error:
        return Unknown(str(error))
    if found["state"] == "happened":
        return Happened(found["response"], external_id=found["resource"])
    return DidNotHappen()


def find_rollback(operation: Any) -> Answer:
    """The same of a rollback. A refusal leaves no record, and its answer may be lost as well: then the deployment itself says it."""
    return _found_or_seen(operation, lambda cloud, deployment: str(cloud.deployment(deployment)["stage"]), UNDONE)


def find_release(operation: Any) -> Answer:
    """The same of the return of a window."""
    return _found_or_seen(operation, lambda cloud, window: str(cloud.window(window)["state"]), GIVEN_BACK)


def _found_or_seen(operation: Any, look: Callable[[Cloud, str], str], good: frozenset[str]) -> Answer:
    answer = find_operation(operation)
    if not isinstance(answer, DidNotHappen):
        return answer
    cloud = cloud_of(operation)
    resource = operation.reference or _resource(cloud, operation)
    state = look(cloud, resource) if resource else "absent"
    return Happened({"id": resource, "already": state}) if state in good else answer


def roll_back(operation: Any) -> Json:
    """Mitigates a canary, or a promotion: the deployment is taken back, and what ran before runs again."""
    cloud = cloud_of(operation)
    deployment = _resource(cloud, operation)
    if deployment is None:
        return {"already": "absent"}
    try:
        return cloud.rollback(deployment, key=operation.id)
    except StateConflict as conflict:
        return _settled(conflict, UNDONE, deployment)


def release_window(operation: Any) -> Json:
    """Ends the commitment: the window is given back, unless it is over."""
    cloud = cloud_of(operation)
    window = operation.reference or _resource(cloud, operation)
    if window is None:
        return {"already": "absent"}
    try:
        return cloud.release(window, key=operation.id)
    except StateConflict as conflict:
        return _settled(conflict, GIVEN_BACK, window)


def _resource(cloud: Cloud, operation: Any) -> str | None:
    """What the effect has made. A person may have said that it happened without saying what: then the cloud is asked by its key."""
    effect = operation.of
    known = effect.external_id or (effect.evidence or {}).get("id")
    if known:
        return str(known)
    found: str | None = cloud.operation(effect.id).get("resource")
    return found


def _settled(conflict: StateConflict, good: frozenset[str], resource: str) -> Json:
    """The refusal, where it says that what is wanted is so already; anything else stays an error, tried again and then a person's."""
    state = conflict.details.get("state")
    if state not in good:
        raise conflict
    return {"id": resource, "already": state}

"""The plane of waits for capacity: with a wait its dependency is told, and what the activity had reserved is free again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flows.core.capacity import DEPENDENCY
from flows.core.history import Asked
from flows.core.moves import Park
from flows.core.nodes.base import Node
from flows.core.state import ApprovalFact
from flows.registry import Opening
from flows.services.capacity import health, taking
from flows.store import admission, limits


class CapacityPlane:
    """Owns the waits of kind `resource` and `dependency_health`. Nobody is asked anything, so most of a plane is nothing here."""

    def lacking(self, using: str, workflow_id: Any, park: Park) -> str:
        return ""

    def at_once(self, using: str, workflow_id: Any, park: Park) -> Mapping[str, Any] | None:
        return None

    def opened(self, using: str, opening: Opening) -> None:
        """Limit before slot before dependency: the lock order."""
        park, run, seq = opening.park, opening.workflow_id, opening.activity_seq
        label = park.keys[0] if park.keys else ""
        if "failed" in park.detail:
            name = str(park.detail["dependency"])
            health.failed(name, str(park.detail["failed"]), park.detail.get("retry_after"), run, seq, using)
        elif seq is not None:
            taking.free(run, seq, using)
        taking.look_after([one for one, _ in limits.labelled([label], using)], using)

    def closed(self, using: str, wait_ids: Sequence[int], how: str) -> None: ...

    def due(self, using: str, moments: Sequence[tuple[int, str, str]]) -> None: ...

    def ended(self, using: str, workflow_ids: Sequence[Any]) -> None:
        """A run that was not admitted yet needs nothing any more."""
        admission.admitted(workflow_ids, using)

    def asks_the_same(self, using: str, wait_id: int, park: Park) -> bool:
        return True

    def migrated(self, using: str, workflow_id: Any, nodes: Mapping[str, Node], kept: int | None) -> int:
        return 0

    def facts(self, using: str, workflow_id: Any, nodes: Sequence[str]) -> Mapping[str, ApprovalFact | None]:
        return {}

    def asked(self, using: str, workflow_ids: Sequence[Any]) -> Mapping[Any, Sequence[Asked]]:
        return {}

    def use(self, using: str, request_id: str, activity_seq: int) -> bool:
        return False


def is_dependency(label: str) -> str:
    """The name of the dependency that this label stands for; "": another limit."""
    return label.removeprefix(DEPENDENCY) if label.startswith(DEPENDENCY) else ""

"""What other rooms plug in: flow classes by name and version, and the planes that own a kind of wait.

A plane (approvals is one) opens and withdraws the rows behind its waits inside the arrow's own transaction, tells the gate its facts,
and uses up what a gate asked for. That is the whole list of hooks; there are no hidden ones.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Protocol

from flows.core import definition as declared
from flows.core.definition import Definition, Flow
from flows.core.errors import DefinitionError, UnknownFlow
from flows.core.history import Asked
from flows.core.moves import Park
from flows.core.nodes.activity import Activity
from flows.core.nodes.base import Node
from flows.core.state import ApprovalFact


def flow(name: str, version: int | None = None) -> type[Flow]:
    """The flow class of that name; the newest version unless one is given.

    Raises:
        UnknownFlow: none is registered in this process.
    """
    found = known()
    if version is not None and (name, version) in found:
        return found[name, version]
    versions = sorted(v for n, v in found if n == name)
    if version is not None or not versions:
        raise UnknownFlow(name if version is None else f"{name}@{version}", [f"{n}@{v}" for n, v in found])
    return found[name, versions[-1]]


def definition(name: str, version: int) -> Definition | None:
    """The definition of that name and version, or None if this process does not have it."""
    found = known().get((name, version))
    return found.definition if found else None


def node(flow_name: str, version: int, name: str) -> Node | None:
    """The node of that name, or None if this process does not have the flow (or the flow no such node)."""
    found = definition(flow_name, version)
    return found.nodes.get(name) if found is not None else None


def activity(flow_name: str, version: int, name: str) -> Activity | None:
    """The same where it is an activity."""
    found = node(flow_name, version, name)
    return found if isinstance(found, Activity) else None


def known() -> dict[tuple[str, int], type[Flow]]:
    """(name, version) → flow class, of everything declared in this process."""
    return _lookup(len(declared.DECLARED))


@lru_cache(maxsize=1)
def _lookup(count: int) -> dict[tuple[str, int], type[Flow]]:
    return {(cls.definition.name, cls.definition.version): cls for cls in declared.DECLARED[:count]}


def function(reference: Callable[..., Any] | str) -> Callable[..., Any]:
    """The callable behind a function or its dotted path.

    Raises:
        DefinitionError: the path leads nowhere.
    """
    return _imported(reference) if isinstance(reference, str) else reference


@lru_cache(maxsize=1024)
def _imported(path: str) -> Callable[..., Any]:
    module, _, name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise DefinitionError(f"The function {path!r} cannot be imported: {error}") from error
    if not callable(found):
        raise DefinitionError(f"{path!r} is not a function.")
    return found  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Opening:
    """What a plane needs to know when one of its waits is opened."""

    wait_id: int
    workflow_id: Any
    intent_id: Any
    intent_version: int
    epoch: int
    policy_version: str
    user_id: Any
    visit: int
    park: Park
    deadline_at: datetime | None


class WaitPlane(Protocol):
    """The room that owns a kind of wait."""

    def opened(self, using: str, opening: Opening) -> None:
        """A wait of this kind was opened; write what belongs to it, in the same transaction."""

    def closed(self, using: str, wait_ids: Sequence[int], how: str) -> None:
        """Waits of this kind were closed: satisfied or expired; close what belongs to them, in the same transaction."""

    def ended(self, using: str, workflow_ids: Sequence[Any]) -> None:
        """These workflows were cancelled or superseded; nothing of them is open or usable any more. In the same transaction."""

    def facts(self, using: str, workflow_id: Any, nodes: Sequence[str]) -> Mapping[str, ApprovalFact | None]:
        """What the gate must know about the newest request of each of these nodes."""

    def asked(self, using: str, workflow_ids: Sequence[Any]) -> Mapping[Any, Sequence[Asked]]:
        """All that was ever asked for these workflows, by workflow, in the order in which it was asked; for replay."""

    def use(self, using: str, request_id: str, activity_seq: int) -> bool:
        """Use the approval up for that activity, in the arrow's transaction; False if it is not to be had any more."""


_planes: dict[str, WaitPlane] = {}


def register_wait_plane(kind: str, plane: WaitPlane) -> None:
    """Let `plane` own waits of that kind; called from `AppConfig.ready`."""
    _planes[kind] = plane


def wait_plane(kind: str) -> WaitPlane | None:
    """The plane that owns that kind of wait, if any."""
    return _planes.get(kind)


def ended(workflow_ids: Sequence[Any], using: str) -> None:
    """Tell every plane that these workflows were cancelled or superseded, in the arrow's own transaction."""
    for plane in set(_planes.values()):
        plane.ended(using, workflow_ids)

"""Several versions of one flow in one process, and runs of the older one in every state that a migration may find."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import flows
from flows import registry
from flows.core import definition as declared
from flows.models import Transition
from tests import factories

Declare = Callable[..., type[flows.Flow]]


def version(declare: Declare, name: str, number: int, nodes: dict[str, Any], **meta: Any) -> type[flows.Flow]:
    """Declare one version; nodes may be shared between versions."""
    return declare(name, meta={"version": number, **meta}, **{key: copy.copy(node) for key, node in nodes.items()})


def unload(flow: type[flows.Flow], worker: Any = None) -> None:
    """A deployment that no longer has this class."""
    declared.DECLARED[:] = [cls for cls in declared.DECLARED if cls is not flow]
    registry._lookup.cache_clear()
    if worker is not None:
        factories.offer(worker)


def log(run: Any) -> list[tuple[str, str, str, int]]:
    """(from, to, trigger, epoch) of each arrow."""
    rows = Transition.objects.filter(workflow_id=getattr(run, "id", run)).order_by("seq")
    return list(rows.values_list("from_status", "to_status", "trigger", "epoch"))


def note(run: Any) -> dict[str, Any]:
    """What the newest migration noted."""
    found = Transition.objects.filter(workflow_id=getattr(run, "id", run), trigger="migrate").order_by("-seq").first()
    assert found is not None
    return dict(found.note)

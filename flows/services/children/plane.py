"""The owner of waits of the kind `children`: it writes the fan behind a wait, and ends it with the wait or its workflow.

Every call runs inside the arrow's own transaction, with the workflow's row locked. Children are started after that has committed, for a start
locks the intent, which comes first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flows.conf import conf
from flows.core import payload
from flows.core.errors import PayloadError
from flows.core.history import Asked
from flows.core.ids import new_id
from flows.core.joins import MET
from flows.core.moves import Park
from flows.core.nodes.base import Node
from flows.core.nodes.fanned import Fanned
from flows.core.state import ApprovalFact
from flows.models import Fan, Workflow
from flows.registry import Opening
from flows.services.children import counting, leaving, stopping
from flows.store import fans as store

_TERMS = ("body", "need", "tolerated", "concurrency", "on_cancel", "on_lose", "awaited")


class ChildrenPlane:
    """Fans of Map, Parallel and Child."""

    def lacking(self, using: str, workflow_id: Any, park: Park) -> str:
        """Children need nobody to answer."""
        return ""

    def at_once(self, using: str, workflow_id: Any, park: Park) -> Mapping[str, Any] | None:
        """Nothing to start is joined at once; a child that nobody waits for is known by its id from now on."""
        if not park.detail["branches"]:
            counts = dict.fromkeys(("total", "succeeded", "failed", "cancelled", "skipped"), 0)
            return {"verdict": MET, "counts": counts, "branches": {}}
        if not park.detail["awaited"]:
            return {"branches": {"": {"id": str(new_id())}}}
        return None

    def opened(self, using: str, opening: Opening) -> None:
        """Write the fan with all its branches.

        Raises:
            PayloadError: there are too many of them, they are too large, or one cannot be stored.
        """
        detail, node = opening.park.detail, opening.park.node
        planned = detail["branches"]
        if len(planned) > conf.MAX_MAP_ITEMS:
            raise PayloadError(
                f"what {node} starts", f"are {len(planned):,} items; at most {conf.MAX_MAP_ITEMS:,} are kept (MAX_MAP_ITEMS)"
            )
        ids = _given_id(opening) or [new_id() for _ in planned]
        new = [
            store.NewBranch(child, one.name, one.key, _input(one.input, node, number))
            for number, (child, one) in enumerate(zip(ids, planned, strict=True), 1)
        ]
        size = sum(len(one.input) for one in new)
        if size > conf.MAX_MAP_BYTES:
            raise PayloadError(
                f"what {node} starts", f"are {size:,} bytes; at most {conf.MAX_MAP_BYTES:,} are kept (MAX_MAP_BYTES)"
            )
        terms = {name: detail[name] for name in _TERMS}
        terms |= {"kind": detail["form"], "status": "open" if planned else "closed"}
        fan = store.open_fan(
            opening.workflow_id, node, opening.visit, opening.wait_id, opening.epoch, terms, new, using
        )  # fmt: skip
        if planned:
            counting.after_commit(fan, using)

    def closed(self, using: str, wait_ids: Sequence[int], how: str) -> None:
        """Its wait has its answer; or it has not, and what runs is stopped."""
        for fan, status, awaited in store.of_waits(wait_ids, using):
            if status == "joined":
                store.close(fan, using)
            elif status == "open" and awaited:
                stopping.stop(fan, using)
                store.close(fan, using)

    def due(self, using: str, moments: Sequence[tuple[int, str, str]]) -> None:
        """No moment concerns anybody here."""

    def ended(self, using: str, workflow_ids: Sequence[Any]) -> None:
        """What becomes of the children is declared with their node."""
        leaving.part(workflow_ids, using)

    def asks_the_same(self, using: str, wait_id: int, park: Park) -> bool:
        """A node of the same form and body waits for the same children, whatever its list says by now: they have been started."""
        found = Fan.objects.using(using).filter(wait_id=wait_id).values_list("kind", "body").first()
        return found == (park.detail["form"], park.detail["body"])

    def migrated(self, using: str, workflow_id: Any, nodes: Mapping[str, Node], kept: int | None) -> int:
        """The fan of a wait that goes over goes with it, as does one that nobody waits for and whose node is still there."""
        epoch = Workflow.objects.using(using).values_list("epoch", flat=True).get(pk=workflow_id)
        own = Fan.objects.using(using).filter(workflow_id=workflow_id, status__in=("open", "joined")).order_by("pk")
        for fan in own.select_for_update(no_key=True):
            if fan.wait_id == kept or (not fan.awaited and isinstance(nodes.get(fan.node), Fanned)):
                store.carry(workflow_id, fan.wait_id, epoch, using)
            else:
                leaving.let_go(fan.pk, fan.on_cancel, using)
        return 0

    def facts(self, using: str, workflow_id: Any, nodes: Sequence[str]) -> Mapping[str, ApprovalFact | None]:
        """No gate asks about children."""
        return {}

    def asked(self, using: str, workflow_ids: Sequence[Any]) -> Mapping[Any, Sequence[Asked]]:
        """Nobody is asked."""
        return {}

    def use(self, using: str, request_id: str, activity_seq: int) -> bool:
        """There is nothing to use up."""
        return False


def _given_id(opening: Opening) -> list[Any] | None:
    """The id under which a child that nobody waits for was announced."""
    answer = opening.answer
    if answer is None or opening.park.detail["awaited"]:
        return None
    return [answer["branches"][""]["id"]]


def _input(value: Any, node: str, number: int) -> str:
    return payload.encode(dict(value), f"item {number} of {node}", conf.MAX_INPUT_BYTES)

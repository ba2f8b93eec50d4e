"""What can be asked and done about an order afterwards: did it arrive, and how to take it back. Again is once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flows import DidNotHappen, Happened
from project.agents.research.archive import Archive

if TYPE_CHECKING:
    from flows import Operation


def find_order(operation: Operation) -> Happened | DidNotHappen:
    """Whether the archive has an order under this operation's id."""
    slip = Archive(operation.input["archive"]).found(operation.id)
    return Happened({"reference": operation.id, "names": slip["names"]}, external_id=operation.id) if slip else DidNotHappen()


def withdraw_order(operation: Operation) -> dict[str, Any]:
    """Take back what was ordered."""
    assert operation.of is not None
    slip = Archive(operation.input["archive"]).withdraw(operation.of.id)
    return {"reference": slip["reference"], "state": slip["state"]}

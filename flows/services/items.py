"""The items of a Map (or the branches of a Parallel), read a page at a time: together their results are over every bound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flows.core import payload
from flows.core.errors import DefinitionError
from flows.core.joins import ENDED, PLANNED, RUNNING
from flows.models import Fan
from flows.services.authored import from_anywhere
from flows.store import branches
from flows.store.sql import loads

PAGE = 200
STATUSES = (PLANNED, RUNNING, *ENDED)


@dataclass(frozen=True, slots=True)
class Item:
    """One item or branch.

    Attributes:
        number: from 1, in the order of the list. name: of a branch. id: of its run. input: what that was started with.
        status: planned, running, succeeded, failed, cancelled or skipped. result: of its run. code: why it failed.
    """

    number: int
    name: str
    id: UUID
    input: Any
    status: str
    result: Any
    code: str | None


class Items(Iterator[Item]):
    """The items of the newest visit of a node, in order; each page is read when it is come to."""

    def __init__(self, workflow: Any, node: str, statuses: tuple[str, ...], using: str) -> None:
        if unknown := sorted(set(statuses) - set(STATUSES)):
            raise DefinitionError(f"items({node!r}): there is no status {unknown[0]!r}. There are {', '.join(STATUSES)}.")
        self._workflow, self._node, self._using = workflow, node, using
        self._statuses = list(statuses) or None
        self._fan: int | None = None
        self._page: list[Item] = []
        self._after, self._more = 0, True

    def __next__(self) -> Item:
        if not self._page and self._more:
            self._page = self._read()
        if not self._page:
            raise StopIteration
        return self._page.pop(0)

    @from_anywhere
    def _read(self) -> list[Item]:
        if self._fan is None:
            self._fan = newest(self._workflow, self._node, self._using)
        rows = branches.page(self._fan, self._after, PAGE, self._using, self._statuses)
        self._more = len(rows) == PAGE
        self._after = rows[-1].number if rows else self._after
        return [as_item(row) for row in rows]


def as_item(row: branches.Row) -> Item:
    """A branch as its parent's author sees it."""
    result, given = payload.decode(loads(row.result)), payload.decode(loads(row.input))
    return Item(row.number, row.name, row.child, given, row.status, result, row.error_code)


def newest(workflow: Any, node: str, using: str) -> int:
    """The fan of the newest visit of a node.

    Raises:
        DefinitionError: the node has started nothing.
    """
    found = (
        Fan.objects.using(using).filter(workflow_id=workflow, node=node).order_by("-visit").values_list("pk", flat=True).first()
    )
    if found is None:
        raise DefinitionError(
            f"Node {node!r} of workflow {workflow} has no items: it is no Map, Parallel or Child, or was not entered yet."
        )
    return int(found)

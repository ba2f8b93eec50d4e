"""Map: one function, or one flow, for each item of a list; so many at once, and so many may fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from flows.core import joins
from flows.core.effects import Function
from flows.core.errors import DefinitionError
from flows.core.joins import Join
from flows.core.nodes.activity import Activity
from flows.core.nodes.base import Node
from flows.core.nodes.fanned import Fanned, Planned, Pure, as_flow, body_of, object_of
from flows.core.state import State


@dataclass(frozen=True, init=False)
class Map(Fanned):
    """Run something for each item; the node goes on when all have ended, or more have failed than it tolerates.

    Args:
        over: a pure function of the state that gives the items, at most MAX_MAP_ITEMS (10,000) JSON values.
        do: a function of the attempt, called for each with `attempt.input` = {"item": …, "number": …}; with the options of an Activity
            (`retry=`, `timeout=`, `queue=`, `effect=` …). Or child: a flow, whose input each item is.
        concurrency: how many run at once, 20. tolerate: how many may fail: a number, "5%", or ALL; default 0.
        The others as of every node that waits for children: then, failed, deadline, on_cancel; visits, gate, on.
    The node's result is its counts; an activity reads the items' results, a page at a time, by `attempt.items("NODE")`.
    """

    form: ClassVar[str] = "map"

    over: Pure
    child: Any = None
    concurrency: int = 20
    tolerate: int | str | Join = 0
    work: Activity | None = field(default=None)

    def __init__(self, over: Pure, *, do: Function | None = None, child: Any = None, **options: Any) -> None:
        own = {name: value for name, value in options.items() if name in _OWN}
        further = {name: value for name, value in options.items() if name not in _OWN}
        if (do is None) == (child is None):
            raise DefinitionError("Map takes either do=, a function of the attempt, or child=, a flow.")
        if child is not None and further:
            raise DefinitionError(f"Map(child=…) takes no {', '.join(sorted(further))}: the flow's own nodes say that.")
        work = Activity(do, **further) if do is not None else None
        given = {"over": over, "child": as_flow(child) if work is None else None, "work": work, **own}
        for option in fields(self):
            object.__setattr__(self, option.name, given[option.name] if option.name in given else _default(option))
        joins.tolerated(self.tolerate, 0)

    @property
    def at_once(self) -> int:
        return self.concurrency

    def planned(self, state: State) -> Sequence[Planned]:
        items: Any = self.over(state)
        if isinstance(items, str | bytes | Mapping) or not hasattr(items, "__iter__"):
            raise DefinitionError(f"over= of {self.name} must give a list of items, got {type(items).__name__}.")
        if self.work is not None:
            return [Planned("", {"item": item, "number": number}) for number, item in enumerate(items, 1)]
        return [Planned("", object_of(item, f"Item {number} of {self.name}")) for number, item in enumerate(items, 1)]

    def tolerates(self, total: int) -> int:
        return joins.tolerated(self.tolerate, total)

    def bodies(self) -> Mapping[str, Mapping[str, Node]]:
        return {} if self.work is None else {"": body_of(self.work)}

    def flows(self) -> Mapping[str, Any]:
        return {} if self.work is not None else {"": self.child}

    def told(self, evidence: Mapping[str, Any]) -> Any:
        return dict(evidence.get("counts", {}))

    def functions(self) -> Iterator[tuple[str, Callable[..., Any] | str | None]]:
        yield "over", self.over


def _default(option: Any) -> Any:
    """The default of a field of a dataclass."""
    return option.default_factory() if callable(option.default_factory) else option.default


#: Every other option is one of the activity that `do=` makes.
_OWN = frozenset(option.name for option in fields(Map)) - {"over", "child", "work", "losers", "name"}

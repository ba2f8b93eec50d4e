"""Parallel: several branches at once, joined when all have succeeded, any one, or so many of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from flows.core import joins
from flows.core.errors import DefinitionError
from flows.core.joins import ALL, Join, Losers
from flows.core.nodes.activity import Activity
from flows.core.nodes.base import Node
from flows.core.nodes.fanned import Fanned, Planned, Pure, as_flow, body_of, object_of
from flows.core.policies import CANCEL, Expiry
from flows.core.state import State

MOST = 100


@dataclass(frozen=True)
class Parallel(Fanned):
    """Run these branches at once.

    Args:
        branches: name → a flow (class or name), or an Activity, which needs no `then=`; at most a hundred.
        input: a pure function of the state that gives {name: input} of the branches; without it each has the run's own input.
        join: ALL (default), ANY, or how many must succeed. It fails as soon as that cannot be met any more.
        losers: what becomes of the branches that still run when it is met: CANCEL (default), or LEAVE: they go on, and nobody waits for them.
        The others as of every node that waits for children: then, failed, deadline, on_cancel; visits, gate, on.
    The node's result is, by branch, `{"id", "status", "outcome", "code", "result"}`.
    """

    form: ClassVar[str] = "parallel"

    branches: Mapping[str, Any]
    input: Pure | None = field(kw_only=True, default=None)
    join: int | Join = field(kw_only=True, default=ALL)
    losers: Losers | Expiry = field(kw_only=True, default=CANCEL)

    def __post_init__(self) -> None:
        given: Any = self.branches
        if not isinstance(given, Mapping) or not 0 < len(given) <= MOST:
            raise DefinitionError(
                f"Parallel takes 1 to {MOST} branches by name: {{'search': Activity(search), 'ask': AskPeople}}."
            )
        for name, branch in self.branches.items():
            if not isinstance(branch, Activity):
                as_flow(branch)
            elif type(branch) is not Activity or branch.on or branch.gate is not None or branch.visits is not None:
                raise DefinitionError(
                    f"Branch {name!r}: an Activity in a Parallel is a plain one, without on=, gate= and visits=. Make a flow of what is more."
                )
        joins.needed(self.join, len(self.branches))
        if self.losers is not CANCEL and self.losers is not Losers.LEAVE:
            raise DefinitionError(f"losers= is CANCEL or LEAVE; got {self.losers!r:.60}.")

    def planned(self, state: State) -> Sequence[Planned]:
        given: Any = self.input(state) if self.input else {}
        if not isinstance(given, Mapping) or not set(given) <= set(self.branches):
            raise DefinitionError(
                f"input= of {self.name} must give inputs by branch ({', '.join(self.branches)}), got {given!r:.80}."
            )
        return [
            Planned(name, object_of(given.get(name, dict(state.input)), f"The input of branch {name}")) for name in self.branches
        ]

    def needed(self, total: int) -> int:
        return joins.needed(self.join, total)

    def tolerates(self, total: int) -> int:
        return total - joins.needed(self.join, total)

    def bodies(self) -> Mapping[str, Mapping[str, Node]]:
        return {name: body_of(branch) for name, branch in self.branches.items() if isinstance(branch, Activity)}

    def flows(self) -> Mapping[str, Any]:
        return {name: branch for name, branch in self.branches.items() if not isinstance(branch, Activity)}

    def functions(self) -> Iterator[tuple[str, Callable[..., Any] | str | None]]:
        yield "input", self.input

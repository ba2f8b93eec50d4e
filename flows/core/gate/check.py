"""What a check is: a name, the facts that it looks at, and a judgement of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from flows.core.definition import Definition
from flows.core.nodes.base import Node
from flows.core.requirements import Gate
from flows.core.state import Facts, State
from flows.core.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class Answer:
    """What one check said: `holds`, `refused`, or `unchanged` (not run again). `digest`: of the facts that it looks at."""

    check: str
    answer: str
    digest: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """A verdict other than ALLOWED, and the recorded fact that caused it.

    Attributes:
        node: whose gate it was, or where the workflow stood. answers: what the checks said that led to it.
    """

    verdict: Verdict
    reason: str
    node: str = ""
    answers: tuple[Answer, ...] = field(default=(), compare=False)


class Asked(NamedTuple):
    """The question: may this node be carried out in this state? `node` None: may the workflow go on at all?"""

    definition: Definition
    node: Node | None
    state: State
    facts: Facts

    @property
    def gate(self) -> Gate | None:
        """What the node declares."""
        return self.node.gate if self.node is not None else None


#: JSON: what a check looks at. Everything that its judgement depends on is in it, the passing of time too.
Known = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Check:
    """One check of the gate.

    Attributes:
        name: in the record. facts: what it looks at; None where it is not asked. judge: None (it holds) or a refusal.
    """

    name: str
    facts: Callable[[Asked], Known | None]
    judge: Callable[[Known], Refusal | None]

"""Commitments as an author declares them: what an activity begins to owe to somebody outside, and how that ends. Pure.

    planned ──► active ──► fulfilled              by the activity that says `fulfils=`, or by a person
       │           ├─────► releasing ──► released  on the way to any end, by its `release`
       │           ├─────► breached ─┘             over its deadline, and still owed
       │           └─────► deferred, transferred   somebody else's business from then on
       └─► void                                    what should have begun it did not happen
Guards and races: docs/decisions/0003.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flows.core import typed
from flows.core.effects import Effect, Function, Servicing
from flows.core.errors import DefinitionError
from flows.core.policies import Deadline

#: The workflow holds something of which nobody has said what becomes of it.
COMMITMENT_OPEN = "COMMITMENT_OPEN"
#: What an activity with `commits=` and without an `effect=` is taken for.
BEGINS = Effect(idempotent=True)


@dataclass(frozen=True)
class Commits:
    """That an activity begins a commitment: planned before its call is made, active when it is known to have happened.

    Args:
        name: unique in the flow. kind: what monitoring groups by ("window", "capability", …); by default the name.
        release: a function of the operation (or a `Servicing`) that ends it; the cleanup worker calls it before the workflow ends.
        reference: a pure function of the activity's result: the provider's name for it. terms: likewise, what was agreed (JSON).
        deadline: until when it must have ended; then ESCALATE (the accountable user is told) or CANCEL (the workflow is cancelled).
        deferrable: the workflow may complete with it; the outcome says so, and somebody else services it.
    """

    name: str
    release: Function | Servicing | None = None
    kind: str = ""
    reference: Callable[[Any], str] | None = None
    terms: Callable[[Any], Any] | None = None
    deadline: Deadline | None = None
    deferrable: bool = False

    def __post_init__(self) -> None:
        example = 'Commits("window", release=…)'
        typed.must("Commits(name, …)", self.name, (str,), example)
        typed.must("Commits(kind=…)", self.kind, (str,), 'Commits("window", kind="capability")')
        typed.must(
            "Commits(deadline=…)",
            self.deadline,
            (Deadline, typed.NONE),
            'Commits("window", deadline=Deadline(days=1, then=ESCALATE))',
        )
        if not self.name:
            raise DefinitionError(f"A commitment has a name: {example}.")

    @property
    def servicing(self) -> Servicing | None:
        """How it is released, in its full form."""
        given = self.release
        return given if given is None or isinstance(given, Servicing) else Servicing(given)

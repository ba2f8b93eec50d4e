"""Objectives: what a flow promises about its time, so that it is seen when it is not kept, and what took it (Q1). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from flows.core import typed
from flows.core.errors import DefinitionError
from flows.core.spans import bounded

#: Objective → the option that gives its span.
SPANS = {"complete": "complete_within", "wake": "wake_within", "answer": "answered_within"}


@dataclass(frozen=True, slots=True)
class Objectives:
    """What a flow promises about its time. Nothing is done when one is not kept: it is measured, and attributed to what took the time.

    Args:
        complete_within: a run has ended, however it ended, so long after its start.
        wake_within: a worker has taken a run so long after what it waited for has come.
        answered_within: people have answered a wait for them within this.
        share: of how many of them that must hold, from 0 to 1.
    """

    complete_within: timedelta | None = None
    wake_within: timedelta | None = None
    answered_within: timedelta | None = None
    share: float = 0.95

    def __post_init__(self) -> None:
        for option in SPANS.values():
            span = getattr(self, option)
            typed.span(f"Objectives({option}=…)", span, f"Objectives({option}=hours(4))", optional=True)
            if span is not None and bounded(f"Objectives({option}=…)", span) <= timedelta(0):
                raise DefinitionError(f"Objectives({option}=…) needs a positive span: hours(4).")
        typed.must("Objectives(share=…)", self.share, (float, int), "Objectives(…, share=0.95)")
        if not 0 < self.share <= 1:
            raise DefinitionError(f"Objectives(share={self.share!r}) is a share: more than 0, and 1 at most. Write share=0.95.")
        if not dict(self.spans()):
            raise DefinitionError("Objectives() promises nothing. Write Objectives(complete_within=hours(4)).")

    def spans(self) -> Iterator[tuple[str, float]]:
        """(objective, seconds), of those that are given."""
        for name, option in SPANS.items():
            if (span := getattr(self, option)) is not None:
                yield name, span.total_seconds()

"""Hints for workflows that have become ready together: as many as there are slots to take them, not as many as there are workflows.

A turn goes on until nothing is ready in its queue, so one message a slot is enough; every further one costs a worker its reading.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from flows.dispatch import Hint, after_commit, hints_for
from flows.store import tick

#: So many go out unasked, to each queue: fewer than a question for the slots is worth, and enough where no worker is up yet.
FEW = 8


def hint_ready(rows: Iterable[tuple[Any, str, str, str]], using: str) -> None:
    """After the caller's commit, hint at these ready rows of (id, queue, flow name, node)."""
    hints = hints_for(rows)
    if max(Counter(hint.queue for hint in hints).values(), default=0) > FEW:
        slots = tick.slots(using)
        sent: Counter[str] = Counter()
        kept: list[Hint] = []
        for hint in hints:
            sent[hint.queue] += 1
            if sent[hint.queue] <= max(FEW, slots.get(hint.queue, 0)):
                kept.append(hint)
        hints = kept
    after_commit(hints, using)

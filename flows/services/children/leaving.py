"""A workflow ends, or is on its way there: what becomes of its children (`on_cancel`). In its arrow's own transaction; the workflow is locked.

ABANDON   the fan is closed; children go on
REQUEST   no more are started, and those that run are cancelled
WAIT      the same, and the workflow owes the end of each that runs: it ends after them
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flows.core.joins import OnCancel
from flows.core.protocol import TERMINAL
from flows.models import Workflow
from flows.services.children import stopping
from flows.store import fans as store


class StillRuns(Exception):
    """Children run that have to end before the workflow does: take the arrow back, and go towards the end."""


def part(workflows: Sequence[Any], using: str) -> None:
    """These workflows ended, or are on their way.

    Raises:
        StillRuns: one has ended whose children it waits for.
    """
    for fan, workflow, on_cancel, running, _node in store.of_ending(list(workflows), using):
        let_go(fan, on_cancel, using)
        if on_cancel == OnCancel.WAIT and running:
            if Workflow.objects.using(using).filter(pk=workflow, status__in=TERMINAL).exists():
                raise StillRuns
            store.owe(fan, using)


def let_go(fan: int, on_cancel: str, using: str) -> None:
    """Nobody waits for a locked fan any more."""
    stopping.stop(fan, using, running=on_cancel != OnCancel.ABANDON)
    store.close(fan, using)

"""Open a competence envelope again: a person's decision, with a reason."""

from __future__ import annotations

from typing import Any

from flows.core import payload
from flows.services import identify
from flows.store import gate as store


def open_again(flow: str, node: str, *, release: str = "", reason: str, by: Any = None, using: str | None = None) -> bool:
    """Open the closed envelope of a node under one release; its errors are counted anew. False: there is none that is closed.

    Runs that it stopped (COMPETENCE_EXCEEDED) go on by `flows.resume`.
    """
    said = identify.reason(reason)
    for what, name in (("the flow", flow), ("the node", node), ("the release", release)):
        payload.check_text(name, what)
    return store.open_envelope(flow, node, release, note=said, by_label=identify.label(by), using=identify.alias(using))

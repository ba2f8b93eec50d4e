"""The same request again, under the same key, gets the same answer: a client that heard nothing may ask once more without fear.

    key claimed ──► acted, answered, kept                one transaction; an error of ours keeps nothing and gives the key back
    key known ──► the same was asked: the kept answer
             └──► something else was asked: KEY_REUSED
Two at once: the second waits for the first at the key's row and then gets its answer. A key belongs to its user: another user's is another
key. After a day it is free again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from approvals.store import kept
from flows.core.errors import HalfMove
from flows.core.misuse import UsageError
from flows.store.sql import committing


class KeyReused(UsageError):
    """The key stands for another request."""

    code = "KEY_REUSED"

    def __init__(self) -> None:
        super().__init__(
            "This idempotency key was used for another request within the last day: use a new key for a new request."
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is answered: the HTTP status and the JSON object. `again`: it is the kept answer to the same request."""

    status: int
    body: dict[str, Any]
    again: bool = False


def asked(*parts: str, body: Any) -> str:
    """What a request asks, as one digest: the parts in order, and the body whatever the order of its members."""
    text = json.dumps([*parts, body], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def once(user: Any, key: str, request: str, act: Callable[[], Outcome], using: str) -> Outcome:
    """Act and keep the answer, or give the one that is kept.

    Args:
        user: the key of the user who asks. key: theirs for this request. request: its digest (`asked`). act: what is done; refusals are
            outcomes too, and kept.
    Raises:
        KeyReused: the key stands for another request.
    """
    for _attempt in range(2):
        with committing("answer once", using):
            row = kept.claim(user, key, request, using)
            if row is not None:
                made = act()
                if not kept.keep(row, made.status, json.dumps(made.body), using):
                    raise HalfMove("a key was claimed and its answer not kept")
                kept.forget(using)
                return made
            found = kept.find(user, key, using)
        # None: it was old, and somebody has deleted it between the two statements. Then the key is free.
        if found is not None:
            if found[0] != request:
                raise KeyReused
            return Outcome(found[1], json.loads(found[2]), again=True)
    raise HalfMove("an idempotency key is neither free nor taken")

"""How many requests were refused: added up in memory, and written at most once a second, for strangers may send as many as they like.

What was added after the last writing is written with the next webhook that this process gets; what a process had not written when it ended is
not counted.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from datetime import UTC, datetime

from django.db import DatabaseError

from flows.core.hooks import Refused
from flows.store import webhooks as store

logger = logging.getLogger(__name__)

#: Seconds between two writings.
PACE = 1.0


class Tally:
    """The sums of this process."""

    def __init__(self) -> None:
        self._sums: Counter[tuple[str, datetime, str]] = Counter()
        self._lock, self._next = threading.Lock(), 0.0

    def add(self, source: str, code: Refused, using: str) -> None:
        """One more; `source` is the name of one that exists, or "" for all others."""
        hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
        with self._lock:
            self._sums[source, hour, code.value] += 1
        self.write(using)

    def write(self, using: str, *, now: bool = False) -> None:
        """Write what there is, if it is time. A record that is away is no reason to answer anybody otherwise: the sums stay."""
        with self._lock:
            if not self._sums or (time.monotonic() < self._next and not now):
                return
            sums, self._sums = self._sums, Counter()
            self._next = time.monotonic() + PACE
        try:
            store.add_refusals(sums, using)
        except DatabaseError:
            logger.debug("Refused webhooks could not be counted; they will be.", exc_info=True)
            with self._lock:
                self._sums.update(sums)


tally = Tally()

"""The one sender of what is owed to people, whichever table it stands in.

    owed ── claim: one more try, nobody else's until `due_at` ──► being sent ──► sent
      ▲                                                              ├─ nobody needs it any more ──► dropped, with the reason
      └────────────────── fails: due again, ever later ──────────────┴─ the last try failed ──► given up

A claim is committed before anything is sent, so nothing is held meanwhile. Two senders at once: each locks what it claims, and skips what the
other has locked. A sender that dies leaves its rows due again when their claim is over: what it had sent just before is sent twice,
and nothing never.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from time import monotonic
from typing import Any

from django.db.models import F, Q

from flows.models.notice import OWED
from flows.services.clock import now
from flows.store.sql import committing

logger = logging.getLogger("outlast.notices")

#: After a failure the next try comes 3 s, 12 s, 48 s, 3 min, 13 min, 51 min, 3.4 h, 14 h and 2 days later; the last one is not followed by any.
MAX_TRIES = 10
#: Seconds for which a row is its sender's. One call of the sender begins nothing new after a quarter of them.
CLAIMED = 120.0
#: So many rows are claimed at once.
BATCH = 50
#: So much of a reason is kept.
MAX_WHY = 100


def pause(tries: int) -> timedelta:
    """How long after a failed try the next one comes."""
    return timedelta(seconds=3 * 4 ** (tries - 1))


class Outbox:
    """Rows of one model (an `Owed`), and how they are sent. Subclasses say what a message is."""

    model: Any
    #: Relations that come with each row.
    related: tuple[str, ...] = ()

    @property
    def table(self) -> str:
        """The table that the clock looks at."""
        return str(self.model._meta.db_table)  # noqa: SLF001 - Django's documented way to look at a model

    def bundles(self, rows: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """What goes out in one message: by default each row by itself."""
        return [[row] for row in rows]

    def moot(self, row: Any, using: str) -> str:
        """Why this row need not be sent any more, as a code; "": it has to be."""
        return ""

    def send(self, rows: Sequence[Any], using: str) -> int:
        """Send one bundle; how many messages went out. Whatever it raises, the bundle is tried again later."""
        raise NotImplementedError

    def send_owed(self, using: str, limit: int = BATCH) -> int:
        """Send what is due, each row claimed before it is sent; how many messages went out."""
        ends, sent, left = monotonic() + CLAIMED / 4, 0, limit
        while left > 0 and monotonic() < ends and (rows := self._claim(using, left)):
            left -= len(rows)
            waiting = list(self.bundles(rows))
            while waiting and monotonic() < ends:
                sent += self._try(waiting.pop(0), using)
            self._give_back([row for bundle in waiting for row in bundle], using)
        return sent

    def _claim(self, using: str, limit: int) -> list[Any]:
        """Count a try on rows that are due and that nobody else is sending."""
        with committing("claim notices", using):
            moment = now(using)
            due = self._rows(using).filter(OWED, Q(due_at=None) | Q(due_at__lte=moment))
            locked = due.select_for_update(no_key=True, skip_locked=True).order_by("created_at", "pk")
            ids = list(locked.values_list("pk", flat=True)[:limit])
            self._rows(using).filter(pk__in=ids).update(tries=F("tries") + 1, due_at=moment + timedelta(seconds=CLAIMED))
        return list(self._rows(using).filter(pk__in=ids).order_by("created_at", "pk"))

    def _try(self, claimed: Sequence[Any], using: str) -> int:
        owed = list(claimed)
        try:
            owed = self._as_they_are(claimed, using)
            for row in list(owed):
                if why := self.moot(row, using):
                    self._mark([row], using, gave_up_at=now(using), why=why[:MAX_WHY])
                    owed.remove(row)
            sent = self.send(owed, using) if owed else 0
        except Exception as error:  # noqa: BLE001 - a mail server may raise anything; what was to be sent stays owed
            self._failed(owed, error, using)
            return 0
        self._mark(owed, using, sent_at=now(using), why="")
        return sent

    def _as_they_are(self, claimed: Sequence[Any], using: str) -> list[Any]:
        """The rows of a bundle with what belongs to them, read when its turn has come; without those that somebody else has taken up since."""
        tries = {row.pk: row.tries for row in claimed}
        rows = self._rows(using).select_related(*self.related).filter(OWED, pk__in=tries).order_by("created_at", "pk")
        return [row for row in rows if row.tries == tries[row.pk]]

    def _failed(self, rows: Sequence[Any], error: Exception, using: str) -> None:
        kind, moment = type(error).__name__, now(using)
        logger.warning("%s %s not sent: %s", self.table, ", ".join(str(row.pk) for row in rows), kind)
        for row in rows:
            over = {"gave_up_at": moment} if row.tries >= MAX_TRIES else {"due_at": moment + pause(row.tries)}
            self._mark([row], using, tries=row.tries, why=kind[:MAX_WHY], **over)

    def _give_back(self, rows: Sequence[Any], using: str) -> None:
        """Leave to others what there was no time for."""
        for row in rows:
            self._mark([row], using, tries=row.tries - 1, due_at=now(using))

    def _mark(self, rows: Sequence[Any], using: str, *, tries: int | None = None, **values: Any) -> None:
        """Write how it went. What concerns a further try is the business of whoever tried last: a newer claim is left alone."""
        for row in rows:
            found = self._rows(using).filter(OWED, pk=row.pk)
            if tries is not None:
                found, values = found.filter(tries=row.tries), {**values, "tries": tries}
            found.update(**values)

    def _rows(self, using: str) -> Any:
        return self.model._default_manager.using(using)  # noqa: SLF001 - the documented way that does not assume `objects`

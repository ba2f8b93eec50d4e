"""What must be true of the machine's flow, in plain Python: no database, no engine, no SQL.

one ──► nap (sleep, 1 min) ──► ask (event, 1 h, then late) ──► two ──► done
                                                        └────► late ──► done
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: Seconds: of the sleep, of the wait's deadline, of an attempt's timeout with the sweep's grace, and before each retry.
NAP, DEADLINE, TIMEOUT, RETRIES = 60.0, 3600.0, 602.0, (10.0, 20.0)
MAX_LOST = 2

ENDED = {"complete", "cancelled", "superseded"}
AFTER = {"one": "nap", "two": "done", "late": "done"}


@dataclass
class Run:
    """One workflow as it must be.

    `open`: what stands beside the row: activity, sleep, event, retry or human. `due`: when that is over; `fired`: the sweep said so.
    """

    key: str
    intent: Any
    status: str = "runnable"
    outcome: str = ""
    node: str = "one"
    open: set[str] = field(default_factory=lambda: {"activity"})
    due: float | None = None
    fired: bool = False
    evidence: str | None = None
    failures: int = 0
    lost: int = 0
    owner: Any = None
    started: float = 0.0
    pause_asked: bool = False
    epoch: int = 0

    @property
    def live(self) -> bool:
        return self.status not in ENDED

    def row(self) -> tuple[str, str, str, int]:
        """What the row must say."""
        return self.status, self.outcome, self.node, self.epoch

    # ------------------------------------------------------------ from outside

    def end(self, status: str) -> None:
        """Cancelled or superseded: the generation is over."""
        self.status, self.outcome, self.epoch = status, status.upper(), self.epoch + 1
        self._nothing_open()
        self.owner, self.pause_asked = None, False

    def pause(self) -> str:
        if not self.live:
            return "too_late"
        if self.status == "paused":
            return "already"
        if self.status == "running":
            answer = "already" if self.pause_asked else "accepted"
            self.pause_asked = True
            return answer
        self.status, self.outcome = "paused", self.outcome or "WAITING"
        return "accepted"

    def resume(self) -> str:
        if self.status == "running" and self.pause_asked:
            self.pause_asked = False
            return "accepted"
        if self.status == "paused" or (self.status == "waiting" and self.outcome != "WAITING"):
            self.status, self.outcome = "runnable", ""
            self.open -= {"human", "retry"}
            return "accepted"
        return "already" if self.live else "too_late"

    def hear(self, event: str) -> bool:
        """An event of its channel; whether it took it."""
        if "event" not in self.open or self.evidence is not None:
            return False
        self.evidence = event
        self._wake()
        return True

    def clock(self, now: float) -> None:
        """The sweep: timers, then work of dead owners, then attempts over their time."""
        if self.live and self.due is not None and not self.fired and now >= self.due:
            self.fired = True
            if "retry" in self.open:
                self.open.discard("retry")
                self.due = None
            self._wake()

    def overdue(self, now: float) -> bool:
        return self.status == "running" and now >= self.started + TIMEOUT

    def put_back(self) -> None:
        """Its owner is gone."""
        self.lost += 1
        self.owner = None
        self.status, self.outcome = ("paused", "WAITING") if self.pause_asked else ("runnable", "")
        self.pause_asked = False

    def _wake(self) -> None:
        if self.status == "waiting":
            self.status, self.outcome = "runnable", ""

    # ------------------------------------------------------------ the owner

    def take(self, owner: Any, now: float, early: Any) -> str | None:
        """Claimed, and the first decision made. `early()` gives the oldest event that came before its wait; what it used is returned."""
        if "activity" in self.open:
            if self.lost > MAX_LOST:
                self._suspend()
                self.lost = 0
                return None
            self._run(owner, now)
            return None
        if "sleep" in self.open:
            if not self.fired:
                self._rest()
                return None
            return self._enter_ask(owner, now, early)
        if self.evidence is not None or self.fired:
            self._open_activity("two" if self.evidence is not None else "late", owner, now)
        else:
            self._rest()
        return None

    def finish(self, now: float) -> None:
        """The attempt ended well."""
        following = AFTER[self.node]
        if following == "done":
            self.status, self.outcome, self.node = "complete", "COMPLETE", "done"
            self._nothing_open()
        else:
            self.node, self.open, self.due, self.fired = "nap", {"sleep"}, now + NAP, False
            self.status, self.outcome = ("paused" if self.pause_asked else "waiting"), "WAITING"
        self.owner, self.pause_asked = None, False

    def fail(self, now: float) -> None:
        """The attempt failed, or its time was over."""
        self.failures += 1
        if self.failures > len(RETRIES):
            self._suspend()
        else:
            self.open |= {"retry"}
            self.due, self.fired = now + RETRIES[self.failures - 1], False
            self.status, self.outcome = ("paused" if self.pause_asked else "waiting"), "WAITING"
        self.owner, self.pause_asked = None, False

    def _run(self, owner: Any, now: float) -> None:
        self.status, self.outcome, self.owner, self.started = "running", "", owner, now

    def _rest(self) -> None:
        self.status, self.outcome = "waiting", "WAITING"

    def _suspend(self) -> None:
        self.open |= {"human"}
        self.status, self.outcome, self.owner, self.due = "waiting", "HUMAN_REQUIRED", None, None

    def _enter_ask(self, owner: Any, now: float, early: Any) -> str | None:
        used: str | None = early()
        self.node, self.open, self.due, self.fired, self.evidence = "ask", {"event"}, now + DEADLINE, False, None
        if used is None:
            self._rest()
        else:
            self._open_activity("two", owner, now)
        return used

    def _open_activity(self, node: str, owner: Any, now: float) -> None:
        self._nothing_open()
        self.node, self.open, self.failures, self.lost = node, {"activity"}, 0, 0
        self._run(owner, now)

    def _nothing_open(self) -> None:
        self.open, self.due, self.fired, self.evidence = set(), None, False, None

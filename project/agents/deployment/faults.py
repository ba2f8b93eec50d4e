"""The faults of the small cloud, switched on and off while it runs. They live in memory: a restarted cloud has none.

Dice are thrown with a seed. Each kind of request has dice of its own, and each request throws all of them, whichever faults
are on: so the n-th POST meets the same fate in every run, however often somebody has looked at the feed in between.
Requests that come at the same time may change places, and their fates with them.
"""

from __future__ import annotations

import dataclasses
import random
import threading
from typing import Any

CHANCES = ("slow", "error_before", "error_after", "lose_response", "duplicate_events")
LONGEST = 3600.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """Chances are from 0 to 1."""

    slow: float = 0.0  # it takes `slow_seconds` before anything is done
    slow_seconds: float = 1.0
    error_before: float = 0.0  # 500, and nothing was done
    error_after: float = 0.0  # 500, and it was done
    lose_response: float = 0.0  # it is done, and the connection closed without an answer
    duplicate_events: float = 0.0  # an event is listed twice, and the page out of order
    forget_keys: bool = False  # a repeated key is no obstacle
    blind: bool = False  # nobody can say what became of a request
    seed: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Fate:
    """What happens to one request."""

    delay: float = 0.0
    error_before: bool = False
    error_after: bool = False
    lose_response: bool = False


def read_switches(body: dict[str, Any], seed: int) -> Switches:
    """What is not named is off; a seed that is not named stays. ValueError says what is wrong."""
    known: dict[str, Any] = {name: type(value) for name, value in dataclasses.asdict(Switches()).items()}
    for name, value in body.items():
        if name not in known:
            raise ValueError(f"unknown fault {name!r} (known: {', '.join(known)})")
        kind = (int, float) if known[name] is float else known[name]
        if not isinstance(value, kind) or isinstance(value, bool) != (known[name] is bool):
            raise ValueError(f"{name} must be {known[name].__name__}, got {value!r}")
        if known[name] is float and not 0 <= value <= (1 if name in CHANCES else LONGEST):
            raise ValueError(f"{name} is out of range: {value!r}")
    return Switches(**{"seed": seed, **body})


class Faults:
    """The switches and their dice, for many threads."""

    def __init__(self, seed: int = 0) -> None:
        self._lock = threading.Lock()
        self._switches = Switches()
        self._throw(Switches(seed=seed))

    @property
    def switches(self) -> Switches:
        return self._switches

    def set(self, body: dict[str, Any]) -> Switches:
        """All switches at once; the dice start anew where a seed is given, and go on otherwise."""
        with self._lock:
            switches = read_switches(body, self._switches.seed)
            if "seed" in body:
                self._throw(switches)
            self._switches = switches
            return switches

    def _throw(self, switches: Switches) -> None:
        self._switches = switches
        self._posts, self._questions, self._feed = (random.Random(f"{switches.seed}/{kind}") for kind in ("post", "ask", "feed"))

    def of_post(self) -> Fate:
        with self._lock:
            on = self._switches
            slow, before, after, lost = (self._posts.random() for _ in range(4))
        delay = on.slow_seconds if slow < on.slow else 0.0
        return Fate(delay, before < on.error_before, after < on.error_after, lost < on.lose_response)

    def of_question(self) -> Fate:
        with self._lock:
            on = self._switches
            return Fate(on.slow_seconds if self._questions.random() < on.slow else 0.0)

    def of_feed(self, page: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """A page as it is delivered: nothing is ever missing in it."""
        with self._lock:
            chance = self._switches.duplicate_events
            twice = [event for event in page if self._feed.random() < chance]
            delivered = [*page, *twice]
            if twice:
                self._feed.shuffle(delivered)
            return delivered

"""Follows the cloud's event feed: every event at least once, as often and in the order in which it is delivered."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

from flows.errors import Transient
from project.agents.deployment.client import Cloud, Json

log = logging.getLogger("deployment_agent.feed")


class Feed:
    """`cursor` may be stored at any time, and a Feed started from it later: no event is skipped, some may come again.

    It therefore moves only when a whole page was taken: within a page an event with a higher number may come first.
    """

    def __init__(self, cloud: Cloud, cursor: int = 0) -> None:
        self.cloud, self.cursor = cloud, cursor

    def page(self) -> Iterator[Json]:
        """What there is now, at most a page of it."""
        events = self.cloud.events(self.cursor)
        yield from events
        self.cursor = max([self.cursor, *(event["cursor"] for event in events)])

    def follow(self, every: float, ending: threading.Event) -> Iterator[Json]:
        """Looks again and again until `ending` is set; a cloud that is away is asked in the next round."""
        while not ending.is_set():
            before = self.cursor
            try:
                yield from self.page()
            except Transient as error:
                log.warning("this round failed; the next one tries again: %s", error)
            if self.cursor == before:
                ending.wait(every)

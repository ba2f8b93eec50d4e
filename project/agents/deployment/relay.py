"""Follows the cloud's event feed, and hands every event to Outlast.

    python -m project.agents.deployment.relay --cloud ADDRESS [--every SECONDS] [--cursor FILE]

The feed lists events twice and out of order, and this process may be killed at any line. Neither matters: an event's id is the
cloud's own, and `flows.signal` consumes an id once. The cursor only saves work; without a file all events are handed over again.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from project.agents.deployment.client import Cloud
from project.agents.deployment.feed import Feed

Send = Callable[..., Any]  # flows.signal
log = logging.getLogger("deployment_agent.relay")


class Relay:
    """One feed, handed to one `send`. Where a page could not be handed over to its end, all of it comes again."""

    def __init__(self, cloud: Cloud, send: Send, cursor: Path | None = None) -> None:
        self.send, self.store = send, cursor
        self.feed = Feed(cloud, _read(cursor))

    def look(self) -> int:
        """Hands over what there is now, at most a page of it; how many events that were."""
        count, before = 0, self.feed.cursor
        for event in self.feed.page():
            answer = self.send(event["id"], event["type"], key=event["key"], payload=event["payload"])
            log.info("%s: %s", event["id"], answer)
            count += 1
        if self.store is not None and self.feed.cursor != before:
            _write(self.store, self.feed.cursor)
        return count

    def run(self, every: float, ending: threading.Event) -> None:
        """Until it is told to end. Neither a cloud nor a database that is away ends it."""
        from django.db import close_old_connections

        while not ending.is_set():
            try:
                close_old_connections()  # one that broke in the last round is not used again
                handed = self.look()
            except Exception:
                log.exception("this round failed; the next one tries again")
                handed = 0
            if not handed:
                ending.wait(every)


def _read(cursor: Path | None) -> int:
    try:
        return int(cursor.read_text()) if cursor is not None else 0
    except (OSError, ValueError):  # none yet, or cut off by a kill: from the beginning, then
        return 0


def _write(store: Path, cursor: int) -> None:
    """In one step, so that a kill leaves the old one or the new one."""
    new = store.with_name(f"{store.name}.new")
    new.write_text(str(cursor))
    new.replace(store)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="relay", description="Hands the events of the deployment agent's cloud to Outlast.")
    parser.add_argument("--cloud", required=True)
    parser.add_argument("--every", type=float, default=0.2)
    parser.add_argument("--cursor", type=Path)
    options = parser.parse_args(arguments)
    send = signal_flows()
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    log.info("following %s", options.cloud)
    Relay(Cloud(options.cloud), send, options.cursor).run(options.every, ending)


def signal_flows() -> Send:
    """`flows.signal`, with Django set up as a process of its own needs it."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    import django

    import flows

    django.setup()
    return flows.signal


if __name__ == "__main__":
    main(sys.argv[1:])

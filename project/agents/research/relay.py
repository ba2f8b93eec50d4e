"""Hands what the archive says (a version of a source is there) to Outlast.

    python -m project.agents.research.relay --archive FOLDER [--every SECONDS]

It may be killed at any line, and begins again from the first event: an event's id is the archive's own, and `flows.signal` consumes an id once.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from project.agents.research.archive import Archive

Send = Callable[..., Any]  # flows.signal
log = logging.getLogger("research_agent.relay")


class Relay:
    """One archive, handed to one `send`."""

    def __init__(self, archive: str, send: Send) -> None:
        self.archive, self.send = Archive(archive), send
        self.handed: set[str] = set()

    def look(self) -> None:
        """Hand over what is new."""
        for event in self.archive.events():
            if event["id"] not in self.handed:
                answer = self.send(event["id"], event["type"], key=event["key"], payload=event["payload"])
                log.info("%s: %s", event["id"], answer)
                self.handed.add(event["id"])

    def run(self, every: float, ending: threading.Event) -> None:
        """Until it is told to end. Neither an archive nor a database that is away ends it."""
        from django.db import close_old_connections

        while not ending.is_set():
            try:
                close_old_connections()
                self.look()
            except Exception:
                log.exception("this round failed; the next one tries again")
            ending.wait(every)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="relay", description="Hands the events of the research agent's archive to Outlast.")
    parser.add_argument("--archive", required=True)
    parser.add_argument("--every", type=float, default=0.5)
    options = parser.parse_args(arguments)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    import django

    import flows

    django.setup()
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    Relay(options.archive, flows.signal).run(options.every, ending)


if __name__ == "__main__":
    main(sys.argv[1:])

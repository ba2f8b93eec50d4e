"""The task that every design does, and the cloud as all of them see it. Not counted as any design's code.

One run deploys VERSION to the service that has the run's name: reserve a window, canary, a short wait, promote, release the window.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from flows.errors import ActivityError
from project.agents.deployment.client import Cloud, Json

VERSION = "v1"
MINUTES = 60  # of a window: none closes by itself while a benchmark lasts
BAKE = 0.5  # seconds between canary and promotion
#: Where the harness says to each process: the cloud's address, the database, the broker, and a folder of this measurement.
CLOUD, DATABASE, BROKER, FOLDER = "DESIGNS_CLOUD", "DESIGNS_DATABASE", "DESIGNS_BROKER", "DESIGNS_FOLDER"
JOURNAL = "calls.jsonl"


class Recorded(Cloud):
    """The client, with a line for each change that came to an end: by them the harness knows which runs the cloud's faults have hit."""

    def _change(self, *path: str, body: Json | None = None, key: str | None) -> Json:
        began, outcome = time.time(), "ok"
        try:
            return super()._change(*path, body=body, key=key)
        except ActivityError as error:
            outcome = type(error).__name__
            raise
        finally:
            about = (body or {}).get("service") or path[1]
            line = {"at": began, "seconds": time.time() - began, "about": about, "outcome": outcome}
            with Path(os.environ[FOLDER], JOURNAL).open("a") as file:  # one short write to the end: lines of processes do not mix
                file.write(json.dumps(line) + "\n")


def cloud() -> Cloud:
    """The cloud of this measurement."""
    return Recorded(os.environ[CLOUD])


def read_lines(path: Path) -> list[Any]:
    """The whole lines of a file of JSON lines; what a kill has cut off is left out."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text().splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found

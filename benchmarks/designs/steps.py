"""The steps in a row, as the designs without a record of them do it: counted as code of each of those designs.

Keys: a new one for each call. Where a run starts again, nothing is left of the keys that it has used.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any

from benchmarks.designs.task import BAKE, MINUTES, VERSION
from flows.errors import ActivityError, StateConflict
from project.agents.deployment.client import Cloud


def new_key() -> str:
    return str(uuid.uuid4())


def deploy(cloud: Cloud, run: str, check: Callable[[], None] = lambda: None) -> None:
    """Does nothing where the service runs the version already; takes back what it knows of where a step fails."""
    window = deployment = None
    check()
    if cloud.service(run)["version"] == VERSION:
        return
    try:
        window = cloud.reserve(run, MINUTES, key=new_key())["id"]
        check()
        deployment = cloud.canary(run, VERSION, window, key=new_key())["id"]
        time.sleep(BAKE)
        check()
        insist(cloud.promote, deployment, "promoted")
    except BaseException:  # SystemExit, too: so a revoked task ends
        if deployment:
            insist(cloud.rollback, deployment, "rolled_back")
        raise
    finally:
        if window:
            insist(cloud.release, window, "released")


def insist(change: Callable[..., Any], resource: str, wanted: str, tries: int = 5) -> None:
    """A change of something known may be asked for again: the cloud refuses what is so already."""
    for left in reversed(range(tries)):
        try:
            change(resource, key=new_key())
            return
        except ActivityError as error:
            if isinstance(error, StateConflict) and error.details.get("state") == wanted:
                return
            if not left:
                raise
            time.sleep(0.2)

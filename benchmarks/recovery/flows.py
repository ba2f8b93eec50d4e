"""A provider that may be down, and work that has nothing to do with it.

The provider keeps a journal of its own (RECOVERY_FOLDER/calls): when each call began and ended, by the clock of the machine. It is down while
the file RECOVERY_FOLDER/down is there.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from flows import COMPLETE, ESCALATE, Activity, Deadline, Dependency, End, Flow, Ramp, hours, seconds
from flows.errors import CapacityUnavailable

RATE, CEILING = 200, 50
#: Seconds of one call: at the full rate some twenty are under way.
CALL = 0.1
#: Seconds of the other work.
OTHER = 0.02

provider = Dependency(
    "provider",
    rate=RATE,
    ceiling=CEILING,
    ramp=Ramp(start=50, factor=2, every=seconds(1)),
    fails=3,
    within=seconds(10),
    retry_after=hours(1),
)


def folder() -> Path:
    return Path(os.environ["RECOVERY_FOLDER"])


def call(_attempt: Any) -> None:
    began = time.time()
    down = (folder() / "down").exists()
    if not down:
        time.sleep(CALL)
    line = f"{began:.6f} {time.time():.6f} {'down' if down else 'up'}\n"
    journal = os.open(folder() / "calls", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(journal, line.encode())
    finally:
        os.close(journal)
    if down:
        raise CapacityUnavailable


def other(_attempt: Any) -> None:
    time.sleep(OTHER)


class RecoveryPay(Flow):
    """Calls the provider once."""

    pay = Activity(
        call, needs="provider", queue="provider", patience=Deadline(hours=9, then=ESCALATE), timeout=seconds(60), then="done"
    )
    done = End(COMPLETE)


class RecoveryOther(Flow):
    """Other work."""

    work = Activity(other, queue="other", then="done")
    done = End(COMPLETE)

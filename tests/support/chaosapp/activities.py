"""Activities that go wrong in every way, and say so in the journal of the folder that the workflow's input names."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Any

from flows import Candidate
from flows.errors import Transient
from tests.support.chaosapp import journal


def touch(attempt: Any) -> dict[str, Any]:
    """One effect, idempotent by its operation id."""
    folder = attempt.input["folder"]
    journal.write(folder, journal.CALLED, attempt.operation_id, attempt.id)
    if journal.once(folder, attempt.operation_id):
        journal.write(folder, journal.DONE, attempt.operation_id, attempt.id)
    return {"operation": attempt.operation_id, "number": attempt.number}


def slow(attempt: Any) -> dict[str, Any]:
    """Takes as many seconds as the input says."""
    time.sleep(attempt.input["seconds"])
    return touch(attempt)


def held(attempt: Any) -> dict[str, Any]:
    """Begins, then works until the test lets go all, this workflow or this node; the effect comes at the end."""
    folder = attempt.input["folder"]
    journal.write(folder, journal.CALLED, attempt.operation_id, attempt.id)
    signs = [Path(folder, name) for name in ("go", f"go-{attempt.key}", f"go-{attempt.node}")]
    while not any(sign.exists() for sign in signs):
        time.sleep(0.01)
    if journal.once(folder, attempt.operation_id):
        journal.write(folder, journal.DONE, attempt.operation_id, attempt.id)
    journal.write(folder, journal.ENDED, attempt.operation_id, attempt.id)
    return {"operation": attempt.operation_id, "number": attempt.number}


def shaky(attempt: Any) -> dict[str, Any]:
    """Fails the first time, before its effect."""
    if journal.once(attempt.input["folder"], f"{attempt.operation_id}/failed"):
        raise Transient("not yet")
    return touch(attempt)


def hanging(attempt: Any) -> dict[str, Any]:
    """The first time it never returns, and can be interrupted."""
    folder = attempt.input["folder"]
    if journal.once(folder, f"{attempt.operation_id}/hung"):
        journal.write(folder, journal.CALLED, attempt.operation_id, attempt.id)
        while True:
            time.sleep(60)
    return touch(attempt)


def stuck(attempt: Any) -> dict[str, Any]:
    """The first time it never returns, and nothing that Python offers interrupts it: only its process can be ended."""
    folder = attempt.input["folder"]
    if journal.once(folder, f"{attempt.operation_id}/stuck"):
        journal.write(folder, journal.CALLED, attempt.operation_id, attempt.id)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        while True:
            with contextlib.suppress(BaseException):
                time.sleep(60)
    return touch(attempt)


def fatal(attempt: Any) -> dict[str, Any]:
    """The first time it takes its process down."""
    folder = attempt.input["folder"]
    if journal.once(folder, f"{attempt.operation_id}/died"):
        journal.write(folder, journal.CALLED, attempt.operation_id, attempt.id)
        os.kill(os.getpid(), signal.SIGKILL)
    return touch(attempt)


def choose(attempt: Any) -> Candidate:
    """A decision that is always the same."""
    touch(attempt)
    return Candidate("go", {"plan": "as always"})

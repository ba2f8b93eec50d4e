"""What the world outside has seen: one line a call, an effect or an end, appended in one write, so that several processes may share it."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

CALLED, DONE, ENDED = "called", "done", "ended"


def write(folder: str | Path, what: str, operation: str, attempt: str) -> None:
    line = json.dumps({"what": what, "operation": operation, "attempt": attempt, "pid": os.getpid(), "at": time.time()})
    descriptor = os.open(Path(folder, "journal"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)


def once(folder: str | Path, name: str) -> bool:
    """True for the first caller under that name, in whatever process: an effect that is idempotent by its name."""
    marks = Path(folder, "marks")
    marks.mkdir(exist_ok=True)
    try:
        os.close(os.open(marks / name.replace("/", "~"), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def read(folder: str | Path, what: str | None = None) -> list[dict[str, Any]]:
    try:
        lines = Path(folder, "journal").read_text().splitlines()
    except FileNotFoundError:
        return []
    found = [json.loads(line) for line in lines]
    return [line for line in found if what in (None, line["what"])]


def count(folder: str | Path, what: str) -> Counter[str]:
    """How often each operation was called, done or ended. An operation is named without its workflow: node/visit."""
    return Counter(line["operation"].partition("/")[2] for line in read(folder, what))

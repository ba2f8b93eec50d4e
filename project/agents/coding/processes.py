"""Child processes that cannot be left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def own_group(arguments: list[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a group of its own; whatever ends the block, nothing of that group is left running."""
    process = subprocess.Popen(arguments, start_new_session=True, **options)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

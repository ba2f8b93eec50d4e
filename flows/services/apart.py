"""One row that fails holds up no other: what a look does about a row is logged and left, and the next look tries it again."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections

logger = logging.getLogger("outlast.sweeps")


@contextmanager
def apart(what: str, using: str) -> Iterator[None]:
    """What is done about one of several rows. `what` completes "… failed"; whatever is raised is logged.

    Raises:
        Exception: the connection is gone, so that the caller takes another one.
    """
    try:
        yield
    except Exception:
        logger.exception("%s failed", what)
        raw = connections[using].connection
        if raw is None or raw.closed:
            raise

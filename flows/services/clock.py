"""The one clock: PostgreSQL's, through `flows_now()`; tests move it for a session or for a whole database."""

from __future__ import annotations

from datetime import datetime

from flows.store.sql import run


def now(using: str) -> datetime:
    """The durable clock's time."""
    moment: datetime = run("now", "SELECT flows_now()", {}, using)[0][0]
    return moment

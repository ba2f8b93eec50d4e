"""Identities: time-ordered UUIDs for rows that are created often, so that their indexes grow at one end."""

from __future__ import annotations

import os
import time
import uuid


def new_id() -> uuid.UUID:
    """A UUID version 7 (RFC 9562): 48 bits of milliseconds, then random bits."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds & 0xFFFFFFFFFFFF) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return uuid.UUID(int=value)


def operation_id(workflow_id: object, node: str, visit: int) -> str:
    """The identity of a node visit's effect: the same over all attempts, another one for another visit."""
    return f"{workflow_id}/{node}/{visit}"

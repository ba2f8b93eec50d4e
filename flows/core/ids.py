"""Identities: time-ordered UUIDs for rows that are created often, so that their indexes grow at one end."""

from __future__ import annotations

import os
import time
import uuid


def new_id() -> uuid.UUID:
    """A UUID version 7 (RFC 9562): 48 bits of milliseconds, 12 of their fraction (method 3, a quarter of a microsecond), then random bits."""
    milliseconds, rest = divmod(time.time_ns(), 1_000_000)
    value = (milliseconds & 0xFFFFFFFFFFFF) << 80 | 0x7 << 76 | (rest * 4096 // 1_000_000) << 64 | 0x2 << 62
    return uuid.UUID(int=value | int.from_bytes(os.urandom(8), "big") >> 2)


def operation_id(workflow_id: object, node: str, visit: int) -> str:
    """The identity of a node visit's effect: the same over all attempts, another one for another visit."""
    return f"{workflow_id}/{node}/{visit}"


def mitigation_id(operation: str, what: str) -> str:
    """The identity of the call that compensates an operation or releases a commitment: one for each, for ever."""
    return f"{operation}/{what}"

"""CHAOS_COPIES=5: every message that this process publishes, Beat's ticks included, reaches its queue five times."""

from __future__ import annotations

import os
from typing import Any


def install_from_environment() -> None:
    count = int(os.environ.get("CHAOS_COPIES", "1"))
    if count == 1:
        return
    from kombu.transport.redis import Channel

    once = Channel._put

    def many(channel: Any, queue: str, message: Any, **options: Any) -> None:
        for _ in range(count):
            once(channel, queue, message, **options)

    Channel._put = many

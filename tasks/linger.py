"""A short way for hints: a turn without work waits a moment on a Redis list before it gives its slot back.

Whoever publishes looks whether somebody lingers and pushes there; else it sends an ordinary Celery message. Both are only hints. A hint that
falls between (its lingerer died) is found by the dispatch sweep. Works where the broker is Redis; elsewhere nobody ever lingers.
"""

from __future__ import annotations

import functools
import logging
import os
import threading
import time
from typing import Any

import redis
from celery import current_app

from tasks.queues import celery_queue

logger = logging.getLogger("outlast.dispatch")

#: KEYS: who lingers (sorted set: member → until), the hints. ARGV: now. Answers 1 if a hint was left for a lingerer, else 0.
_LEAVE_HINT = """
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])
if redis.call('ZCARD', KEYS[1]) <= redis.call('LLEN', KEYS[2]) then return 0 end
redis.call('LPUSH', KEYS[2], '1')
redis.call('PEXPIRE', KEYS[2], 5000)
return 1
"""


def available() -> bool:
    """Whether the broker is a Redis that can be lingered on."""
    return str(current_app.conf.broker_url or "").startswith(("redis://", "rediss://", "redis+socket://", "unix://"))


def leave_hint(queue: str) -> bool:
    """Leave a hint with somebody who lingers on that queue; False if nobody does (send a message then)."""
    if not available():
        return False
    try:
        return bool(_script()(keys=[_key("lingering", queue), _key("hints", queue)], args=[time.time()]))
    except redis.RedisError as error:
        logger.debug("no hint left: %s", error)
        return False


def wait(queue: str, seconds: float) -> bool:
    """Linger for a hint; True if there was one."""
    if not available():
        return False
    me = f"{os.getpid()}.{threading.get_ident()}"
    lingering, hints = _key("lingering", queue), _key("hints", queue)
    try:
        client = _client()
        client.zadd(lingering, {me: time.time() + seconds + 0.1})
        if client.blpop([hints], timeout=seconds) is not None:
            return True  # and still listed for a moment: this turn looks again before it lets go
        client.zrem(lingering, me)
        # A hint that came between the time-out and the farewell must not be left behind.
        return client.lpop(hints) is not None
    except redis.RedisError as error:
        logger.debug("not lingering: %s", error)
        return False


def _key(kind: str, queue: str) -> str:
    prefix = (current_app.conf.broker_transport_options or {}).get("global_keyprefix", "")
    return f"{prefix}outlast:{kind}:{celery_queue(queue)}"


def _client() -> redis.Redis:
    return _client_of(os.getpid())


@functools.lru_cache(maxsize=1)
def _client_of(_pid: int) -> redis.Redis:
    """One client per process: a connection must not cross a fork."""
    url = str(current_app.conf.broker_url).replace("redis+socket://", "unix://", 1)
    return redis.Redis.from_url(url, socket_timeout=5, socket_connect_timeout=1, health_check_interval=10)


@functools.lru_cache(maxsize=1)
def _script_of(_pid: int) -> Any:
    return _client().register_script(_LEAVE_HINT)


def _script() -> Any:
    return _script_of(os.getpid())

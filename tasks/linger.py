"""A short way for hints: a turn without work waits a moment on a Redis list before it gives its slot back.

Whoever publishes looks whether somebody lingers and pushes there; else it sends an ordinary Celery message. Both are only hints. A hint that
falls between (its lingerer died) is found by the dispatch sweep. Works where the broker is Redis; elsewhere nobody ever lingers.
"""

from __future__ import annotations

import functools
import logging
import os
import platform
import threading
import time
from collections.abc import Sequence
from typing import Any

import redis
from celery import current_app

from tasks.queues import celery_queue

logger = logging.getLogger("outlast.dispatch")

#: KEYS: who lingers (sorted set: member → until). ARGV: now, what the names of the members' own lists begin with. Takes one lingerer off the
#: set and leaves the hint in its own list: each registration stands for one hint, so none is left with somebody who has gone. Answers 1 or 0.
_LEAVE_HINT = """
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])
local chosen = redis.call('ZPOPMAX', KEYS[1])
if #chosen == 0 then return 0 end
redis.call('LPUSH', ARGV[2] .. chosen[1], '1')
redis.call('PEXPIRE', ARGV[2] .. chosen[1], 5000)
return 1
"""

#: KEYS: who lingers, then the Celery queues of this worker. ARGV: me, until. Answers 0 if a message waits there: it wants this slot.
_BEGIN = """
for index = 2, #KEYS do
    if redis.call('LLEN', KEYS[index]) > 0 then return 0 end
end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
return 1
"""


def available() -> bool:
    """Whether the broker is a Redis that can be lingered on."""
    return str(current_app.conf.broker_url or "").startswith(("redis://", "rediss://", "redis+socket://", "unix://"))


def leave_hint(queue: str) -> bool:
    """Leave a hint with somebody who lingers on that queue; False if nobody does (send a message then).

    Raises:
        redis.ConnectionError, redis.TimeoutError: the broker is away; a message would fare no better.
    """
    if not available():
        return False
    try:
        return bool(_script(_LEAVE_HINT)(keys=[_key("lingering", queue)], args=[time.time(), _key("hint", queue) + ":"]))
    except (redis.ConnectionError, redis.TimeoutError):
        raise
    except redis.RedisError as error:
        logger.debug("no hint left: %s", error)
        return False


def wait(queue: str, queues: Sequence[str], seconds: float) -> bool:
    """Linger for a hint; True if there was one. Not while a message waits on any of the worker's `queues`."""
    if not available():
        return False
    me = f"{platform.node()}.{os.getpid()}.{threading.get_ident()}"
    lingering, mine = _key("lingering", queue), f"{_key('hint', queue)}:{me}"
    try:
        client = _client()
        waiting = [f"{_prefix()}{celery_queue(name)}" for name in queues]
        if not _script(_BEGIN)(keys=[lingering, *waiting], args=[me, time.time() + seconds]):
            return False
        if client.blpop([mine], timeout=seconds) is not None:
            return True
        if client.zrem(lingering, me):
            return False
        client.delete(mine)  # a hint came between the time-out and the farewell
        return True
    except redis.RedisError as error:
        logger.debug("not lingering: %s", error)
        return False


def _key(kind: str, queue: str) -> str:
    return f"{_prefix()}outlast:{kind}:{celery_queue(queue)}"


def _prefix() -> str:
    return str((current_app.conf.broker_transport_options or {}).get("global_keyprefix", ""))


def _client() -> redis.Redis:
    return _client_of(os.getpid())


@functools.lru_cache(maxsize=1)
def _client_of(_pid: int) -> redis.Redis:
    """One client per process: a connection must not cross a fork."""
    url = str(current_app.conf.broker_url).replace("redis+socket://", "unix://", 1)
    return redis.Redis.from_url(url, socket_timeout=2, socket_connect_timeout=1, health_check_interval=10)


@functools.lru_cache(maxsize=2)
def _script_of(_pid: int, text: str) -> Any:
    return _client().register_script(text)


def _script(text: str) -> Any:
    return _script_of(os.getpid(), text)

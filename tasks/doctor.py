"""What the doctor looks at in the host's Celery: whether the broker answers and keeps what it is given, and settings that are dangerous.

The figures behind the settings stand in the comments of `project/settings.py`; Celery 5.7 and Redis are meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from celery import current_app

from flows.dispatch import dispatcher
from flows.services.doctor import Ill, Level
from tasks.beat import TICK
from tasks.queues import CLEANUP, CONTROL, celery_queue

#: Messages in a queue that nobody can have meant.
LONG_QUEUE = 10_000


@dataclass(frozen=True, slots=True)
class Rule:
    """A setting of Celery, what it must be, and what happens otherwise."""

    name: str
    sound: Callable[[Any], bool]
    level: Level
    what: str
    way_out: str
    redis: bool = False


def _number(least: float) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int | float) and value >= least


NEVER, WARNING = Level.ERROR, Level.WARNING

RULES = (
    Rule("task_always_eager", lambda v: not v, NEVER, "every hint runs a turn in the process that sends it", "= False"),
    Rule(
        "accept_content",
        lambda v: not {"pickle", "application/x-python-serialize"} & set(v or ()),
        NEVER,
        "who may write to the broker may run any code in the workers",
        '= ["json"]',
    ),
    Rule(
        "task_acks_late",
        lambda v: not v,
        WARNING,
        "a message comes twice when a turn outlasts the broker's patience, and Celery 5.7 ends when it loses its Redis with one in hand",
        "= False",
    ),
    Rule(
        "task_reject_on_worker_lost",
        lambda v: not v,
        NEVER,
        "a message that kills its process comes again, without end",
        "= False",
    ),
    Rule(
        "worker_cancel_long_running_tasks_on_connection_loss",
        lambda v: not v,
        NEVER,
        "losing the broker for a second ends what runs",
        "= False",
    ),
    Rule(
        "task_publish_retry",
        bool,
        WARNING,
        "with the broker down each request that starts something waits six seconds",
        '= True, with task_publish_retry_policy = {"max_retries": 0}',
    ),
    Rule(
        "task_publish_retry_policy",
        lambda v: isinstance(v, Mapping) and v.get("max_retries") == 0,
        WARNING,
        "with the broker down a request that publishes by itself waits",
        '= {"max_retries": 0}',
    ),
    Rule(
        "broker_connection_max_retries",
        lambda v: v is None,
        WARNING,
        "a worker gives its broker up after so many tries",
        "= None",
    ),
    Rule(
        "worker_prefetch_multiplier",
        lambda v: v == 1 or bool(current_app.conf.worker_disable_prefetch),
        WARNING,
        "a worker hoards messages that others could take",
        "= 1, and worker_disable_prefetch = True",
    ),
    Rule(
        "task_ignore_result",
        lambda v: bool(v) or not current_app.conf.result_backend,
        WARNING,
        "each result of a task lies in the result backend for a day",
        "= True, or no result_backend",
    ),
    Rule(
        "broker_transport_options.ack_emulation",
        lambda v: v is False,
        NEVER,
        "a worker of Celery 5.7 ends when it loses its Redis, and a message costs three times as much",
        "= False",
        redis=True,
    ),
    Rule(
        "broker_transport_options.socket_timeout",
        _number(0.1),
        WARNING,
        "a request hangs for ever on a connection that is dead",
        "= 10",
        redis=True,
    ),
    Rule(
        "broker_transport_options.socket_connect_timeout",
        _number(0.1),
        WARNING,
        "a request hangs for ever on a server that does not answer",
        "= 3",
        redis=True,
    ),
)


def settings(_using: str) -> Iterator[Ill]:
    """Celery's settings, and Beat's entry."""
    redis = _is_redis()
    for rule in RULES:
        if rule.redis and not redis:
            continue
        value = _value(rule.name)
        if not rule.sound(value):
            yield Ill(
                "CELERY_SETTING",
                rule.level,
                f"Celery's {rule.name} is {value!r:.60}: {rule.what}.",
                f"{rule.name} {rule.way_out}",
            )
    if not any(one.get("task") == TICK for one in (current_app.conf.beat_schedule or {}).values()):
        yield Ill(
            "NO_TICK_ENTRY", Level.ERROR, "Beat's schedule has no tick: something replaces beat_schedule after the configuration.",
            "Leave beat_schedule to be joined, or add tasks.beat.entries() to it.",
        )  # fmt: skip


def broker(_using: str) -> Iterator[Ill]:
    """Whether hints can be published, and whether somebody takes them."""
    target = dispatcher()
    if target is None:
        yield Ill(
            "NO_DISPATCHER", Level.WARNING, "OUTLAST['DISPATCHER'] is empty: nothing is published, and work is found by the clock alone.",
            'DISPATCHER = "tasks.dispatch.dispatcher"',
        )  # fmt: skip
        return
    try:
        target.health()
    except Exception as error:  # noqa: BLE001 - each transport has errors of its own
        said = str(error).partition("\n")[0][:200]
        yield Ill(
            "BROKER_AWAY", Level.ERROR, f"The broker takes no messages: {type(error).__name__}: {said}",
            "Start it, or correct the broker's address. Runs are not lost: the clock finds them when workers hear again.",
        )  # fmt: skip
        return
    if _is_redis():
        yield from _redis()


def _redis() -> Iterator[Ill]:
    with current_app.connection_for_read() as connection:
        channel: Any = connection.default_channel
        client = channel.client
        for queue in dict.fromkeys(celery_queue(name) for name in (CONTROL, "agents", CLEANUP)):
            length = client.llen(queue)
            if length > LONG_QUEUE:
                yield Ill(
                    "QUEUE_LONG", Level.WARNING, f"{length:,} messages lie in the queue {queue!r}: nobody takes them, or not fast enough.",
                    f"Start workers of it; hints may be thrown away: celery -A PROJECT purge -Q {queue}",
                )  # fmt: skip
        try:
            given = {**client.config_get("maxmemory"), **client.config_get("maxmemory-policy")}
        except Exception:  # noqa: BLE001 - a hosted Redis often refuses CONFIG; then nobody can say
            return
        policy = given.get("maxmemory-policy", "noeviction")
        if policy != "noeviction" and str(given.get("maxmemory", "0")) != "0":
            yield Ill(
                "BROKER_EVICTS", Level.ERROR, f"Redis throws keys away when it is full ({policy}): Celery's bindings are among them.",
                "maxmemory-policy noeviction",
            )  # fmt: skip


def _is_redis() -> bool:
    url = str(current_app.conf.broker_url or current_app.conf.broker_read_url or "")
    return url.partition("+")[0].partition(":")[0] in ("redis", "rediss", "valkey", "valkeys")


def _value(name: str) -> Any:
    head, _, rest = name.partition(".")
    value = getattr(current_app.conf, head, None)
    return (value or {}).get(rest) if rest else value

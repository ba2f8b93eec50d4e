"""While this holds, nothing reaches out of the process: what tries is refused, and named.

    socket          connect, send to an address, look a name up
    database        any statement through Django, on any alias, and any new connection
    process, thread start another one
Of the thread that holds it only, so that a server's other threads go on. What the record itself is read with stands outside it, in a
transaction that the server keeps read-only (`flows.store.history.snapshot`).
"""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

#: What every connection of psycopg is made by. `psycopg.connect` is a copy of the method, made at import, and others may have made theirs.
_CONNECTING = [
    (cls, "_connect_gen", "opens a connection to a database") for cls in psycopg.Connection.__mro__ if "_connect_gen" in vars(cls)
]

#: (object, attribute, what it does, in words)
_WAYS_OUT: tuple[tuple[Any, str, str], ...] = (
    (socket.socket, "connect", "opens a connection"),
    (socket.socket, "connect_ex", "opens a connection"),
    (socket.socket, "sendto", "sends to an address"),
    (socket, "getaddrinfo", "looks a name up"),
    (psycopg.Connection, "connect", "opens a connection to a database"),
    (psycopg.Cursor, "execute", "asks a database"),
    (psycopg.Cursor, "executemany", "asks a database"),
    (BaseDatabaseWrapper, "connect", "opens a connection to a database"),
    (subprocess.Popen, "__init__", "starts a process"),
    (threading.Thread, "start", "starts a thread"),
    *_CONNECTING,
)

#: Two at once would put each other's way out back.
_one_at_a_time = threading.RLock()


class Touched(BaseException):
    """A function that must be pure reached out of the process. No `except Exception` of an author's code takes this for an error of its own."""


class Untouched:
    """What was tried meanwhile, in words; empty is good. A function may have swallowed the refusal."""

    def __init__(self) -> None:
        self.tried: list[str] = []
        self._thread = threading.get_ident()

    def refuse(self, what: str) -> None:
        """Refuse it, in the thread that holds this; others pass."""
        if threading.get_ident() != self._thread:
            return
        self.tried.append(what)
        raise Touched(f"a function of the flow {what}; those that are called in a replay must be pure")


@contextmanager
def untouched() -> Iterator[Untouched]:
    """Let nothing out, for the length of the block.

    Raises:
        Touched: in whatever tries.
    """
    held = Untouched()

    def refuse_statement(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001 - Django's
        held.refuse("asks a database")
        return execute(sql, params, many, context)

    with _one_at_a_time, ExitStack() as stack:
        for owner, name, what in _WAYS_OUT:
            stack.callback(_close(held, owner, name, what))
        for connection in connections.all(initialized_only=True):
            stack.enter_context(connection.execute_wrapper(refuse_statement))
        yield held


def _close(held: Untouched, owner: Any, name: str, what: str) -> Callable[[], None]:
    """Close one way out; the answer opens it again."""
    own = vars(owner).get(name)  # None: it is inherited
    original = getattr(owner, name)

    if isinstance(own, classmethod):
        function = own.__func__

        def of_class(cls: Any, *args: Any, **kwargs: Any) -> Any:
            held.refuse(what)
            return function(cls, *args, **kwargs)

        setattr(owner, name, classmethod(of_class))
    else:

        def of_instance(*args: Any, **kwargs: Any) -> Any:
            held.refuse(what)
            return original(*args, **kwargs)

        setattr(owner, name, of_instance)

    def open_again() -> None:
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)

    return open_again

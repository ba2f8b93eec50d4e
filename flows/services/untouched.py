"""While this holds, nothing reaches out of the process: what tries is refused, and named.

    socket          connect, bind, send through an open one too, look a name up
    database        any statement through Django, on any alias; psycopg's own ways, raw ones too; any new connection
    process, thread start another one, signal one, hand work to a pool
Of the thread that holds it only, so that a server's other threads go on. What the record itself is read with stands outside it, in a
transaction that the server keeps read-only (`flows.store.history.snapshot`).

Python itself says most of it (audit events: there is no way past them); what it does not say is closed by hand. A method that somebody took
off an open socket before (`write = sock.sendall`) is not seen.
"""

from __future__ import annotations

import _posixsubprocess
import _thread
import os
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any, ParamSpec, TypeVar

import psycopg
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

P = ParamSpec("P")
T = TypeVar("T")

_CONNECTS, _SENDS, _LOOKS_UP = "opens a connection", "sends through a socket", "looks a name up"
_CONNECTS_TO_DATABASE, _ASKS = "opens a connection to a database", "asks a database"
_STARTS_PROCESS, _STARTS_THREAD, _SIGNALS = "starts a process", "starts a thread", "signals a process"

#: Audit event → what was tried, in words.
_EVENTS: Mapping[str, str] = {
    "socket.connect": _CONNECTS,
    "socket.bind": "opens a port",
    "socket.sendto": _SENDS,
    "socket.sendmsg": _SENDS,
    "socket.getaddrinfo": _LOOKS_UP,
    "socket.getnameinfo": _LOOKS_UP,
    "socket.gethostbyname": _LOOKS_UP,
    "socket.gethostbyaddr": _LOOKS_UP,
    "subprocess.Popen": _STARTS_PROCESS,
    "os.system": _STARTS_PROCESS,
    "os.posix_spawn": _STARTS_PROCESS,
    "os.spawn": _STARTS_PROCESS,
    "os.exec": _STARTS_PROCESS,
    "os.fork": _STARTS_PROCESS,
    "os.forkpty": _STARTS_PROCESS,
    "os.kill": _SIGNALS,
    "os.killpg": _SIGNALS,
    "signal.pthread_kill": _SIGNALS,
    "_thread.start_new_thread": _STARTS_THREAD,
    "_thread.start_joinable_thread": _STARTS_THREAD,
}

#: What every connection of psycopg is made by. `psycopg.connect` is a copy of the method, made at import, and others may have made theirs.
_CONNECTING = [(cls, "_connect_gen", _CONNECTS_TO_DATABASE) for cls in psycopg.Connection.__mro__ if "_connect_gen" in vars(cls)]
#: What keeps a connection of libpq in `pgconn`, whose own methods are C and cannot be closed.
_HOLD_LIBPQ: tuple[Any, ...] = (psycopg.Connection, psycopg.AsyncConnection)

#: (object, attribute, what it does, in words) of what no audit event says. `Thread.start` besides: refused further in, it would leave the
#: thread listed as being started for ever.
_WAYS_OUT: tuple[tuple[Any, str, str], ...] = (
    (socket.socket, "send", _SENDS),
    (socket.socket, "sendall", _SENDS),
    (ssl.SSLSocket, "send", _SENDS),
    (ssl.SSLSocket, "write", _SENDS),
    (os, "sendfile", _SENDS),
    (os, "write", "writes to a file or a pipe"),
    (psycopg.Connection, "connect", _CONNECTS_TO_DATABASE),
    (psycopg.AsyncConnection, "connect", _CONNECTS_TO_DATABASE),
    (psycopg.Connection, "cursor", _ASKS),
    (psycopg.AsyncConnection, "cursor", _ASKS),
    (psycopg.Connection, "wait", _ASKS),  # every statement of every cursor, copy, stream and transaction
    (psycopg.AsyncConnection, "wait", _ASKS),
    (BaseDatabaseWrapper, "connect", _CONNECTS_TO_DATABASE),
    (_posixsubprocess, "fork_exec", _STARTS_PROCESS),
    (_thread, "start_new_thread", _STARTS_THREAD),  # Python 3.11 does not say it
    (threading.Thread, "start", _STARTS_THREAD),
    (ThreadPoolExecutor, "submit", "hands work to another thread"),
    *_CONNECTING,
)


class Touched(BaseException):
    """A function that must be pure reached out of the process. No `except Exception` of an author's code takes this for an error of its own."""

    def __init__(self, what: str) -> None:
        super().__init__(f"a function of the flow {what}; it must be pure, for it is called again by replays and dry runs")


class Untouched:
    """What was tried meanwhile, in words; empty is good. A function may have swallowed the refusal."""

    def __init__(self) -> None:
        self.tried: list[str] = []

    def refuse(self, what: str) -> None:
        """Refuse it."""
        self.tried.append(what)
        raise Touched(what)


#: Who holds it, by thread. The ways out are closed while there is somebody, and pass everybody else.
_held: dict[int, Untouched] = {}
_closing = threading.Lock()
_closed = ExitStack()
_holders = 0
_hears = False


@contextmanager
def untouched() -> Iterator[Untouched]:
    """Let nothing of this thread out, for the length of the block.

    Raises:
        Touched: in whatever tries.
    """
    held, thread = Untouched(), threading.get_ident()

    def refuse_statement(*_: Any) -> None:
        held.refuse(_ASKS)

    with ExitStack() as stack:
        _enter()
        stack.callback(_leave)
        for connection in connections.all(initialized_only=True):  # of any vendor
            stack.enter_context(connection.execute_wrapper(refuse_statement))
        outer = _held.get(thread)
        _held[thread] = held
        try:
            yield held
        finally:
            if outer is None:
                del _held[thread]
            else:
                _held[thread] = outer


def called(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What a function answers that must be pure, called untouched.

    Raises:
        Touched: it reached out, even if it swallowed the refusal.
    """
    with untouched() as held:
        answer = function(*args, **kwargs)
    if held.tried:
        raise Touched(held.tried[0])
    return answer


def _refuse(what: str) -> None:
    if (held := _held.get(threading.get_ident())) is not None:
        held.refuse(what)


def _hear(event: str, _args: tuple[Any, ...]) -> None:
    if _held and (what := _EVENTS.get(event)) is not None:
        _refuse(what)


def _enter() -> None:
    global _hears, _holders  # noqa: PLW0603 - of the process, as what they stand for is
    with _closing:
        if not _hears:  # never to be taken back, so only a process that replays has it
            sys.addaudithook(_hear)
            _hears = True
        if not _holders:
            for owner, name, what in _WAYS_OUT:
                _closed.callback(_close(owner, name, what))
            for cls in _HOLD_LIBPQ:
                cls.pgconn = property(_libpq, _set_libpq)
                _closed.callback(delattr, cls, "pgconn")
        _holders += 1


def _leave() -> None:
    global _holders  # noqa: PLW0603
    with _closing:
        _holders -= 1
        if not _holders:
            _closed.close()


def _close(owner: Any, name: str, what: str) -> Callable[[], None]:
    """Close one way out; the answer opens it again."""
    own = vars(owner).get(name)  # None: it is inherited
    original = getattr(owner, name)

    if isinstance(own, classmethod):
        function = own.__func__

        def of_class(cls: Any, *args: Any, **kwargs: Any) -> Any:
            _refuse(what)
            return function(cls, *args, **kwargs)

        setattr(owner, name, classmethod(of_class))
    else:

        def of_instance(*args: Any, **kwargs: Any) -> Any:
            _refuse(what)
            return original(*args, **kwargs)

        setattr(owner, name, of_instance)

    def open_again() -> None:
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)

    return open_again


class _Shown:
    """A connection of libpq that may be looked at (Python's collector does), and not used."""

    def __init__(self, pgconn: Any) -> None:
        self._pgconn = pgconn

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._pgconn, name)
        if callable(found):
            _refuse(_ASKS)
        return found


def _libpq(connection: Any) -> Any:
    pgconn = vars(connection).get("pgconn")
    if pgconn is None:  # as without the property: it was never connected
        raise AttributeError("pgconn")
    return _Shown(pgconn) if threading.get_ident() in _held else pgconn


def _set_libpq(connection: Any, pgconn: Any) -> None:
    vars(connection)["pgconn"] = pgconn

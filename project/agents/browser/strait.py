"""The only way out of the browser: a small SOCKS server of this process that leads to the site, and nowhere else.

    open ──once()──► cut: every connection is closed ──► taken: one is let through, and what it carries is a POST
      ▲                ▲  └── it carries something else ──┘   │            │
      └── the site has answered on it, or the block has ended ┘            └── it broke off ──► dead: nothing, until the block has ended

A browser that loses a connection before an answer sends its request again by itself, a POST as well, on a connection of which it thinks that
it may just have been too old. So a form is sent inside `once()`: there is one connection, a fresh one, and nothing to send it again on. What
comes meanwhile waits. What is inside of HTTPS cannot be seen here: there the one connection stays the only one until the block has ended.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum

CONNECT_SECONDS = 10.0
NAME, IPV4, IPV6 = 3, 1, 4
GRANTED, REFUSED = b"\x05\x00\x00\x01" + bytes(6), b"\x05\x02\x00\x01" + bytes(6)


class Way(Enum):
    OPEN = "open"
    CUT = "cut"
    TAKEN = "taken"
    DEAD = "dead"


class Strait:
    """Works from its making until `close`. `secure`: the site is reached by HTTPS."""

    def __init__(self, host: str, port: int, *, secure: bool) -> None:
        self._site, self._secure = (host, port), secure
        self._changed = threading.Condition()
        self._way = Way.OPEN
        self._one: socket.socket | None = None  # the browser's end of the one connection
        self._through: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"socks5://127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._set(Way.DEAD, cut=True)

    @contextmanager
    def once(self) -> Iterator[None]:
        """The form that is sent inside the block goes over one connection, and over no other before it is answered."""
        self._set(Way.CUT, cut=True)
        try:
            yield
        finally:
            self._set(Way.OPEN)

    def _set(self, way: Way, *, cut: bool = False) -> None:
        with self._changed:
            self._way, self._one = way, None
            for one in self._through if cut else ():
                _shut(one)
            self._changed.notify_all()

    def _accept(self) -> None:
        while True:
            try:
                browser, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(browser,), daemon=True).start()

    def _serve(self, browser: socket.socket) -> None:
        with browser, suppress(OSError):
            _read(browser, _read(browser, 2)[1])
            browser.sendall(b"\x05\x00")  # nobody has to say who they are
            if _wanted(browser) != self._site:
                browser.sendall(REFUSED)
                return
            with socket.create_connection(self._site, CONNECT_SECONDS) as site:
                site.settimeout(None)
                if not self._let(browser, site):
                    browser.sendall(REFUSED)
                    return
                try:
                    browser.sendall(GRANTED)
                    back = threading.Thread(target=self._back, args=(site, browser), daemon=True)
                    back.start()
                    self._forth(browser, site)
                    back.join()
                finally:
                    self._gone(browser, site)

    # ------------------------------------------------------------------ arrows

    def _let(self, browser: socket.socket, site: socket.socket) -> bool:
        """Whether this connection is let through; where another one is the one, when that is known."""
        with self._changed:
            self._changed.wait_for(lambda: self._way is not Way.TAKEN)
            if self._way is Way.DEAD:
                return False
            if self._way is Way.CUT:
                self._way, self._one = Way.TAKEN, browser
            self._through |= {browser, site}
            return True

    def _is_wanted(self, browser: socket.socket, first: bytes) -> bool:
        """Whether what it carries may go on; where it is the one, and no POST, the way is left to another."""
        with self._changed:
            if self._one is not browser or self._secure or first.startswith(b"POST "):
                return True
            self._way, self._one = Way.CUT, None
            self._changed.notify_all()
            return False

    def _answered(self, browser: socket.socket) -> None:
        with self._changed:
            if self._one is browser and not self._secure:
                self._way, self._one = Way.OPEN, None
                self._changed.notify_all()

    def _gone(self, browser: socket.socket, site: socket.socket) -> None:
        with self._changed:
            self._through -= {browser, site}
            if self._one is browser:
                self._way, self._one = Way.DEAD, None
                self._changed.notify_all()

    # ------------------------------------------------------------------ what is carried

    def _forth(self, browser: socket.socket, site: socket.socket) -> None:
        with suppress(OSError):
            first = browser.recv(1 << 16)
            if first and self._is_wanted(browser, first):
                site.sendall(first)
                while data := browser.recv(1 << 16):
                    site.sendall(data)
        _shut(browser, site)

    def _back(self, site: socket.socket, browser: socket.socket) -> None:
        with suppress(OSError):
            while data := site.recv(1 << 16):
                self._answered(browser)
                browser.sendall(data)
        _shut(browser, site)


def _shut(*ends: socket.socket) -> None:
    for one in ends:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


def _wanted(browser: socket.socket) -> tuple[str, int]:
    """Where the browser wants to go.

    Raises:
        OSError: it is no request to connect.
    """
    _, _, _, kind = _read(browser, 4)
    if kind == NAME:
        host = _read(browser, _read(browser, 1)[0]).decode("ascii", "replace")
    elif kind in (IPV4, IPV6):
        family, length = (socket.AF_INET, 4) if kind == IPV4 else (socket.AF_INET6, 16)
        host = socket.inet_ntop(family, _read(browser, length))
    else:
        raise OSError(f"an address of kind {kind}")
    (port,) = struct.unpack("!H", _read(browser, 2))
    return host, port


def _read(end: socket.socket, length: int) -> bytes:
    """
    Raises:
        OSError: the other end closed before.
    """
    found = b""
    while len(found) < length:
        more = end.recv(length - len(found))
        if not more:
            raise OSError("closed")
        found += more
    return found

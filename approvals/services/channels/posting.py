"""One POST to somewhere outside, with the standard library: to the address that was looked at, without following anything, within a time.

A name is looked up once, all its addresses are judged, and the connection is made to one of them: a name that answers differently the second
time leads nowhere else. Proxies of the environment are not used. Whoever answers by a byte now and then is given up on when all of it has taken
too long: others wait to be told.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import SplitResult, urlsplit

#: So much of an answer is read.
READ = 1024

#: So many times the span of a step all of them may take: connect, send, hear, read.
STEPS = 4

#: Addresses of this network carry an IPv4 address in their last four bytes (RFC 6052).
NAT64 = ipaddress.ip_network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class PrivateAddressError(Exception):
    """The host is on this machine or in a private network; nothing was sent."""


class RefusedError(Exception):
    """The other side did not answer with a 2xx; a redirect is not followed."""


class _Connection(http.client.HTTPConnection):
    """To an address, in the name of a host; with TLS where there is a context, which checks that name."""

    def __init__(self, parts: SplitResult, address: str, timeout: float, context: ssl.SSLContext | None) -> None:
        self.default_port = 443 if context else 80
        super().__init__(str(parts.hostname), parts.port or self.default_port, timeout=timeout)
        self._address, self._tls = address, context
        self.over = False

    def connect(self) -> None:
        """Open the socket."""
        self.sock = socket.create_connection((self._address, self.port), self.timeout)
        if self._tls:
            self.sock = self._tls.wrap_socket(self.sock, server_hostname=self.host, do_handshake_on_connect=False)
            self.sock.do_handshake()
        if self.over:
            raise TimeoutError

    def give_up(self) -> None:
        """From another thread: whatever is waited for does not come any more."""
        self.over = True
        if self.sock is not None:
            with suppress(OSError):
                socket.socket.shutdown(self.sock, socket.SHUT_RDWR)


def post(url: str, body: bytes, headers: Mapping[str, str], *, timeout: float, private: bool) -> None:
    """Send it.

    Args:
        url: https, or http. timeout: seconds, of each step; all of them may take `STEPS` times that. private: it may go to this machine or a
            private network.
    Raises:
        PrivateAddressError, RefusedError: as they say. OSError, http.client.HTTPException: it was not reached.
    """
    parts = urlsplit(url)
    context = ssl.create_default_context() if parts.scheme == "https" else None
    connection = _Connection(parts, _address(parts, private=private), timeout, context)
    watch = threading.Timer(STEPS * timeout, connection.give_up)
    watch.daemon = True
    watch.start()
    try:
        connection.request("POST", (parts.path or "/") + (f"?{parts.query}" if parts.query else ""), body, dict(headers))
        answer = connection.getresponse()
        answer.read(READ)
    finally:
        watch.cancel()
        connection.close()
    if connection.over:
        raise TimeoutError
    if not 200 <= answer.status < 300:
        raise RefusedError(str(answer.status))


def _address(parts: SplitResult, *, private: bool) -> str:
    port = parts.port or (443 if parts.scheme == "https" else 80)
    found = [str(entry[4][0]) for entry in socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)]
    if not private and not all(is_public(ipaddress.ip_address(one.partition("%")[0])) for one in found):
        raise PrivateAddressError(f"{parts.hostname} leads to an address that is not public")
    return found[0]


def is_public(address: Address) -> bool:
    """Whether an address is one of the open network, also where it only wraps another one."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if address in NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)

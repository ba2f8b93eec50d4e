"""No network in a test: a call of author code to another machine is refused where it is made, and again at the end of the run.

Twice, because an activity may catch the first: it looks like a provider that is away, and the flow would go on as if that were so. The
database's own connection is made by libpq and is not concerned; addresses of this machine are let through, for servers of the test's own.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class NetworkRefused(OSError):
    """A test reached for another machine."""


class Guard:
    """What was refused and nobody has been told of yet."""

    def __init__(self) -> None:
        self.refused: list[str] = []

    def look(self, host: object) -> None:
        """Raises NetworkRefused: the host is another machine."""
        if is_here(host):
            return
        self.refused.append(str(host))
        raise NetworkRefused(
            f"A test reached for {host}. Replace the provider by one of the test's own, or say @pytest.mark.outlast(network=True)."
        )

    def tell(self) -> None:
        """Raises AssertionError: something was refused since the last time."""
        told, self.refused = self.refused, []
        assert not told, (
            f"reached for {', '.join(sorted(set(told)))}; replace the provider by one of the test's own, "
            "or say @pytest.mark.outlast(network=True)"
        )


def is_here(host: object) -> bool:
    """Whether an address is this machine's."""
    if host is None:
        return True
    text = host.decode(errors="replace") if isinstance(host, bytes) else str(host)
    if text in ("", "localhost"):
        return True
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return text == socket.gethostname()
    return address.is_loopback or address.is_unspecified


@contextmanager
def no_network() -> Iterator[Guard]:
    """Refuse connections and look-ups of names beyond this machine for the length of the block, in every thread."""
    guard = Guard()
    connect, connect_ex, look_up = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def host_of(sock: socket.socket, address: Any) -> object:
        return address[0] if sock.family in (socket.AF_INET, socket.AF_INET6) else None

    def connecting(sock: socket.socket, address: Any) -> None:
        guard.look(host_of(sock, address))
        connect(sock, address)

    def connecting_ex(sock: socket.socket, address: Any) -> int:
        guard.look(host_of(sock, address))
        return connect_ex(sock, address)

    def looking_up(host: Any, *args: Any, **options: Any) -> Any:
        guard.look(host)
        return look_up(host, *args, **options)

    names: Any = socket.socket
    module: Any = socket
    names.connect, names.connect_ex, module.getaddrinfo = connecting, connecting_ex, looking_up
    try:
        yield guard
    finally:
        names.connect, names.connect_ex, module.getaddrinfo = connect, connect_ex, look_up

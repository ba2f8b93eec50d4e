"""Where a POST may go: to no machine of our own network, whatever its name says, and to nowhere else than was looked at."""

from __future__ import annotations

import http.client
import ipaddress
import socket
import threading
from contextlib import suppress
from typing import Any

import pytest

from approvals.services.channels import posting
from approvals.services.channels.posting import PrivateAddressError, is_public, post

pytestmark = pytest.mark.req("F5")

PRIVATE = [
    "127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
    "255.255.255.255", "240.0.0.1", "192.0.2.1", "198.18.0.1",
    "::", "::1", "fe80::1", "fc00::1", "fd12:3456::1", "ff02::1", "2001:db8::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a00:1::1",
]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_of_our_own_is_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"]
)
def test_an_address_of_the_open_network_is(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


class Line:
    """A socket that notes where it leads and takes what is sent."""

    def __init__(self, where: Any) -> None:
        self.where, self.sent, self.closed = where, b"", False

    def sendall(self, data: bytes) -> None:
        self.sent += bytes(data)

    def makefile(self, *_: Any, **__: Any) -> Any:
        import io

        return io.BytesIO(b"HTTP/1.1 204 No Content\r\n\r\n")

    def do_handshake(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


class Tls:
    """A TLS context that notes whose name it would check."""

    def __init__(self) -> None:
        self.checked: list[str] = []

    def wrap_socket(self, plain: Line, *, server_hostname: str, do_handshake_on_connect: bool) -> Line:
        assert not do_handshake_on_connect, "it could not be given up on"
        self.checked.append(server_hostname)
        return plain


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Any:
    """No network: what names lead to, and what was connected to."""
    names: dict[str, list[str]] = {}
    made: list[Line] = []
    asked: list[str] = []

    def look_up(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in names[host]]

    def connect(where: Any, timeout: float) -> Line:
        made.append(Line(where))
        return made[-1]

    tls = Tls()
    monkeypatch.setattr(posting.socket, "getaddrinfo", look_up)
    monkeypatch.setattr(posting.socket, "create_connection", connect)
    monkeypatch.setattr(posting.ssl, "create_default_context", lambda: tls)
    return names, made, asked, tls


def test_the_connection_is_made_to_what_was_looked_at_in_the_name_of_the_host(wire: Any) -> None:
    """The name is looked up once: a second answer, to somewhere else, is never asked for."""
    names, made, asked, tls = wire
    names["hooks.example"] = ["8.8.8.8", "1.1.1.1"]
    post("https://hooks.example/a/b?c=d", b"{}", {"webhook-id": "1"}, timeout=1, private=False)
    (line,) = made
    assert (line.where, asked, tls.checked, line.closed) == (("8.8.8.8", 443), ["hooks.example"], ["hooks.example"], True)
    head = line.sent.decode()
    assert head.startswith("POST /a/b?c=d HTTP/1.1\r\nHost: hooks.example\r\n")
    assert "webhook-id: 1\r\n" in head


@pytest.mark.parametrize("found", [["127.0.0.1"], ["8.8.8.8", "10.0.0.1"], ["fe80::1%eth0"], ["::ffff:169.254.169.254"]])
def test_a_name_that_leads_into_our_network_is_refused_before_anything_is_sent(wire: Any, found: list[str]) -> None:
    names, made, *_ = wire
    names["hooks.example"] = found
    with pytest.raises(PrivateAddressError, match="leads to an address that is not public"):
        post("https://hooks.example/", b"{}", {}, timeout=1, private=False)
    assert made == []
    post("http://hooks.example:8080", b"{}", {}, timeout=1, private=True)
    assert made[0].sent.startswith(b"POST / HTTP/1.1\r\nHost: hooks.example:8080\r\n")


@pytest.mark.parametrize(
    "first", [b"", b"HTTP/1.1 204 No Content\r\nX-Slow: ", b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n"]
)
def test_who_answers_by_a_byte_now_and_then_is_given_up_on(first: bytes) -> None:
    """Each byte is in time, and all of them together would take an hour."""
    over = threading.Event()

    def drip(server: socket.socket) -> None:
        line, _ = server.accept()
        with line, suppress(OSError):
            line.recv(65536)
            line.sendall(first)
            while not over.wait(0.05):
                line.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=drip, args=(server,))
        thread.start()
        bound = threading.Timer(10, over.set)  # so long at most the test waits, where nobody gives up
        bound.start()
        try:
            with pytest.raises((OSError, http.client.HTTPException)):
                post(f"http://127.0.0.1:{server.getsockname()[1]}/", b"{}", {}, timeout=0.2, private=True)
            assert not over.is_set()
        finally:
            over.set()
            bound.cancel()
            thread.join()

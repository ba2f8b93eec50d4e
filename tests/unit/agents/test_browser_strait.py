"""The browser's way out, and its end: one place, one connection for what is sent, and no browser without its worker."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing

import psutil
import pytest

from project.agents.browser import pipe
from project.agents.browser.strait import Strait
from tests.support.cloud import until

pytestmark = pytest.mark.req("O6")

POST, GET = b"POST / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"


class Server:
    """A site that answers when it is told to."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(20)
        self.port: int = self.listener.getsockname()[1]

    def take(self) -> socket.socket:
        """The next connection, with what came first on it read."""
        connection, _ = self.listener.accept()
        connection.settimeout(20)
        return connection


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.listener.close()


def way(strait: Strait, port: int, host: str = "127.0.0.1") -> socket.socket | None:
    """A connection as a browser asks for one; None where it is refused."""
    end = socket.create_connection(("127.0.0.1", int(strait.address.rpartition(":")[2])), 20)
    end.sendall(b"\x05\x01\x00")
    assert end.recv(2) == b"\x05\x00"
    end.sendall(b"\x05\x01\x00\x03" + bytes([len(host)]) + host.encode() + port.to_bytes(2, "big"))
    answer = end.recv(10)
    if answer[1] == 0:
        return end
    end.close()
    return None


def test_it_leads_to_the_site_and_nowhere_else(server: Server) -> None:
    with closing(Strait("127.0.0.1", server.port, secure=False)) as strait:
        end = way(strait, server.port)
        assert end is not None
        with end, server.take() as there:
            end.sendall(GET)
            assert there.recv(100) == GET
            there.sendall(b"yes")
            assert end.recv(100) == b"yes"
        assert way(strait, server.port + 1) is None
        assert way(strait, server.port, "localhost") is None


def test_what_is_sent_has_one_connection_and_no_other_before_its_answer(server: Server) -> None:
    with closing(Strait("127.0.0.1", server.port, secure=False)) as strait:
        old = way(strait, server.port)
        assert old is not None
        with old, server.take(), strait.once():
            assert old.recv(1) == b"", "what was open is closed"
            end = way(strait, server.port)
            assert end is not None
            with end, server.take() as there:
                end.sendall(POST)
                assert there.recv(100) == POST
                late: list[socket.socket | None] = []
                asking = threading.Thread(target=lambda: late.append(way(strait, server.port)))
                asking.start()
                there.close()  # without an answer
                assert end.recv(1) == b""
                asking.join(20)
                assert late == [None], "there is nothing to send it again on"
        with closing(way(strait, server.port)) as after:  # type: ignore[type-var]
            assert after is not None


def test_with_the_answer_the_way_is_open_again(server: Server) -> None:
    with closing(Strait("127.0.0.1", server.port, secure=False)) as strait, strait.once():
        icon = way(strait, server.port)
        assert icon is not None
        with icon, server.take():
            icon.sendall(GET)
            assert icon.recv(1) == b"", "what is no form leaves the way to the form"
        end = way(strait, server.port)
        assert end is not None
        with end, server.take() as there:
            end.sendall(POST)
            assert there.recv(100) == POST
            there.sendall(b"HTTP/1.1 303 See other\r\n")
            assert end.recv(4) == b"HTTP"
            with closing(way(strait, server.port)) as other:  # type: ignore[type-var]
                assert other is not None


def test_inside_https_the_one_connection_stays_the_only_one(server: Server) -> None:
    with closing(Strait("127.0.0.1", server.port, secure=True)) as strait, strait.once():
        end = way(strait, server.port)
        assert end is not None
        with end, server.take() as there:
            there.sendall(b"\x16 hello")
            assert end.recv(2) == b"\x16 "
        assert way(strait, server.port) is None


HOLDS = """
import sys, tempfile
from pathlib import Path
from project.agents.browser.pipe import Tab, running
with tempfile.TemporaryDirectory() as folder, running(Path(folder), "--no-sandbox") as ends:
    print(Tab(*ends).do("1 + 1"), flush=True)
    sys.stdin.read()
"""


@pytest.mark.browser
@pytest.mark.skipif(pipe.find() is None, reason="no Chromium here (Debian: apt-get install chromium)")
def test_a_killed_worker_leaves_no_browser() -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"2\n"
        browser = psutil.Process(worker.pid).children(recursive=True)
        assert browser
        os.kill(worker.pid, signal.SIGKILL)
    until(lambda: not any(lives(one) for one in browser))


def lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False

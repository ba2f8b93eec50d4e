"""The cloud's client says of a failure what is known, in the words of `flows.errors`; the feed skips nothing."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flows.core.effects import OperationStatus, after_error
from flows.errors import AmbiguousOutcome, CapacityUnavailable, CompetenceFailure, StateConflict, Transient
from project.agents.deployment.client import Cloud
from project.agents.deployment.feed import Feed
from tests.support.cloud import *  # noqa: F403 - fixtures are found by their names
from tests.support.cloud import Wire, new_key


@pytest.fixture
def cloud(wire: Wire) -> Cloud:
    return wire.process.client(timeout=20)


def read_whole(peer: socket.socket) -> None:
    """Reads the request to its end: who closes over unread bytes resets the connection, and the answer is lost with it."""
    with peer.makefile("rb") as request:
        length = 0
        while (line := request.readline()).strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        request.read(length)


@pytest.fixture
def answering() -> Iterator[Callable[[bytes | None], str]]:
    """`answering(bytes)` is the address of a server that reads each request and says just that; None says nothing."""
    ending, sockets, threads = threading.Event(), [], []

    def serve(listener: socket.socket, answer: bytes | None) -> None:
        while not ending.is_set():
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer:
                read_whole(peer)
                if answer is None:
                    ending.wait(30)
                else:
                    peer.sendall(answer)

    def start(answer: bytes | None) -> str:
        sockets.append(socket.create_server(("127.0.0.1", 0)))
        threads.append(threading.Thread(target=serve, args=(sockets[-1], answer)))
        threads[-1].start()
        return f"http://127.0.0.1:{sockets[-1].getsockname()[1]}"

    yield start
    ending.set()
    for listener in sockets:
        listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        listener.close()
    for thread in threads:
        thread.join()


def change(cloud: Cloud) -> Any:
    return cloud.reserve("shop", 5, key=new_key())


def question(cloud: Cloud) -> Any:
    return cloud.operation("a/b/1")


def setting(cloud: Cloud) -> Any:
    return cloud.set_health("shop", healthy=True)


def http_answer(status: str, body: str, *headers: str) -> bytes:
    return "\r\n".join([f"HTTP/1.0 {status}", *headers, "", body]).encode()


def test_the_whole_way(cloud: Cloud, wire: Wire) -> None:
    service, key = wire.service, new_key()
    window = cloud.reserve(service, 5, key=key)
    assert cloud.operation(key) == {"state": "happened", "resource": window["id"], "response": window}
    assert cloud.window(window["id"]) == window | {"state": "open"}
    first = cloud.canary(service, "1.0", window["id"], key=None)
    cloud.promote(first["id"], key=new_key())
    second = cloud.canary(service, "2.0", window["id"], key=new_key())
    assert cloud.set_slo(service, 0.4) == cloud.slo(service) == {"error_rate": 0.4, "ok": False}
    assert cloud.set_health(service, healthy=False) == cloud.health(service) == {"healthy": False}
    assert cloud.rollback(second["id"], key=new_key()) == cloud.deployment(second["id"])
    cloud.release(window["id"], key=new_key())
    running = {"service": service, "version": "1.0", "deployment": first["id"]}
    assert cloud.service(service) == {**running, "healthy": False, "error_rate": 0.4, "ok": False}
    verbs = [effect["verb"] for effect in cloud.ledger(service)["effects"]]
    assert verbs == ["reserve", "canary", "promote", "canary", "rollback", "release"]
    assert len(cloud.ledger()["effects"]) >= len(verbs)
    assert cloud.faults(slow=0.5, seed=3)["slow"] == 0.5
    assert cloud.faults()["slow"] == 0


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize("call", [change, question, setting])
def test_where_nobody_listens_nothing_was_sent(call: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(Transient, match="cannot be reached") as caught:
        call(Cloud(address))
    assert after_error(caught.value) is OperationStatus.FAILED


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(None, id="a time-out"),
        pytest.param(b"", id="no answer"),
        pytest.param(b"HTTP/1.0 2", id="half a head"),
        pytest.param(http_answer("200 OK", '{"id": ', "Content-Length: 100"), id="half a body"),
        pytest.param(http_answer("200 OK", "<html>"), id="not JSON"),
        pytest.param(http_answer("500 Internal Server Error", "{}"), id="500"),
        pytest.param(http_answer("502 Bad Gateway", "[]"), id="502"),
    ],
)
@pytest.mark.parametrize(("call", "expected"), [(change, AmbiguousOutcome), (question, Transient), (setting, Transient)])
def test_without_a_clear_answer_nobody_knows(answering: Any, answer: bytes | None, call: Any, expected: type[Exception]) -> None:
    with pytest.raises(expected) as caught:
        call(Cloud(answering(answer), timeout=0.2 if answer is None else 5))
    assert type(caught.value) is expected
    if call is change:
        assert after_error(caught.value) is OperationStatus.UNCERTAIN


@pytest.mark.parametrize(("call", "expected"), [(change, CapacityUnavailable), (question, Transient)])
def test_no_capacity(answering: Any, call: Any, expected: type[Exception]) -> None:
    address = answering(http_answer("503 Service Unavailable", '{"error": "busy"}', "Retry-After: 7"))
    with pytest.raises(expected, match="503 busy") as caught:
        call(Cloud(address))
    assert (type(caught.value), caught.value.retry_after) == (expected, 7.0)  # type: ignore[attr-defined]


def test_a_conflict_names_the_state(cloud: Cloud, wire: Wire) -> None:
    window = cloud.reserve(wire.service, 5, key=new_key())["id"]
    cloud.release(window, key=new_key())
    with pytest.raises(StateConflict, match=f"{window} is released") as caught:
        cloud.canary(wire.service, "2.0", window, key=new_key())
    assert caught.value.details == {"status": 409, "error": "conflict", "state": "released"}


def test_a_wrong_request_is_for_a_person(cloud: Cloud, wire: Wire) -> None:
    key = new_key()
    cloud.reserve(wire.service, 5, key=key)
    for wrong in [
        lambda: cloud.reserve(wire.service, 6, key=key),
        lambda: cloud.reserve("", 6, key=new_key()),
        lambda: cloud.promote("../ledger", key=new_key()),
        lambda: cloud.deployment("dep-0"),
        lambda: cloud.faults(colour=1),
        lambda: cloud.release("win-0", key="clé"),
        lambda: cloud.release("win-0", key="a\r\nb"),
        lambda: cloud.release("win-0", key=""),
    ]:
        with pytest.raises(CompetenceFailure):
            wrong()
    assert cloud.ledger(wire.service)["summary"]["applied"] == {key: 1}


@pytest.mark.parametrize(
    ("fault", "state"), [("error_before", "absent"), ("error_after", "happened"), ("lose_response", "happened")]
)
def test_after_a_fault_of_the_cloud_the_operation_tells(cloud: Cloud, wire: Wire, fault: str, state: str) -> None:
    key = new_key()
    cloud.faults(**{fault: 1.0})
    with pytest.raises(AmbiguousOutcome):
        cloud.reserve(wire.service, 5, key=key)
    assert cloud.operation(key)["state"] == state


def test_a_blind_cloud_is_to_be_asked_later(cloud: Cloud) -> None:
    cloud.faults(blind=True)
    with pytest.raises(Transient, match="503 blind"):
        cloud.operation(new_key())


def test_an_address_without_a_host_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="an address like"):
        Cloud("localhost")


def test_the_client_needs_no_settings_and_the_cloud_loads_no_flows() -> None:
    program = (
        "import sys, project.agents.deployment.feed\nfrom django.conf import settings\nassert not settings.configured\n"
        "assert 'flows.models' not in sys.modules and 'flows.api' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    program = "import sys, project.agents.deployment.cloud\nassert not any(name.split('.')[0] == 'flows' for name in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


# ---------------------------------------------------------------------- the feed


def test_the_feed_delivers_all_and_its_cursor_is_always_safe(cloud: Cloud, wire: Wire) -> None:
    feed = Feed(cloud)
    list(feed.page())
    start = feed.cursor
    window = cloud.reserve(wire.service, 5, key=None)["id"]
    for _ in range(6):
        cloud.canary(wire.service, "2.0", window, key=None)
    cloud.faults(duplicate_events=1.0, seed=3)
    page = feed.page()
    next(page)
    assert feed.cursor == start  # broken off here, the whole page comes again
    page = list(feed.page())
    assert len(page) == 2 * len({event["id"] for event in page}) == 14
    assert feed.cursor == max(event["cursor"] for event in page)
    assert list(feed.page()) == []


def test_following_the_feed_outlasts_the_cloud(own: Wire) -> None:
    cloud, ending = own.process.client(), threading.Event()
    window = own.window()["id"]
    followed = Feed(cloud).follow(0.01, ending)
    assert next(followed)["key"] == window
    own.process.kill()
    waiting, heard = threading.Event(), []

    def listen() -> None:
        waiting.set()
        heard.append(next(followed))
        ending.set()
        heard.extend(followed)

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    waiting.wait()
    own.process.start()
    deployment = own.canary("2.0", window)["id"]
    listener.join()
    assert [event["key"] for event in heard] == [deployment]

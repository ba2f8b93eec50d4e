"""A small cloud as a process of its own: change windows, canaries, health, an event feed, over HTTP and JSON.

    python -m project.agents.deployment.cloud --port P --data FILE [--seed N]

Port 0 takes a free one. As soon as connections are accepted, one line of JSON on stdout names the address. This file knows
HTTP and when the faults strike; the rules are in changes.py, what was done in ledger.py.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import logging
import os
import signal
import socket
import socketserver
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from project.agents.deployment.changes import BOOLEAN, NUMBER, Json, Refused, checked
from project.agents.deployment.faults import Faults
from project.agents.deployment.ledger import Ledger

log = logging.getLogger("deployment_agent.cloud")

LARGEST_BODY = 64 * 1024


class NoAnswer(Exception):
    """The connection is closed, and nothing is said."""


class Server(ThreadingHTTPServer):
    """The state that the requests share."""

    daemon_threads = True  # a request that is being slow on purpose does not keep the process alive
    request_queue_size = 128

    def __init__(self, port: int, data: Path, seed: int) -> None:
        self.ledger, self.faults = Ledger(data), Faults(seed)
        self._lock = threading.Lock()
        self._in_hand: Counter[str] = Counter()
        super().__init__(("127.0.0.1", port), Handler)

    def server_bind(self) -> None:
        """Without the look-up of the host's name that http.server does here: it may take seconds where DNS is away."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    def server_close(self) -> None:
        super().server_close()
        self.ledger.close()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @contextlib.contextmanager
    def holding(self, key: str | None) -> Iterator[None]:
        """While this lasts, the request with that key may still have its effect."""
        if key is None:
            yield
            return
        with self._lock:
            self._in_hand[key] += 1
        try:
            yield
        finally:
            with self._lock:
                self._in_hand[key] -= 1
                self._in_hand += Counter()  # drops what is at zero

    def operation(self, key: str) -> Json:
        """What became of it. "absent" also promises that it will not be carried out later, so it is not said of one in hand."""
        if self.faults.switches.blind:
            raise Refused(503, "blind", message="nobody can say now what became of it")
        with self._lock:  # before the record is read: what leaves our hands in between is in the record
            in_hand = key in self._in_hand
        found = self.ledger.operation(key)
        if in_hand and found["state"] == "absent":
            raise Refused(503, "in_hand", message="that request is being worked upon")
        return found


class Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = 30  # for a peer that does not finish its request

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_PUT(self) -> None:
        self._answer(self._put)

    def do_POST(self) -> None:
        self._answer(self._post)

    # ------------------------------------------------------------------ routes

    def _get(self, path: list[str], query: dict[str, str]) -> Any:
        ledger = self.server.ledger
        match path:
            case ["operations", key]:
                time.sleep(self.server.faults.of_question().delay)
                return self.server.operation(key)
            case ["windows", id]:
                return ledger.window(id)
            case ["deployments", id]:
                return ledger.deployment(id)
            case ["services", service]:
                return ledger.service(service)
            case ["health", service]:
                return {"healthy": ledger.service(service)["healthy"]}
            case ["slo", service]:
                return {name: ledger.service(service)[name] for name in ("error_rate", "ok")}
            case ["events"]:
                after = query.get("after", "0")
                if not after.isdecimal():
                    raise Refused(422, "invalid", message=f"after must be a number, got {after!r}")
                return self.server.faults.of_feed(ledger.events(min(int(after), 2**63 - 1)))
            case ["ledger"]:
                return ledger.everything(query.get("service"))
            case ["faults"]:
                return dataclasses.asdict(self.server.faults.switches)
        raise Refused(404, "unknown_path")

    def _put(self, path: list[str], query: dict[str, str]) -> Any:
        ledger = self.server.ledger
        match path:
            case ["health", service]:
                return ledger.set_health(service, **checked(self._body(), {"healthy": BOOLEAN}))
            case ["slo", service]:
                return ledger.set_slo(service, **checked(self._body(), {"error_rate": NUMBER}, {"ok": BOOLEAN}))
            case ["faults"]:
                try:
                    return dataclasses.asdict(self.server.faults.set(self._body()))
                except ValueError as error:
                    raise Refused(422, "invalid", message=str(error)) from None
        raise Refused(404, "unknown_path")

    def _post(self, path: list[str], query: dict[str, str]) -> Any:
        match path:
            case ["windows"]:
                return self._change("reserve", None)
            case ["windows", id, "release"]:
                return self._change("release", id)
            case ["deployments"]:
                return self._change("canary", None)
            case ["deployments", id, "promote" | "rollback" as verb]:
                return self._change(verb, id)
        raise Refused(404, "unknown_path")

    def _change(self, verb: str, resource: str | None) -> Json:
        """One effect, with its faults. Both after-faults strike whatever became of it: a refusal can get lost, too."""
        key, faults = self.headers.get("Idempotency-Key"), self.server.faults
        fate = faults.of_post()
        with self.server.holding(key):
            time.sleep(fate.delay)
            if fate.error_before:
                raise Refused(500, "internal_error")
            try:
                response = self.server.ledger.apply(verb, resource, self._body(), key, forget=faults.switches.forget_keys)
            finally:
                if fate.lose_response:
                    raise NoAnswer
                if fate.error_after:
                    raise Refused(500, "internal_error")
        return response

    # ------------------------------------------------------------------ HTTP

    def _answer(self, route: Any) -> None:
        url = urlsplit(self.path)
        path = [unquote(part) for part in url.path.split("/")[1:]]  # split first: a key's own slashes come quoted
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        try:
            self.content = self._content()  # also where nobody wants it: closing on unread bytes would tear the answer away
            status, body = 200, route(path, query)
        except NoAnswer:
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
            return
        except Refused as refused:
            status, body = refused.status, refused.body
        except sqlite3.OperationalError as error:  # another process holds the file: nothing was done
            log.warning("%s %s: %s", self.command, self.path, error)
            status, body = 503, {"error": "busy", "message": str(error)}
        except Exception:
            log.exception("%s %s", self.command, self.path)
            status, body = 500, {"error": "internal_error"}
        self._send(status, json.dumps(body).encode())

    def _send(self, status: int, content: bytes) -> None:
        with contextlib.suppress(ConnectionError, TimeoutError):  # the peer has given up: it may ask again
            self.send_response(status)
            if status == 503:
                self.send_header("Retry-After", "1")
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    def _content(self) -> bytes:
        length = self.headers.get("Content-Length") or "0"
        if not length.isdecimal() or int(length) > LARGEST_BODY:
            raise Refused(413, "too_large")
        return self.rfile.read(int(length))

    def _body(self) -> Json:
        try:
            body = json.loads(self.content or b"{}")
        except ValueError as error:
            raise Refused(422, "invalid", message=str(error)) from None
        if not isinstance(body, dict):
            raise Refused(422, "invalid", message="the body must be an object")
        return body

    def log_message(self, format: str, *arguments: Any) -> None:
        log.debug(format, *arguments)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="cloud", description="A small cloud for the deployment agent.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    with Server(options.port, options.data, options.seed) as server:
        for sign in (signal.SIGTERM, signal.SIGINT):
            signal.signal(sign, lambda *_: sys.exit(0))
        sys.stdout.write(json.dumps({"address": server.address, "pid": os.getpid()}) + "\n")
        sys.stdout.flush()
        server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])

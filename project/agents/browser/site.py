"""The small town hall's web site as a process of its own, on this machine alone: what the agent is tried on.

    python -m project.agents.browser.site [--port P] [--idle SECONDS] [--checks-after SECONDS]

Port 0 takes a free one. As soon as connections are accepted, one line of JSON on stdout names the address. `--checks-after`: an official accepts
each document so long after it came. Beside the pages there is what no site has:

    GET /events?after=N        what the site says to the outside: which documents were checked
    GET /control/ledger        all that was ever done here
    POST /control              {"expire": true}, {"layout": 2}, {"check": ["D-1", "accepted"]}; {"lose": 1}: the next permit is received, and the
                               answer to it gets lost
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import socketserver
import sys
import threading
from http.server import ThreadingHTTPServer
from typing import Any
from urllib.parse import quote, urlsplit

from project.agents.browser import leaves
from project.agents.browser.leaves import NOTICE
from project.agents.browser.office import LAYOUTS, Asked, Office, Wrong
from project.agents.browser.wire import Fields, Wire

LOGIN = (Asked("user", "Name"), Asked("password", "Password", "password"))
DOCUMENT = (Asked("reference", "Your reference"), Asked("file", "The document", "file"))


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, *, idle: float = 600.0, checks_after: float | None = None) -> None:
        self.office, self.checks_after = Office(idle), checks_after
        self.lose = 0
        super().__init__(("127.0.0.1", port), Handler)

    def server_bind(self) -> None:
        """Without the look-up of the host's name that http.server does here."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def check_later(self, number: str) -> None:
        if self.checks_after is not None:
            timer = threading.Timer(self.checks_after, self.office.check, (number, "accepted"))
            timer.daemon = True
            timer.start()


class Handler(Wire):
    server: Server

    @property
    def office(self) -> Office:
        return self.server.office

    # ------------------------------------------------------------------ routes

    def _get(self, path: list[str], query: dict[str, str]) -> None:
        office = self.office
        match path:
            case ["events"]:
                self._json(office.events[int(query.get("after", "0")) :])
            case ["control", "ledger"]:
                self._json(office.ledger())
            case ["login"]:
                self._login()
            case _ if self._user is None:
                self._to(f"/login?next={quote(self.path, safe='')}")
            case ["permits", "new"]:
                self._permit_form({})
            case ["documents", "new"]:
                form = leaves.form("document", "/documents", map(leaves.field, DOCUMENT), "Hand in", self._token, files=True)
                self._leaf("Hand in a document", form)
            case ["permits" | "documents" as kind] if "reference" in query:
                records: Any = office.received if kind == "permits" else office.documents
                found = [one for one in records.values() if one.reference == query["reference"] and one.state != "removed"]
                self._leaf("Found", leaves.links({f"/{kind}/{one.number}": one.number for one in found}))
            case ["permits", number] if number in office.received:
                self._permit(number)
            case ["documents", number] if number in office.documents:
                self._document(number)
            case _:
                self._leaf("There is no such page", status=404)

    def _post(self, path: list[str], query: dict[str, str]) -> None:
        if path == ["control"]:
            self._control(json.loads(self.content))
            return
        fields = self._fields()
        if path == ["login"]:
            self._log_in(fields, query)
        elif self._user is None:
            self._to("/login?next=%2Fpermits%2Fnew")
        elif fields.get("token") != self._token:
            self._leaf("This form is not of your session", status=403)
        else:
            self._change(path, fields)

    def _change(self, path: list[str], fields: Fields) -> None:
        office = self.office
        match path:
            case ["logout"]:
                office.log_out(self._session)
                self._to("/login")
            case ["permits"]:
                self._receive(fields)
            case ["permits", number, "withdraw"] if number in office.received:
                self._to(f"/permits/{office.withdraw(number).number}")
            case ["documents"]:
                name, content = fields.get("file") or ("", b"")
                made = office.take_document(str(fields.get("reference", "")), name, content)
                self.server.check_later(made.number)
                self._to(f"/documents/{made.number}")
            case ["documents", number, "remove"] if number in office.documents:
                self._to(f"/documents/{office.remove(number).number}")
            case _:
                self._leaf("There is no such page", status=404)

    def _control(self, order: dict[str, Any]) -> None:
        office = self.office
        for verb, value in order.items():
            match verb:
                case "expire":
                    office.sessions.clear()
                case "layout":
                    office.layout = value
                case "check":
                    office.check(*value)
                case "lose":
                    self.server.lose = value
        self._json(office.ledger())

    # ------------------------------------------------------------------ pages

    def _login(self, said: tuple[str, ...] = ()) -> None:
        target = f"/login?{urlsplit(self.path).query}"
        self._leaf("Log in", leaves.reasons(said), leaves.form("login", target, map(leaves.field, LOGIN), "Log in", ""))

    def _log_in(self, fields: Fields, query: dict[str, str]) -> None:
        try:
            session = self.office.log_in(str(fields.get("user")), str(fields.get("password")))
        except Wrong as wrong:
            self._login(wrong.reasons)
            return
        target = query.get("next", "/permits/new")
        wanted = target if target.startswith("/") and not target.startswith("//") else "/permits/new"
        self._to(wanted, cookie=f"session={session}; Path=/; HttpOnly; SameSite=Lax")

    def _permit_form(self, values: Fields, said: tuple[str, ...] = (), status: int = 200) -> None:
        asked = [leaves.field(one, str(values.get(one.name, ""))) for one in LAYOUTS[self.office.layout]]
        form = leaves.form("permit", "/permits", asked, "Send", self._token)
        self._leaf("Permit for an event in the street", leaves.reasons(said), f"<p>{NOTICE}</p>", form, status=status)

    def _receive(self, fields: Fields) -> None:
        try:
            made = self.office.receive({name: str(value) for name, value in fields.items()}, str(self._user))
        except Wrong as wrong:
            self._permit_form(fields, wrong.reasons, wrong.status)
            return
        if self.server.lose:
            self.server.lose -= 1
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self._to(f"/permits/{made.number}")

    def _permit(self, number: str) -> None:
        permit = self.office.received[number]
        labels = {one.name: one.label for layout in LAYOUTS.values() for one in layout}
        said = {labels[name]: value for name, value in permit.fields.items()}
        form = leaves.form("withdraw", f"/permits/{number}/withdraw", [], "Withdraw", self._token)
        self._leaf(f"Permit {number}", leaves.facts({"Number": number, "State": permit.state, **said}), form)

    def _document(self, number: str) -> None:
        found = self.office.documents[number]
        known = {
            "Number": number,
            "State": found.state,
            "Your reference": found.reference,
            "Name": found.name,
            "SHA-256": found.sha256,
        }
        form = leaves.form("remove", f"/documents/{number}/remove", [], "Remove", self._token)
        self._leaf(f"Document {number}", leaves.facts(known), form)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="site", description="A small town hall for the browser agent.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--idle", type=float, default=600.0)
    parser.add_argument("--checks-after", type=float)
    options = parser.parse_args(arguments)
    with Server(options.port, idle=options.idle, checks_after=options.checks_after) as server:
        for sign in (signal.SIGTERM, signal.SIGINT):
            signal.signal(sign, lambda *_: sys.exit(0))
        sys.stdout.write(json.dumps({"address": server.address, "pid": os.getpid()}) + "\n")
        sys.stdout.flush()
        server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])

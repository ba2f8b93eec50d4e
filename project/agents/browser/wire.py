"""The wire of the small town hall's site: what comes in with a request, and how an answer goes out. No pages in here."""

from __future__ import annotations

import json
import logging
from abc import abstractmethod
from email.parser import BytesParser
from email.policy import HTTP
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from project.agents.browser import leaves
from project.agents.browser.office import Office, Wrong

log = logging.getLogger("browser_agent.site")

LARGEST_BODY = 4_000_000
Fields = dict[str, Any]


class Wire(BaseHTTPRequestHandler):
    timeout = 30
    protocol_version = "HTTP/1.1"

    @property
    @abstractmethod
    def office(self) -> Office:
        """Who works here."""

    @abstractmethod
    def _get(self, path: list[str], query: dict[str, str]) -> None:
        """Show a page."""

    @abstractmethod
    def _post(self, path: list[str], query: dict[str, str]) -> None:
        """Do what a form wants."""

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def _answer(self, route: Any) -> None:
        url = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        self.content = self.rfile.read(min(length, LARGEST_BODY))
        morsel = SimpleCookie(self.headers.get("Cookie", "")).get("session")
        self._session = morsel.value if morsel else ""
        self._user = self.office.user_of(self._session)
        self._token = Office.token(self._session) if self._user else ""
        try:
            route(
                [part for part in url.path.split("/") if part], {name: values[-1] for name, values in parse_qs(url.query).items()}
            )
        except Wrong as wrong:
            self._leaf("That cannot be done", leaves.reasons(wrong.reasons), status=wrong.status)

    def _fields(self) -> Fields:
        kind = self.headers.get("Content-Type", "")
        if not kind.startswith("multipart/"):
            return {name: values[-1] for name, values in parse_qs(self.content.decode(), keep_blank_values=True).items()}
        message = BytesParser(policy=HTTP).parsebytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + self.content)
        fields: Fields = {}
        for part in message.iter_parts():
            name, file = str(part.get_param("name", header="content-disposition")), part.get_filename()
            content = part.get_payload(decode=True)
            assert isinstance(content, bytes)
            fields[name] = content.decode() if file is None else (file, content)
        return fields

    def _leaf(self, title: str, *parts: str, status: int = 200) -> None:
        self._send(status, leaves.leaf(title, *parts, token=self._token).encode(), "text/html; charset=utf-8")

    def _json(self, value: Any) -> None:
        self._send(200, json.dumps(value).encode(), "application/json")

    def _to(self, target: str, cookie: str = "") -> None:
        more = {"Location": target, **({"Set-Cookie": cookie} if cookie else {})}
        self._send(303, b"", "text/html", more)

    def _send(self, status: int, content: bytes, kind: str, more: dict[str, str] | None = None) -> None:
        try:
            self.send_response(status)
            for name, value in {"Content-Type": kind, "Content-Length": str(len(content)), **(more or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)
        except (ConnectionError, TimeoutError) as error:
            log.debug("the visitor has gone: %s", error)

    def log_message(self, format: str, *arguments: Any) -> None:
        log.debug(format, *arguments)

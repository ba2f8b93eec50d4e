"""The page without a browser: an HTTP client that reads HTML and sends forms. It runs no scripts."""

from __future__ import annotations

import http.client
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import urlencode, urljoin, urlsplit

from flows.errors import AmbiguousOutcome, PolicyDenied, StateConflict, Transient
from project.agents.browser import pages, parsing
from project.agents.browser.pages import Document, Form

SECONDS = 30.0
LARGEST = 5_000_000  # bytes of a page
HOPS = 5  # of redirections

Answer = tuple[int, dict[str, str], str]  # status, headers by small letters, text


class PlainPage:
    """See `pages.Page`."""

    def __init__(self, site: str) -> None:
        self.site = pages.origin(site)
        self.cookies: dict[str, str] = {}
        self._at = self.site

    def goto(self, path: str) -> Document:
        return self._get(urljoin(self.site, path))

    def send(self, form: Form, values: Mapping[str, str], files: Mapping[str, Path] | None = None) -> Document:
        pages.within(self.site, form.action)
        pages.takes(form, values)
        if form.method != "POST":
            raise StateConflict(f"the form {form.id!r} is sent by {form.method}, which changes nothing")
        filled = [
            (one.name, values.get(one.name, one.value)) for one in form.controls if one.kind not in {"submit", "button", "file"}
        ]
        if form.encoding == "multipart/form-data":
            kind, body = _multipart(filled, files or {})
        else:
            kind, body = form.encoding, urlencode(filled).encode()
        try:
            status, headers, text = self._ask("POST", form.action, body, {"Content-Type": kind})
        except Transient as error:
            if error.details["sent"]:
                raise AmbiguousOutcome(str(error)) from error
            raise
        if status >= 500:
            raise AmbiguousOutcome(f"the site answered {status}")
        if 300 <= status < 400 and "location" in headers:
            try:
                return self._get(urljoin(form.action, headers["location"]))
            except (Transient, PolicyDenied) as error:  # it was sent, so nothing that comes after says that it was not
                raise AmbiguousOutcome(str(error)) from error
        self._at = form.action
        return parsing.read(text, form.action, status)

    def _get(self, url: str) -> Document:
        for _ in range(HOPS):
            pages.within(self.site, url)
            status, headers, text = self._ask("GET", url)
            if 300 <= status < 400 and "location" in headers:
                url = urljoin(url, headers["location"])
                continue
            if status >= 500:
                raise Transient(f"{url}: {status}")
            self._at = url
            return parsing.read(text, url, status)
        raise PolicyDenied(f"{url!r} leads round and round")

    def _ask(self, method: str, url: str, body: bytes | None = None, more: Mapping[str, str] | None = None) -> Answer:
        """One request. `sent` of the error: whether it may have arrived."""
        parts = urlsplit(url)
        made = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = made(parts.netloc, timeout=SECONDS)
        try:
            try:
                connection.connect()
            except OSError as error:
                raise Transient(f"{self.site} cannot be reached: {error}", sent=False) from error
            try:
                headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items()), "Referer": self._at}
                target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
                connection.request(method, target, body, {**headers, **(more or {})})
                response = connection.getresponse()
                text = response.read(LARGEST).decode(errors="replace")
            except (OSError, http.client.HTTPException) as error:
                raise Transient(f"{method} {parts.path} was broken off: {type(error).__name__}", sent=True) from error
            self._keep(response.headers.get_all("Set-Cookie") or [])
            return response.status, {name.lower(): value for name, value in response.getheaders()}, text
        finally:
            connection.close()

    def _keep(self, lines: list[str]) -> None:
        for line in lines:
            with suppress(CookieError):
                for name, morsel in SimpleCookie(line).items():
                    if morsel["max-age"] == "0" or not morsel.value:
                        self.cookies.pop(name, None)
                    else:
                        self.cookies[name] = morsel.value


def _multipart(fields: list[tuple[str, str]], files: Mapping[str, Path]) -> tuple[str, bytes]:
    mark = f"----outlast{secrets.token_hex(16)}"
    parts = [f'--{mark}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode() for name, value in fields]
    for name, path in files.items():
        head = f'--{mark}\r\nContent-Disposition: form-data; name="{name}"; filename="{path.name}"\r\n'
        parts.append(f"{head}Content-Type: application/octet-stream\r\n\r\n".encode() + path.read_bytes() + b"\r\n")
    return f"multipart/form-data; boundary={mark}", b"".join([*parts, f"--{mark}--\r\n".encode()])


@contextmanager
def page(site: str) -> Iterator[PlainPage]:
    """A page of this site, without a session."""
    yield PlainPage(site)

"""The page, driven by each of the two programs: they read the same, send the same, and say the same of what went wrong."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from flows.errors import AmbiguousOutcome, PolicyDenied, StateConflict, Transient
from project.agents.browser import pages
from project.agents.browser.office import ACCOUNTS
from project.agents.browser.pages import Page
from project.agents.browser.process import SiteProcess
from tests.support.town import BOTH, driver, site

__all__ = ["driver", "site"]

pytestmark = [BOTH, pytest.mark.req("O6")]


def log_in(page: Page) -> Any:
    asked = page.goto("/permits/new")
    assert asked.wants_login
    ((user, password),) = ACCOUNTS.items()
    return page.send(asked.form("login"), {"user": user, "password": password})


def test_a_form_is_read_and_a_session_is_carried(site: SiteProcess, driver: str) -> None:
    with pages.opened(site.address) as page:
        found = log_in(page)
        cookies = page.cookies
    assert (found.path, found.status, found.title) == ("/permits/new", 200, "Permit for an event in the street")
    form = found.form("permit")
    assert [(one.name, one.label, one.kind, one.required) for one in form.asked][:3] == [
        ("name", "Who applies", "text", True), ("event", "What is planned", "text", True), ("day", "On which day", "date", True),
    ]  # fmt: skip
    assert ("market", "Market square") in form.asked[3].options
    with pages.opened(site.address) as page:
        page.cookies = cookies
        again = page.goto("/permits/new")
    assert not again.wants_login
    assert (again.form("permit").version, again.text) == (form.version, found.text)
    site.control(layout=2)
    with pages.opened(site.address) as page:
        page.cookies = cookies
        assert page.goto("/permits/new").form("permit").version != form.version


def test_a_file_and_a_form_arrive_as_they_were_given(site: SiteProcess, driver: str, tmp_path: Path) -> None:
    (tmp_path / "plan").write_bytes(bytes(range(256)))
    with pages.opened(site.address) as page:
        log_in(page)
        form = page.goto("/documents/new").form("document")
        document = page.send(form, {"reference": "a/b & ‘c’"}, {"file": tmp_path / "plan"})
        assert document.facts["Your reference"] == "a/b & ‘c’"
        site.control(check=["D-1", "accepted"])
        values = {
            "name": "Ada & Söhne", "event": 'Fair "<1>"', "day": "2027-06-05", "place": "park", "guests": "12", "plan": "D-1",
            "reference": "r",
        }  # fmt: skip
        permit = page.send(page.goto("/permits/new").form("permit"), values)
    assert permit.path == "/permits/P-1001"
    assert (permit.facts["What is planned"], permit.facts["Number"]) == ('Fair "<1>"', "P-1001")
    ledger = site.ledger()
    assert ledger["permits"][0]["fields"] == values
    assert (ledger["documents"][0]["name"], len(ledger["documents"][0]["sha256"])) == ("plan", 64)
    assert document.facts["SHA-256"] == "40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880"


def test_what_a_form_does_not_take_is_not_sent(site: SiteProcess, driver: str) -> None:
    with pages.opened(site.address) as page:
        form = page.goto("/login").form("login")
        for wrong in ({"user": "ada"}, {"user": "ada", "password": ""}, {"user": "ada", "password": "x", "admin": "1"}):
            with pytest.raises(StateConflict):
                page.send(form, wrong)
    assert site.ledger()["logins"] == 0


GOOD = {"name": "A", "event": "B", "day": "2027-06-05", "place": "park", "guests": "1", "plan": "D-1", "reference": "r"}


def test_an_answer_that_gets_lost_is_in_doubt_and_nothing_is_sent_again(site: SiteProcess, driver: str, tmp_path: Path) -> None:
    """A browser sends a request again by itself where a connection that it has used before breaks off; there must be none."""
    (tmp_path / "plan").write_bytes(b"plan")
    with pages.opened(site.address) as page:
        log_in(page)
        page.send(page.goto("/documents/new").form("document"), {"reference": "d"}, {"file": tmp_path / "plan"})
        refused = page.send(page.goto("/permits/new").form("permit"), GOOD)
        assert refused.status == 422
        assert "no plan of that number was accepted" in refused.text
        site.control(check=["D-1", "accepted"], lose=1)
        form = page.goto("/permits/new").form("permit")
        with pytest.raises(AmbiguousOutcome):
            page.send(form, GOOD)
    assert [one["reference"] for one in site.ledger()["permits"]] == ["r"]


def test_where_nobody_answers_nothing_was_done(driver: str) -> None:
    with pages.opened("http://127.0.0.1:9") as page, pytest.raises(Transient):
        page.goto("/login")


class Elsewhere(BaseHTTPRequestHandler):
    """A page that leads away in every way: the addresses that it was asked for are kept."""

    other = ""
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.path.startswith("/away"):
            self.send_response(303)
            self.send_header("Location", f"{self.other}/taken")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = (
            f'<form id="f" method="post" action="{self.other}/taken"><input name="a"></form>'
            '<form id="g" method="post" action="/away"><input name="a"></form><form id="h" method="post" action="/broken"></form>'
            '<script>onload = () => alert("hello")</script>'
            f'<img src="{self.other}/img"><iframe src="{self.other}/frame"></iframe><script>fetch("{self.other}/fetch")</script>'
        ).encode()
        self.send_response(500 if self.path == "/broken" else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.do_GET()

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing."""


@pytest.fixture
def two() -> Iterator[tuple[str, list[str], list[str]]]:
    """A site that leads to another one, and what each was asked for."""
    kinds = [type("One", (Elsewhere,), {"asked": []}), type("Other", (Elsewhere,), {"asked": []})]
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), kind) for kind in kinds]  # type: ignore[arg-type]
    kinds[0].other = f"http://127.0.0.1:{servers[1].server_port}"  # type: ignore[attr-defined]
    threads = [threading.Thread(target=one.serve_forever, daemon=True) for one in servers]
    for thread in threads:
        thread.start()
    yield f"http://127.0.0.1:{servers[0].server_port}", kinds[0].asked, kinds[1].asked  # type: ignore[attr-defined]
    for one in servers:
        one.shutdown()
        one.server_close()
    for thread in threads:
        thread.join()


def test_a_page_keeps_to_its_site(two: tuple[str, list[str], list[str]], driver: str) -> None:
    address, _, elsewhere = two
    with pages.opened(address) as page:
        found = page.goto("/")
        with pytest.raises(PolicyDenied):
            page.send(found.form("f"), {"a": "secret"})
        with pytest.raises(PolicyDenied):
            page.goto("/away")
        with pytest.raises(PolicyDenied):
            page.goto("http://127.0.0.1:9/")
        with pytest.raises(Transient):
            page.goto("/broken")
    assert elsewhere == []


def test_what_was_sent_is_in_doubt_whatever_comes_after_it(two: tuple[str, list[str], list[str]], driver: str) -> None:
    address, asked, elsewhere = two
    with pages.opened(address) as page:
        for form, path in (("g", "/away"), ("h", "/broken")):
            found = page.goto("/")
            with pytest.raises(AmbiguousOutcome):
                page.send(found.form(form), {})
            assert path in asked
    assert elsewhere == []

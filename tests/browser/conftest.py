"""The project, served from the test's process, and one tab of a real Chromium."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.http import HttpRequest, HttpResponse
from django.test.testcases import LiveServerThread
from django.urls import reverse

from tests.support import browser, fixtures, scene, themed
from tests.support.approving import PASSWORD, World, world
from tests.support.fixtures import quick_commits, sound, transactional_db

__all__ = ["quick_commits", "sound", "transactional_db", "world"]

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    fixtures.commit_in(items, HERE)
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(
                pytest.mark.skipif(browser.find() is None, reason="no Chromium here (Debian: apt-get install chromium)")
            )


class StrictPolicy:
    """A middleware as a careful site has one."""

    POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'"

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", self.POLICY)
        return response


@pytest.fixture
def address(world: World, settings: Any) -> Iterator[str]:
    """The project, served from this process under the strict policy; without it where a theme is tried, whose own pages break it."""
    if not themed.THEME:
        settings.MIDDLEWARE = [f"{__name__}.{StrictPolicy.__name__}", *settings.MIDDLEWARE]
    server = LiveServerThread("localhost", StaticFilesHandler, connections_override={}, port=0)
    server.daemon = True
    server.start()
    server.is_ready.wait()
    assert server.error is None, server.error
    yield f"http://localhost:{server.port}"
    server.terminate()


@pytest.fixture
def tab(tmp_path: Path) -> Iterator[browser.Page]:
    with browser.page(tmp_path) as opened:
        yield opened


@pytest.fixture
def filled(world: World) -> Iterator[scene.Scene]:
    """A record in which every page has something to show."""
    with scene.set_up(world) as filled:
        yield filled


@pytest.fixture
def log_in(tab: browser.Page, address: str) -> Callable[..., None]:
    """`log_in("rita")`: through the form, as a person without a mouse does it."""

    def enter(name: str = "rita") -> None:
        tab.goto(address + reverse("admin:index"))
        assert tab.do("document.activeElement.id") == "id_username", "one may type at once"
        tab.type(name)
        tab.press("Tab")
        tab.type(PASSWORD)
        tab.press("Enter", loads=True)
        assert "login" not in tab.do("location.pathname")

    return enter

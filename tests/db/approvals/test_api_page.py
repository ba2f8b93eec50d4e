"""The pages about the API and about waiting: their examples run as they stand, and their tables name all that there is."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit

import pytest
from django.conf import settings as django_settings
from django.test import Client
from django.urls import resolve

from approvals.models import Review
from approvals.views.description import described
from tests.support.api import api
from tests.support.approving import World
from tests.support.filling import OrderParts
from tests.support.laddering import POOL, ask_long

__all__ = ["api"]

pytestmark = pytest.mark.django_db(transaction=True)

HOW_TO = Path(django_settings.BASE_DIR) / "docs" / "how-to"


def blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (HOW_TO / page).read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture
def names(monkeypatch: Any) -> Any:
    """The names of the page, as the module `yourapp.flows`."""
    module = ModuleType("yourapp.flows")
    monkeypatch.setitem(sys.modules, "yourapp", ModuleType("yourapp"))
    monkeypatch.setitem(sys.modules, "yourapp.flows", module)
    for number, block in enumerate(blocks("approvals-api.md"), 1):
        exec(compile(block, f"approvals-api.md, block {number}", "exec"), vars(module))  # our own documentation
    return vars(module)


def over_http(client: Client) -> Any:
    """What `urlopen` does, without a socket."""

    def urlopen(request: Any) -> Any:
        headers = {name: value for name, value in request.header_items() if name.lower() != "content-type"}
        parts = urlsplit(request.full_url)
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        if request.data is None:
            response = client.get(path, headers=headers)
        else:
            response = client.post(path, request.data, content_type="application/json", headers=headers)
        if response.status_code >= 400:
            raise HTTPError(request.full_url, response.status_code, response.content.decode(), None, None)  # type: ignore[arg-type]
        body = io.BytesIO(response.content)
        body.headers = response.headers  # type: ignore[attr-defined]
        return body

    return urlopen


@pytest.mark.req("F2")
def test_the_program_answers_with_its_token(world: World, names: Any, settings: Any) -> None:
    settings.ROOT_URLCONF = "tests.support.api_urls"
    settings.OUTLAST = {**settings.OUTLAST, **names["OUTLAST"]}
    client = Client(enforce_csrf_checks=True)
    names["urlopen"] = over_http(client)
    request, other, token = world.ask({"text": "Good."}), world.ask({"text": "Bad."}), names["token_for"](world.rita)
    form = world.ask(flow=OrderParts)

    def looks_right(shown: Any) -> bool:
        return shown["candidate"]["unverified_value"]["text"] == "Good."

    for _ in range(2):
        names["approve_all_that_is_sound"]("http://testserver/approvals", token, looks_right)
    assert [world.status(one) for one in (request, other, form)] == ["approved", "pending", "pending"]
    assert Review.objects.get().by == world.rita
    with pytest.raises(HTTPError) as refused:
        names["call"]("http://testserver/approvals/requests", token + "x")
    assert refused.value.code == 401
    assert client.login(username="ron", password="a password for tests")
    assert client.post(f"/approvals/requests/{other.pk}/decide", "{}", content_type="application/json").status_code == 403


def test_it_is_mounted_as_the_page_says(names: Any) -> None:
    module = ModuleType("yoururls")
    module.urlpatterns = names["urlpatterns"]  # type: ignore[attr-defined]
    found = resolve("/approvals/requests/7/decide", module)
    assert (found.view_name, found.kwargs) == ("outlast_approvals_api:decide", {"number": "7"})


def test_its_tables_name_every_address_and_every_code() -> None:
    page = (HOW_TO / "approvals-api.md").read_text()
    paths = {
        (method.upper(), path) for path, item in described()["paths"].items() for method in item if method in ("get", "post")
    }
    named = {(method, "/" + path.replace("ID", "{number}")) for method, path in re.findall(r"`(GET|POST) ([\w/.]+)`", page)}
    assert named == paths
    codes = set(re.findall(r'"enum": \[([^]]*)\]', json.dumps(described()["paths"])))
    words = {code.strip().strip('"') for listed in codes for code in listed.split(",")}
    approvals = (HOW_TO / "approvals.md").read_text()
    assert sorted(code for code in words if code.isupper() and f"`{code}`" not in page + approvals) == []


@pytest.mark.req("F5", "Q1")
def test_the_functions_about_waiting(world: World) -> None:
    (block,) = (one for one in blocks("approvals.md") if "slowest_pool" in one)
    found: dict[str, Any] = {}
    exec(compile(block, "approvals.md", "exec"), found)  # our own documentation
    request = ask_long(world)
    assert found["slowest_pool"](7) is None
    world.decide(request)
    world.decide(request, by=world.ron)
    assert found["too_much_for"](0) == [POOL]
    assert found["too_much_for"](1) == []
    world.clock.move(hours=3)
    assert 0.9 < found["waited_for_people"](request.workflow_id) <= 1
    lena = type(world.rita).objects.get(username="lena")
    world.decide(request, by=lena)
    assert found["slowest_pool"](7).name == POOL

"""The approval screens as a browser without scripts sees them: pages by name, what they say, the forms on them."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from approvals.models import Request
from tests.support.approving import PASSWORD

EVIL = "<script>alert(1)</script> \u202eevil\u202c now"
ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;"
LIST = "admin:outlast_approvals_request_changelist"


def client_of(name: str, **options: Any) -> Client:
    client = Client(**options)
    assert client.login(username=name, password=PASSWORD)
    return client


def permit(user: Any, *names: str) -> None:
    user.user_permissions.add(*Permission.objects.filter(content_type__app_label="outlast_approvals", codename__in=names))


def url_of(request: Request, what: str = "decide") -> str:
    return reverse(f"admin:outlast_approvals_request_{what}", args=[request.pk])


def page(client: Client, url: str, **query: Any) -> str:
    response = client.get(url, query)
    assert response.status_code == 200, response
    return str(response.content.decode())


def words(html: str) -> str:
    """The text of a page, on one line."""
    return " ".join(re.sub(r"<[^>]+>", " ", re.sub(r"</?bdi[^>]*>", "", html)).replace("\xa0", " ").split())


def said(response: Any) -> str:
    return " ".join(str(message) for message in response.context["messages"])


class Forms(HTMLParser):
    """Where the forms of a page are sent, and with which fields."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.actions: list[str] = []
        self.values: dict[str, str] = {}
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "form" and (given.get("method") or "").lower() == "post":
            self.actions.append(given.get("action") or "")
        if tag == "input" and given.get("name"):
            self.values[str(given["name"])] = given.get("value") or ""


def actions(html: str, request: Request) -> set[str]:
    """What the forms and links of a request's page offer: decide, claim, release, assign, revoke."""
    found = {"decide", "claim", "release", "assign", "revoke"}
    links = re.findall(r'<a class="oa-minor" href="([^"]+)"', html)
    return {what for what in found if url_of(request, what) in {*Forms(html).actions, *links}}

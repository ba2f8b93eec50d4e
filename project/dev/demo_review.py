"""A reviewer at the admin: the same pages, forms and permission checks that a person's browser would meet."""

from __future__ import annotations

import html
import re
from typing import Any

from project.dev.demo_setup import DemoError

FIELD = re.compile(r"<input[^>]*>")
ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')


class Reviewer:
    """Logged in with a password, as rita."""

    def __init__(self, name: str, password: str) -> None:
        from django.test import Client

        self.client = Client(SERVER_NAME="localhost")
        if not self.client.login(username=name, password=password):
            raise DemoError(f"{name} could not log in")

    def open_request(self) -> str | None:
        """The address of the one request in the inbox, if there is one."""
        from django.urls import reverse

        page = self._get(reverse("admin:outlast_approvals_request_changelist"))
        found = sorted(set(re.findall(r'href="([^"]*/decide/)"', page)))
        return html.unescape(found[0]) if found else None

    def answer(self, address: str, verdict: str, comment: str) -> str:
        """Reads the page, answers it, and returns the digest of the candidate that was on it."""
        page = self._get(address)
        digest = _hidden(page, "digest")
        response = self.client.post(address, {"digest": digest, "verdict": verdict, "comment": comment}, follow=True)
        said = [str(message) for message in response.context["messages"]] if response.context else []
        if response.status_code != 200 or self.open_request() == address:
            raise DemoError(f"the admin did not take the answer ({response.status_code}): {' '.join(said)}")
        return digest

    def _get(self, address: str) -> str:
        response: Any = self.client.get(address)
        if response.status_code != 200:
            raise DemoError(f"the admin answered {response.status_code} for {address}")
        return str(response.content.decode())


def _hidden(page: str, name: str) -> str:
    for tag in FIELD.findall(page):
        attributes = dict(ATTRIBUTE.findall(tag))
        if attributes.get("name") == name:
            return html.unescape(attributes["value"])
    raise DemoError(f"the decision page has no field {name}")

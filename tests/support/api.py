"""A client of the API of approvals that holds every answer to its description; the fixture `api` makes one for a user.

`Api.seen` remembers what was exercised: (path, method, status), the members of answers and of bodies, and the codes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest
from django.test import Client
from jsonschema import Draft202012Validator, FormatChecker

from approvals.views.description import described
from tests.support.approving import PASSWORD

BASE = "/approvals"
URN = "urn:approvals"


def validator(schema: Any) -> Draft202012Validator:
    """A validator of a schema that may refer to the description's own."""
    whole = {"$defs": described()["components"]["schemas"], **schema}
    text = json.dumps(whole).replace("#/components/schemas/", "#/$defs/")
    return Draft202012Validator(json.loads(text), format_checker=FormatChecker())


def template_of(path: str) -> str | None:
    """The described path that an address belongs to."""
    for template in described()["paths"]:
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path):
            return str(template)
    return None


def members(value: Any, schema: Any, at: str) -> Iterator[str]:
    """The members of a value that its schema names, with the schema's name."""
    schemas = described()["components"]["schemas"]
    if "$ref" in schema:
        at = schema["$ref"].rpartition("/")[2]
        schema = schemas[at]
    for one in schema.get("allOf", []) + schema.get("anyOf", []):
        if value is not None:
            yield from members(value, one, at)
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in schema.get("properties", {}):
                if inner not in (None, []):
                    yield f"{at}.{name}"
                yield from members(inner, schema["properties"][name], f"{at}.{name}")
    if isinstance(value, list) and "items" in schema:
        for inner in value:
            yield from members(inner, schema["items"], at)


class Seen:
    """What was exercised so far."""

    def __init__(self) -> None:
        self.statuses: set[tuple[str, str, int]] = set()
        self.members: set[str] = set()
        self.codes: set[str] = set()


class Answer:
    """An answer of the API: its status, its data, its headers."""

    def __init__(self, response: Any) -> None:
        self.status, self.headers, self.raw = response.status_code, response.headers, response.content
        self.data = json.loads(response.content) if response.content else None

    @property
    def code(self) -> str:
        return str(self.data["code"])


class Api:
    """A browser's session of one user, CSRF checked as in production."""

    seen: ClassVar[Seen] = Seen()

    def __init__(self, name: str | None) -> None:
        self.client = Client(enforce_csrf_checks=True)
        self.csrf = ""
        if name is not None:
            assert self.client.login(username=name, password=PASSWORD)
            self.client.get("/admin/password_change/")  # a page with a form gives the token
            self.csrf = self.client.cookies["csrftoken"].value

    def get(self, path: str, headers: dict[str, str] | None = None, **query: Any) -> Answer:
        response = self.client.get(BASE + path, query, headers=headers or {})
        return self._checked(path, "get", response)

    def post(
        self,
        path: str,
        body: Any = None,
        *,
        seen: str | None = None,
        key: str | None = None,
        raw: bytes | str | None = None,
        kind: str = "application/json",
        csrf: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        sent = {"X-CSRFToken": self.csrf if csrf is None else csrf, **(headers or {})}
        if seen is not None:
            sent["If-Match"] = f'"{seen}"'
        if key is not None:
            sent["Idempotency-Key"] = key
        data = raw if raw is not None else json.dumps({} if body is None else body)
        response = self.client.post(BASE + path, data, content_type=kind, headers=sent)
        answer = self._checked(path, "post", response)
        if raw is None and answer.status < 300:
            self._sent(path, body)
        return answer

    def decide(self, request: Any, verdict: str = "approve", *, seen: str | None = None, **more: Any) -> Answer:
        """Answer, with the right digest unless something else is said."""
        body = {"verdict": verdict, **{name: more.pop(name) for name in ("comment", "keep") if name in more}}
        return self.post(f"/requests/{request.pk}/decide", body, seen=seen or request.digest, **more)

    def _checked(self, path: str, method: str, response: Any) -> Answer:
        answer = Answer(response)
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.raw.isascii()
        problem = answer.status >= 400
        assert answer.headers["Content-Type"] == ("application/problem+json" if problem else "application/json")
        if problem:
            assert answer.data["type"] == f"urn:outlast:problem:{answer.code}"
            assert answer.data["status"] == answer.status
            self.seen.codes.add(answer.code)
        template = template_of(path)
        if template is None or method not in described()["paths"][template]:
            return answer
        responses = described()["paths"][template][method]["responses"]
        assert str(answer.status) in responses, f"{method} {template} answered {answer.status}: {answer.data}"
        (content,) = responses[str(answer.status)]["content"].items()
        assert content[0] == answer.headers["Content-Type"]
        problems = [f"{error.json_path}: {error.message}" for error in validator(content[1]["schema"]).iter_errors(answer.data)]
        assert problems == [], problems
        self.seen.statuses.add((template, method, answer.status))
        self.seen.members.update(members(answer.data, content[1]["schema"], template))
        return answer

    def _sent(self, path: str, body: Any) -> None:
        """What was taken is what the description takes."""
        template = template_of(path)
        assert template is not None
        schema = described()["paths"][template]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert list(validator(schema).iter_errors(body or {})) == []
        self.seen.members.update(members(body or {}, schema, template))


@pytest.fixture
def api(settings: Any) -> Callable[[str | None], Api]:
    """Make a client for a user of that name; None: nobody is logged in."""
    settings.ROOT_URLCONF = "tests.support.api_urls"
    return Api

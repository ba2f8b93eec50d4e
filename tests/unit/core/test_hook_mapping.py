"""From a delivery to events: paths, texts with paths in braces, and what a function may answer."""

from __future__ import annotations

from typing import Any

import pytest

from flows.core.events import About
from flows.core.hooks import Delivery, InvalidSource, Mapped, mapping
from flows.core.hooks.mapping import Unmapped

BODY = {
    "action": "opened",
    "number": 7,
    "repository": {"full_name": "acme/shop"},
    "commits": [{"id": "a"}, {"id": "b"}],
    "ok": True,
}
HEADERS = {"x-github-event": "pull_request"}
DELIVERY = Delivery("github", "d-1", HEADERS, BODY)


@pytest.mark.parametrize(
    ("event", "key", "found"),
    [
        ("body.action", "body.repository.full_name", ("opened", "acme/shop")),
        ("header.X-GitHub-Event", "body.number", ("pull_request", "7")),
        ("github.{header.x-github-event}.{body.action}", "{body.repository.full_name}#{body.number}",
         ("github.pull_request.opened", "acme/shop#7")),
        ("ci.finished", "body.commits.1.id", ("ci.finished", "b")),
    ],
)  # fmt: skip
def test_a_path_leads_to_a_text(event: str, key: str, found: tuple[str, str]) -> None:
    (one,) = mapping.rule(event, key).by_paths(DELIVERY)
    assert (one.type, one.key, one.payload) == (*found, BODY)


def test_the_payload_may_be_a_part() -> None:
    (one,) = mapping.rule("t", "body.number", "body.repository").by_paths(DELIVERY)
    assert one.payload == {"full_name": "acme/shop"}


@pytest.mark.parametrize(
    ("event", "key", "code"),
    [
        ("body.missing", "body.number", "no_type"),
        ("a.{body.missing}", "body.number", "no_type"),
        ("a", "body.commits", "no_key"),
        ("a", "body.ok", "no_key"),
        ("a", "body.commits.2.id", "no_key"),
        ("a", "body.action.0", "no_key"),
        ("a", "header.x-other", "no_key"),
        ("a", "{body.number}/{body.missing}", "no_key"),
    ],
)
def test_a_path_that_leads_to_no_text_maps_nothing(event: str, key: str, code: str) -> None:
    with pytest.raises(Unmapped) as why:
        mapping.rule(event, key).by_paths(DELIVERY)
    assert why.value.code == code


@pytest.mark.parametrize(
    ("event", "key", "payload", "said"),
    [
        ("", "", "", "EVENT and KEY"),
        ("body.action", "", "", "dotted path of a function"),
        ("function", "", "", "dotted path of a function"),
        ("", "body.id", "", "EVENT and KEY"),
        ("a", "fixed", "", "no path in it"),
        ("a", "body..id", "", "is no path"),
        ("a", "{id}", "", "is no path"),
        ("a", "{body.id", "", "brace"),
        ("a", "body.id}", "", "is no path"),
        ("a{}", "body.id", "", "is no path"),
        ("a", "body.id", "payload", "is no path"),
        ("yourapp.hooks.mapped", "", "body", "EVENT and KEY"),
        (5, "", "", "EVENT is text"),
        ("a", None, "", "KEY is text"),
    ],
)
def test_a_mapping_that_cannot_be_says_why(event: Any, key: Any, payload: Any, said: str) -> None:
    with pytest.raises(InvalidSource, match=said) as fault:
        mapping.rule(event, key, payload)
    assert fault.value.part == "mapping"


def test_the_headers_that_paths_name_are_known() -> None:
    assert mapping.rule("{header.X-Event}", "{header.x-key}{body.id}", "body").headers == {"x-event", "x-key"}


# ---------------------------------------------------------------- functions


def test_a_function_answers_with_one_with_several_or_with_none() -> None:
    about = About(wait=5)
    one, two = Mapped("a", "1", position=3, about=about), Mapped("b", "2", {"x": 1})
    assert mapping.result(None, DELIVERY) == []
    assert mapping.result([], DELIVERY) == []
    assert mapping.result(one, DELIVERY) == [Mapped("a", "1", BODY, 3, about)]
    assert mapping.result([one, two], DELIVERY) == [Mapped("a", "1", BODY, 3, about), two]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("text", "function_result"),
        ([Mapped("a", "1"), None], "function_result"),
        ({}, "function_result"),
        ([Mapped("a", "1")] * 101, "too_many"),
    ],
)
def test_a_function_that_answers_otherwise_maps_nothing(given: Any, code: str) -> None:
    with pytest.raises(Unmapped) as why:
        mapping.result(given, DELIVERY)
    assert why.value.code == code


def test_several_events_are_numbered() -> None:
    one, two = Mapped("a", "1"), Mapped("b", "2")
    assert mapping.events([one], "s", "d") == [("s:d", one)]
    assert mapping.events([one, two], "s", "d") == [("s:d#1", one), ("s:d#2", two)]


# ---------------------------------------------------------------- bodies


@pytest.mark.parametrize(
    ("body", "content_type", "found"),
    [
        (b'{"a": [1, null]}', "application/json", {"a": [1, None]}),
        (b"[1]", "text/plain", [1]),
        (b"a=1&b=&a=2", "application/x-www-form-urlencoded", {"a": "2", "b": ""}),
        (
            b"payload=%7B%22a%22%3A%201%7D&x=%C3%A9",
            "Application/x-www-form-urlencoded; charset=UTF-8",
            {"payload": {"a": 1}, "x": "é"},
        ),
        (b"payload=plain", "application/x-www-form-urlencoded", {"payload": "plain"}),
    ],
)
def test_a_body_is_json_or_a_form(body: bytes, content_type: str, found: Any) -> None:
    assert mapping.read(body, content_type) == found


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"", ""),
        (b"\xff", ""),
        (b'{"a": NaN}', ""),
        (b'{"a": -Infinity}', ""),
        (b"[" * 100_000, ""),
        (b"9" * 5_000, ""),
        (b"a", "application/x-www-form-urlencoded"),
        (b"a=%ff", "application/x-www-form-urlencoded"),
        (b"payload={", "application/x-www-form-urlencoded"),
        (b"&".join(b"a=1" for _ in range(2000)), "application/x-www-form-urlencoded"),
    ],
)
def test_another_body_is_not_read(body: bytes, content_type: str) -> None:
    with pytest.raises(Unmapped, match="not_json"):
        mapping.read(body, content_type)

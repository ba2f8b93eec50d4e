"""Sources of webhooks are looked at when the project starts; no message shows a secret."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows import checks
from flows.services.webhooks import sources
from tests.support import hooking, signing

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "webhooks.md"
SECRET = "hunter2-hunter2"

pytestmark = pytest.mark.req("E4")


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    sources.forget()


def found(settings: Any, given: Any) -> list[str]:
    settings.HOOK_SECRET = signing.SECRET
    settings.OUTLAST = {"WEBHOOKS": {"ci": given}}
    messages = checks.check_webhooks()
    assert all(message.hint and SECRET not in message.msg for message in messages)
    return [str(message.id).removeprefix("outlast_flows.") for message in messages]


@pytest.mark.parametrize("scheme", signing.SCHEMES)
def test_a_sound_source_is_no_message(settings: Any, scheme: str) -> None:
    assert found(settings, hooking.of(scheme)) == []


@pytest.mark.parametrize(
    ("changed", "id"),
    [
        ({"SCHEME": "gitlab"}, "E111"),
        ({"SECRET": SECRET}, "E111"),
        ({"OPTIONS": {"tolerence": 5}}, "E111"),
        ({"ENABLED": "yes"}, "E111"),
        ({"HEADERS": "X-Team"}, "E111"),
        ({"KEY": "id"}, "E112"),
        ({"EVENT": "nowhere.at_all", "KEY": ""}, "E112"),
        ({"EVENT": "tests.support.hooking.numbers", "KEY": ""}, "E112"),
        ({"KEY": "header.authorization"}, "E112"),
        ({"KEY": "header.webhook-signature"}, "E112"),
        ({"HEADERS": ["Cookie"]}, "E112"),
        ({"SECRETS": []}, "E113"),
        ({"SECRETS": SECRET}, "E113"),
        ({"SECRETS": [SECRET]}, "E113"),
        ({"SECRETS": ["setting:PLAIN_SECRET"]}, "E113"),
        ({"OPTIONS": {"tolerance": 100_000}}, "E114"),
        ({"SECRETS": ["setting:HOOK_SECRET", "env:OUTLAST_TEST_NOT_SET"]}, "W109"),
    ],
)
def test_a_source_that_cannot_be_is_a_message(settings: Any, changed: dict[str, Any], id: str) -> None:
    settings.PLAIN_SECRET = f"whsec_{SECRET}!"
    assert found(settings, {**hooking.SETTING, **changed}) == [id]


@pytest.mark.parametrize("given", [None, "github", 5])
def test_a_source_that_is_no_dict_is_a_message(settings: Any, given: Any) -> None:
    assert found(settings, given) == ["E111"]


@pytest.mark.parametrize("name", ["CI", "a b", "", "x" * 61, 5, None])
def test_a_name_fits_into_an_address(settings: Any, name: Any) -> None:
    settings.OUTLAST = {"WEBHOOKS": {name: hooking.SETTING}}
    assert [message.id for message in checks.check_webhooks()] == ["outlast_flows.E111"]


def test_the_secret_of_the_environment_is_read(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTLAST_TEST_HOOK", signing.SECRET)
    assert found(settings, {**hooking.SETTING, "SECRETS": ["env:OUTLAST_TEST_HOOK"]}) == []


# ---------------------------------------------------------------- the page


def described() -> list[tuple[str, Any]]:
    blocks = re.findall(r"^```python\n(OUTLAST.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    made: list[tuple[str, Any]] = []
    for block in blocks:
        names: dict[str, Any] = {}
        exec(compile(block, PAGE.name, "exec"), names)  # our own documentation
        made += names["OUTLAST"]["WEBHOOKS"].items()
    return made


def test_each_source_of_the_page_can_be_and_each_scheme_has_one() -> None:
    made = [sources.made(name, given, of_setting=True) for name, given in described()]
    assert {one.scheme.name for one in made} == set(signing.SCHEMES)


def test_the_page_names_each_key_and_each_option() -> None:
    named = set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE))
    options = {option for scheme in signing.SCHEMES for option in sources.hooks.SCHEMES[scheme].takes}
    assert named == {*sources.KEYS, *options}


def test_the_function_of_the_page_maps() -> None:
    from flows import Delivery, Mapped

    (block,) = re.findall(r"^```python\n(from flows import Delivery.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, PAGE.name, "exec"), names)  # our own documentation
    issues = [{"number": 5, "state": "closed", "revision": 2}, {"number": 6, "state": "open", "revision": 1}]
    delivery = Delivery("tracker", "1", {"x-event-kind": "issues"}, {"issues": issues})
    assert names["from_tracker"](delivery) == [Mapped("issue.closed", "5", issues[0], position=2)]
    assert names["from_tracker"](Delivery("tracker", "1", {}, {})) is None

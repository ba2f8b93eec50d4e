"""Whatever is typed at `manage.py flows`, the answer is an exit code and a sentence: what is wrong, and the way out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.core.management import call_command
from django.core.management.base import CommandError

from flows.models import Policy, Release
from flows.testing import LocalWorker
from tests import factories
from tests.support.commanding import Ran, cli

__all__ = ["cli"]

pytestmark = pytest.mark.req("Q3")

Cli = Callable[..., Ran]

#: As Python gives a byte that is not UTF-8.
BYTE = "\udcff"
#: A number that has more digits than Python turns into one.
LONG = "9" * 5000
DEEP = '{"a":' * 3000 + "1" + "}" * 3000
BY = ("--by", "ann")
WHY = ("--reason", "x")


@pytest.fixture(autouse=True)
def ann(transactional_db: None, worker: LocalWorker) -> None:
    user = get_user_model().objects.create_user("ann")
    user.user_permissions.add(*Permission.objects.filter(content_type__app_label__startswith="outlast"))
    factories.Line.start({}, key="a")
    worker.run()


@pytest.mark.parametrize(
    "typed",
    [
        *(
            ("show", f"t-line:{BYTE}"),
            ("list", "--key", BYTE),
            ("list", "--flow", BYTE),
            ("graph", BYTE),
            ("start", BYTE, "--input", "{}"),
        ),
        *(("replay", "--flow", BYTE), ("replay", BYTE), ("replay", "--flow", "t-line", "--against", f"{BYTE}.x")),
        *(("releases", "show", BYTE), ("releases", "move", "--from", BYTE, "--to", "x"), ("releases", "current", "--flow", BYTE)),
        *(
            ("migrate", "--flow", BYTE),
            ("policy", "publish", BYTE, "--body", "/dev/null", "--note", "n", *BY),
            ("operations", "--workflow", BYTE),
        ),
        *(("competence", "open", BYTE, "x", *WHY, *BY), ("competence", "open", "x", "x", "--reason", BYTE, *BY)),
        *(
            ("resume", "t-line:a", "--by", BYTE),
            ("resume", "t-line:a", "--reason", BYTE),
            ("cancel", "t-line:a", "--reason", BYTE),
        ),
        *(("budget", "raise", "t-line:a", "model_calls", "--by-amount", BYTE, *WHY, *BY), ("signal", BYTE, "x", "--key", "k")),
        *(("resolve", BYTE, "--verdict", "happened", *WHY, *BY), ("policy", "adopt", "t-line:a", "--reason", BYTE, *BY)),
    ],
    ids=lambda typed: " ".join(typed).replace(BYTE, "xff"),
)
def test_bytes_that_are_not_utf_8(cli: Cli, typed: tuple[str, ...]) -> None:
    ran = cli(*typed)
    assert ran.code == 2
    assert "[U+DCFF] is not text" in ran.err or "[U+DCFF].x is not text" in ran.err
    assert "UTF-8" in ran.err


def test_a_nul_from_other_code() -> None:
    with pytest.raises(CommandError, match=r"key: .* is not text") as caught:
        call_command("flows", "list", "--key", "a\x00b")
    assert caught.value.returncode == 2


@pytest.mark.parametrize("digits", ["99999999999", "9" * 23, LONG, "0", "-1", "1.5", "x"], ids=lambda digits: digits[:25])
@pytest.mark.parametrize(
    "typed",
    [
        *(("migrate", "--flow", "t-line", "--from"), ("migrate", "--flow", "t-line", "--to"), ("list", "--limit")),
        *(
            ("operations", "--limit"),
            ("graph", "t-line", "--flow-version"),
            ("start", "t-line", "--input", "{}", "--flow-version"),
        ),
    ],
    ids=" ".join,
)
def test_numbers_that_nothing_has(cli: Cli, typed: tuple[str, ...], digits: str) -> None:
    ran = cli(*typed, digits)
    assert ran.code == 2
    assert "is not a whole number from 1 to 2147483647" in ran.err or "expected one argument" in ran.err


@pytest.mark.parametrize(
    ("against", "says"),
    [
        (LONG, "is no version: those are 1 to 2147483647"),
        ("..x", "..x cannot be imported: TypeError"),
        ("a..b", "cannot be imported"),
        (".", "cannot be imported"),
        ("tests.support.raising.Flow", "cannot be imported: RuntimeError: raised while it was imported"),
        ("os.path", "is no Flow class"),
        ("flows.Flow", "is no Flow class"),
    ],
    ids=lambda text: text[:20],
)
def test_a_definition_that_is_none(cli: Cli, against: str, says: str) -> None:
    ran = cli("replay", "--flow", "t-line", "--against", against)
    assert (ran.code, says in ran.err) == (2, True), ran.err


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"name": "a\x00b"}, "cannot be the name of a release"),
        ({"name": "a\ud800"}, "cannot be the name of a release"),
        ({"name": None}, "cannot be the name of a release"),
        ({"name": {"a": 1}}, "cannot be the name of a release"),
        ({"compatible_with": 5}, "compatible_with takes a list of names"),
        ({"compatible_with": None}, "compatible_with takes a list of names"),
        ({"compatible_with": "R1"}, "compatible_with takes a list of names"),
        ({"compatible_with": {"R1": 1}}, "compatible_with takes a list of names"),
        ({"compatible_with": [[1]]}, "No release [1] is registered"),
        ({"models": {"a\x00": 1}}, "have names, as text without NUL"),
        ({"models": {"a\ud800": 1}}, "have names, as text without NUL"),
        ({"models": {"a": "\ud800"}}, "lone surrogate"),
        ({"models": {"a": 10**30}}, "beyond 2^53"),
        ({"models": [1]}, "are an object"),
        ({"note": None}, "is a text"),
        ({"note": "\x00"}, "NUL character"),
    ],
    ids=lambda case: json.dumps(case) if isinstance(case, dict) else "",
)
def test_a_release_that_is_none(cli: Cli, tmp_path: Path, given: dict[str, Any], says: str) -> None:
    file = tmp_path / "release.json"
    file.write_text(json.dumps({"name": "R9", "models": {"a": 1}, **given}))
    ran = cli("releases", "register", file)
    assert (ran.code, says in ran.err, Release.objects.count()) == (1, True, 0), ran.err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (DEEP, "is nested too deeply; at most 100 levels are stored"),
        ("{", "is not JSON"),
        (b"\xff", "is not JSON"),
        (f'{{"a": {LONG}}}', "is not JSON"),
    ],
    ids=["deep", "half", "byte", "long"],
)
def test_a_file_that_is_no_json(cli: Cli, tmp_path: Path, text: str | bytes, says: str) -> None:
    file = tmp_path / "given.json"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    for ran in (cli("policy", "publish", "n", "--body", file, "--note", "n", *BY), cli("releases", "register", file)):
        assert (ran.code, f"{file} {says}" in ran.err) == (2, True), ran.err
    assert Policy.objects.count() == 0


def test_a_file_that_cannot_be_read(cli: Cli, tmp_path: Path) -> None:
    for ran in (cli("policy", "publish", "n", "--body", tmp_path, "--note", "n", *BY), cli("releases", "register", tmp_path)):
        assert (ran.code, f"{tmp_path} cannot be read: Is a directory" in ran.err) == (2, True), ran.err


def test_a_file_may_have_any_name(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / f"policy{BYTE}.json"
    file.write_text('{"a": 1}')
    assert cli("policy", "publish", "n", "--body", file, "--note", "n", *BY).code == 0

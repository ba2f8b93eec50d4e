"""Sources that people describe, and the command: who may, what is refused, and that a stranger's page changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import flows
from flows import checks
from flows.core.hooks import InvalidSource
from flows.models import Event, WebhookDelivery, WebhookSource
from flows.services.webhooks import editing, sources
from tests.support import hooking, signing
from tests.support.commanding import cli
from tests.support.hooking import post
from tests.support.races import overtaken

__all__ = ["cli"]

pytestmark = pytest.mark.req("E4")

GIVEN: dict[str, Any] = {
    "scheme": "standard",
    "secrets": ["setting:HOOK_SECRET"],
    "event_type": "t.asked",
    "event_key": "body.key",
    "reason": "The new CI",
}


@pytest.fixture(autouse=True)
def one_of_the_setting(transactional_db: None, settings: Any) -> Iterator[None]:
    settings.HOOK_SECRET = signing.SECRET
    settings.OUTLAST = {**settings.OUTLAST, "WEBHOOKS": {hooking.SOURCE: hooking.SETTING}}
    sources.forget()
    hooking.broken = False
    yield
    sources.forget()


def test_a_source_is_described_and_described_anew(admin_user: Any) -> None:
    first = editing.save("rows", **GIVEN, by=admin_user)
    assert (first.version, first.changed) == (1, True)
    assert post({"key": "k"}, name="rows").status_code == 202, "this process knows at once"
    again = editing.save("rows", **GIVEN, by=admin_user, seen=1)
    assert (again.version, again.changed) == (1, False)
    off = editing.save("rows", **{**GIVEN, "reason": "Enough"}, enabled=False, by=admin_user, seen=1)
    assert (off.id, off.version, off.changed) == (first.id, 2, True)
    assert post({"key": "k"}, name="rows").status_code == 404
    row = WebhookSource.objects.get()
    assert (row.by_label, row.reason, row.by) == ("admin", "Enough", admin_user)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"scheme": "gitlab"}, "no scheme"),
        ({"secrets": ["whsec_AAAA"]}, "env:NAME"),
        ({"secrets": []}, "SECRETS"),
        ({"event_type": "os.system", "event_key": ""}, "imports no code"),
        ({"event_key": "id"}, "no path"),
        ({"options": {"tolerance": 10**6}}, "a day"),
    ],
)
def test_a_source_that_cannot_be_is_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidSource, match=said):
        editing.save("rows", **{**GIVEN, **changed})
    assert not WebhookSource.objects.exists()


def test_what_was_not_seen_is_not_changed() -> None:
    with pytest.raises(editing.SourceMoved, match="is gone"):
        editing.save("rows", **GIVEN, seen=1)
    editing.save("rows", **GIVEN)
    with pytest.raises(editing.SourceMoved, match="there already"):
        editing.save("rows", **GIVEN)
    with pytest.raises(editing.SourceMoved, match="version 1 by now, not 2"):
        editing.save("rows", **GIVEN, seen=2)


def test_of_two_who_describe_it_anew_one_is_told_to_look_again() -> None:
    editing.save("rows", **GIVEN)
    met = overtaken(
        lambda: editing.save("rows", **GIVEN, enabled=False, seen=1),
        lambda: editing.save("rows", **{**GIVEN, "event_type": "other"}, seen=1),
    )
    assert met.blocked
    assert isinstance(met.second, editing.SourceMoved)
    assert WebhookSource.objects.get().event_type == "t.asked"


def test_who_describes_may_and_says_why(django_user_model: Any) -> None:
    with pytest.raises(flows.errors.ReasonMissing):
        editing.save("rows", **{**GIVEN, "reason": ""})
    with pytest.raises(flows.errors.NotPermitted):
        editing.save("rows", **GIVEN, by=django_user_model.objects.create_user("eve"))
    with pytest.raises(InvalidSource, match="which wins"):
        editing.save("ci", **GIVEN)


def test_rows_are_looked_at_by_the_check_of_the_database() -> None:
    editing.save("rows", **GIVEN)
    assert checks.check_webhook_rows(databases=["default"]) == []
    WebhookSource.objects.update(secrets=["env:OUTLAST_TEST_NOT_SET"])
    assert [one.id for one in checks.check_webhook_rows(databases=["default"])] == ["outlast_flows.W109"]
    WebhookSource.objects.update(event_type="os.system", event_key="")
    assert [one.id for one in checks.check_webhook_rows(databases=["default"])] == ["outlast_flows.E112"]
    assert checks.check_webhook_rows(databases=[]) == []


# ---------------------------------------------------------------- the command


def test_the_command_lists_sources_and_what_is_wrong_with_them(cli: Any) -> None:
    editing.save("rows", **{**GIVEN, "secrets": ["env:OUTLAST_TEST_NOT_SET"]})
    assert [(one["name"], one["of"], one["secrets"]) for one in cli("webhooks", "list", "--json").json] == [
        ("ci", "setting", "1 of 1 are set"),
        ("rows", "admin", "0 of 1 are set"),
    ]
    WebhookSource.objects.update(scheme="gitlab")
    sources.forget()
    ran = cli("webhooks", "list")
    assert (ran.code, "there is no scheme 'gitlab'" in ran.out, "cannot be: rows" in ran.err) == (1, True, True)


def test_the_command_looks_at_a_captured_request(cli: Any, tmp_path: Path) -> None:
    body, headers = tmp_path / "body", tmp_path / "headers"
    raw = json.dumps({"key": "k"}).encode()
    body.write_bytes(raw)
    sent = signing.signed("standard", raw, signing.SECRET, now=1_700_000_000)
    headers.write_text("\n".join(f"{name.title()}: {value}" for name, value in sent.items()))
    captured = ("webhooks", "check", "ci", "--body", str(body), "--headers", str(headers))
    late = cli(*captured)
    assert (late.code, "refused: too_old" in late.err) == (1, True)
    found = cli(*captured, "--at", "1700000000", "--json")
    assert found.code == 0
    assert [(one["event"], one["type"], one["key"]) for one in found.json["events"]] == [("ci:d-1", "t.asked", "k")]
    body.write_bytes(b"{}")
    assert "refused: bad_signature" in cli(*captured, "--at", "1700000000").err
    assert not WebhookDelivery.objects.exists()
    assert not Event.objects.exists()
    assert (cli("webhooks", "check", "other", *captured[3:]).code, cli(*captured[:4], "nowhere", *captured[5:]).code) == (1, 2)


def test_the_command_lists_deliveries_and_maps_one_anew(cli: Any, settings: Any, admin_user: Any) -> None:
    settings.OUTLAST = {
        **settings.OUTLAST,
        "WEBHOOKS": {"ci": {**hooking.SETTING, "EVENT": "tests.support.hooking.by_function", "KEY": ""}},
    }
    hooking.broken = True
    post({"key": "k"})
    (one,) = cli("webhooks", "deliveries", "--verdict", "unmapped", "--source", "ci", "--json").json
    assert (one["delivery"], one["why"]) == ("d-1", "function")
    by = ("--by", "admin", "--reason", "mended")
    assert cli("webhooks", "map", str(one["id"]), *by).code == 1
    hooking.broken = False
    ran = cli("webhooks", "map", str(one["id"]), *by)
    assert (ran.code, ran.out.strip()) == (0, f"{one['id']} is accepted ci:d-1")
    again = cli("webhooks", "map", str(one["id"]), *by)
    assert (again.code, "nothing was changed" in again.out) == (0, True)
    assert cli("webhooks", "map", "999999", *by).code == 1
    assert "ci:d-1" in cli("webhooks", "deliveries").out

"""System checks: flows and settings are looked at when the project starts, and every message has an id and a way out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from django.apps import apps
from django.core import checks as django_checks
from django.core.checks.registry import registry as django_registry
from django.db import OperationalError

from flows import COMPLETE, FAILED, Activity, Commits, Decision, Effect, End, Flow, Fresh, Gate, Servicing, checks, registry
from flows.conf import DEFAULTS
from flows.core import definition

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def only_flows_of_this_test() -> Iterator[None]:
    before = list(definition.DECLARED)
    definition.DECLARED.clear()
    registry._lookup.cache_clear()
    yield
    definition.DECLARED[:] = before
    registry._lookup.cache_clear()


def ids(messages: list[django_checks.CheckMessage]) -> list[str]:
    assert all(message.hint for message in messages)
    return [str(message.id).removeprefix("outlast_flows.") for message in messages]


def work(attempt: Any) -> None:
    """An activity's function."""


# ---------------------------------------------------------------- flows


def test_the_checks_are_registered_and_the_celery_ones_are_for_deployment() -> None:
    ours = {check.__name__ for check in django_registry.registered_checks if check.__module__.startswith("flows.checks.")}
    deploy = {check.__name__ for check in django_registry.deployment_checks if check.__module__.startswith("flows.checks.")}
    of_database = {
        "check_capacity_kept",
        "check_clock",
        "check_versions",
        "check_migrated",
        "check_named",
        "check_schedule_names",
        "check_started_by",
        "check_webhook_rows",
    }
    of_settings = {
        "check_capacity",
        "check_flows",
        "check_settings",
        "check_packages",
        "check_installed",
        "check_schedules",
        "check_webhooks",
        "check_zones",
    }
    assert ours == of_settings | of_database
    assert deploy == {"check_celery"}


@pytest.mark.req("G5")
def test_a_mistake_in_a_flow_is_an_error_at_its_class() -> None:
    class Lost(Flow):
        first = Activity(work, then="done")
        done = End(COMPLETE)
        lost = End(FAILED)

    (message,) = checks.check_flows(None)
    assert message.level == django_checks.ERROR
    assert message.id == "outlast_flows.E007"
    assert message.obj == f"{Lost.__module__}.{Lost.__qualname__}"
    assert message.msg == "Node 'lost' cannot be reached."
    assert message.hint


@pytest.mark.req("G5")
def test_two_flows_of_one_name_and_version_are_found() -> None:
    def declared(outcome: Any) -> type[Flow]:
        return type(f"Twin{outcome}", (Flow,), {"Meta": type("Meta", (), {"name": "twin"}), "done": End(outcome)})

    declared(COMPLETE), declared(FAILED)
    assert ids(checks.check_flows(None)) == ["E026"]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("json.dumps", []),
        ("json.nothing", ["E023"]),
        ("no_such_module.work", ["E023"]),
        ("json.decoder", ["E023"]),
        ("not a path", ["E020"]),
    ],
)
def test_a_dotted_path_must_lead_to_a_function(path: str, found: list[str]) -> None:
    type("Dotted", (Flow,), {"first": Activity(path, then="done"), "done": End(COMPLETE)})
    assert ids(checks.check_flows(None)) == found


@pytest.mark.req("G5")
def test_so_must_the_path_of_what_is_asked_or_done_about_an_effect() -> None:
    asked = Effect(reconcile="json.nothing", compensate=Servicing("json.dumps", reconcile="json.nowhere"))
    first = Activity("json.dumps", effect=asked, commits=Commits("w", release="json.none"), then="done")
    type("Dotted", (Flow,), {"first": first, "done": End(COMPLETE)})
    found = checks.check_flows(None)
    assert ids(found) == ["E023"] * 3
    assert {message.msg.partition(":")[0] for message in found} == {
        "Node 'first', reconcile", "Node 'first', reconcile in compensate", "Node 'first', release of 'w'",
    }  # fmt: skip


@pytest.mark.req("G5")
@pytest.mark.parametrize(("probe", "found"), [("json.dumps", []), ("nope.mod.f", ["E023"]), ("json.nothing", ["E023"])])
def test_so_must_the_path_of_a_probe(probe: str, found: list[str]) -> None:
    decide = Decision("json.dumps", choices={"go": "act"})
    act = Activity("json.dumps", gate=Gate(fresh={"main": Fresh(probe)}), then="done")
    type("Asks", (Flow,), {"decide": decide, "act": act, "done": End(COMPLETE)})
    messages = checks.check_flows(None)
    assert ids(messages) == found
    assert all(message.msg.startswith("Node 'act', fresh 'main': ") for message in messages)


@pytest.mark.req("G5")
@pytest.mark.parametrize("permission", ["nodot", "repo.", ".merge"])
def test_an_authority_is_a_permission_where_django_is_asked(settings: Any, permission: str) -> None:
    act = Activity("json.dumps", gate=Gate(authority=("repo.merge_change", permission)), then="done")
    type("Asks", (Flow,), {"act": act, "done": End(COMPLETE)})
    (message,) = checks.check_flows(None)
    assert (message.id, message.msg) == ("outlast_flows.E077", f"Node 'act': authority={permission!r} is no permission.")
    settings.OUTLAST = {"AUTHORITY": "json.dumps"}
    assert checks.check_flows(None) == []


@pytest.mark.req("G5")
@pytest.mark.parametrize("policy", [5, None, ["changes"]])
def test_the_name_of_a_policy_is_text(policy: Any) -> None:
    type("Bound", (Flow,), {"Meta": type("Meta", (), {"policy": policy}), "done": End(COMPLETE)})
    (message,) = checks.check_flows(None)
    assert (message.id, message.hint) == ("outlast_flows.E027", 'Write policy = "changes".')


def test_a_module_that_breaks_while_it_is_imported_is_reported_and_not_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "breaks_at_import.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    type("Breaks", (Flow,), {"first": Activity("breaks_at_import.work", then="done"), "done": End(COMPLETE)})
    (message,) = checks.check_flows(None)
    assert message.id == "outlast_flows.E023"
    assert "ZeroDivisionError" in message.msg


def test_check_of_one_app_looks_at_its_flows_only() -> None:
    for module in ("project.agents.coding.flows", "elsewhere.flows"):
        type("Lost", (Flow,), {"__module__": module, "done": End(COMPLETE), "lost": End(FAILED)})
    coding = [app for app in apps.get_app_configs() if app.name == "project.agents.coding"]
    assert [message.obj for message in checks.check_flows(coding)] == ["project.agents.coding.flows.Lost"]
    assert len(checks.check_flows(None)) == 3, "the two are also two flows of one name"


# ---------------------------------------------------------------- settings


def test_the_settings_of_the_project_are_sound() -> None:
    assert checks.check_settings() == []
    assert checks.check_packages() == []
    assert checks.check_celery() == []


def test_a_misspelt_setting_is_a_warning_that_names_the_right_one(settings: Any) -> None:
    settings.OUTLAST = {"LEASE_SECOND": 20, "COLOUR": "red"}
    first, second = checks.check_settings()
    assert (first.id, first.level) == ("outlast_flows.W101", django_checks.WARNING)
    assert first.msg == "settings.OUTLAST['COLOUR'] means nothing."
    assert second.hint == "Did you mean 'LEASE_SECONDS'?"


@pytest.mark.parametrize("value", [[], "LEASE_SECONDS", None, 3])
def test_settings_that_are_no_dict_are_an_error_and_stop_no_other_check(settings: Any, value: Any) -> None:
    settings.OUTLAST = value
    assert ids(checks.check_settings()) == ["E101"]
    assert checks.check_packages() == []
    for check in (checks.check_clock, checks.check_versions, checks.check_migrated, checks.check_named):
        assert check(databases=["default"]) == check(databases=[]) == []


@pytest.mark.parametrize("value", [0, -1, "10", None, True])
def test_a_number_must_be_a_positive_number(settings: Any, value: Any) -> None:
    settings.OUTLAST = {"SLICE_SECONDS": value}
    assert ids(checks.check_settings()) == ["E102"]


def test_lingering_may_be_switched_off(settings: Any) -> None:
    settings.OUTLAST = {"LINGER_SECONDS": 0}
    assert checks.check_settings() == []


def test_every_default_is_sound(settings: Any) -> None:
    settings.OUTLAST = dict(DEFAULTS)
    assert checks.check_settings() == []


def test_a_lease_must_outlive_a_missed_renewal(settings: Any) -> None:
    settings.OUTLAST = {"LEASE_SECONDS": 5.0, "LEASE_RENEW_SECONDS": 3.0}
    assert ids(checks.check_settings()) == ["W102"]


@pytest.mark.parametrize("value", ["R17", 17, ["R17,R18"], [None], {"R17": 1}, ["*"]])
def test_the_releases_of_a_worker_are_a_list_of_names(settings: Any, value: Any) -> None:
    settings.OUTLAST = {"RELEASES": value}
    (message,) = checks.check_settings()
    assert message.id == "outlast_flows.E106"
    assert "settings.OUTLAST['RELEASES'] is" in message.msg


@pytest.mark.parametrize("value", [None, [], ["R17", "team/R-18@2"], ("R17",)])
def test_releases_may_be_left_away_or_be_none_at_all(settings: Any, value: Any) -> None:
    settings.OUTLAST = {"RELEASES": value}
    assert checks.check_settings() == []


def test_the_record_is_in_a_database_that_exists(settings: Any) -> None:
    settings.OUTLAST = {"DATABASE": "record"}
    (message,) = checks.check_settings()
    assert message.id == "outlast_flows.E103"
    assert message.msg == "settings.OUTLAST['DATABASE'] is 'record', which is no database."


def test_the_record_is_in_postgresql(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks.configured, "connections", other_database(vendor="sqlite", display_name="SQLite"))
    (message,) = checks.check_settings()
    assert (message.id, message.level) == ("outlast_flows.E104", django_checks.ERROR)
    assert message.msg == "Database 'default' is SQLite; Outlast keeps its record in PostgreSQL only."


class OtherDatabase(dict[str, Any]):
    """Stands for `django.db.connections`."""

    @property
    def settings(self) -> dict[str, Any]:
        return self


def other_database(**attributes: Any) -> OtherDatabase:
    return OtherDatabase(default=SimpleNamespace(**attributes))


@pytest.mark.parametrize("value", [3, [], None])
def test_an_alias_that_is_no_text_is_no_database(settings: Any, value: Any) -> None:
    settings.OUTLAST = {"DATABASE": value}
    assert ids(checks.check_settings()) == ["E103"]
    assert checks.check_clock(databases=["default"]) == []


@pytest.mark.parametrize("key", ["AUTHORITY", "COMPETENCE", "PLACEMENT", "DISPATCHER"])
@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("no_such_module.may", "which cannot be imported: No module named 'no_such_module'"),
        ("json.nothing", 'which cannot be imported: Module "json" does not define a "nothing" attribute/class'),
        ("nodot", "which cannot be imported: nodot doesn't look like a module path"),
        ("json.decoder", "which "),
        (5, "which is a int"),
        (None, "which is a NoneType"),
    ],
)
def test_a_dotted_path_in_the_settings_leads_to_what_is_needed(settings: Any, key: str, value: Any, said: str) -> None:
    settings.OUTLAST = {key: value}
    (message,) = checks.check_settings()
    assert message.id == "outlast_flows.E108"
    assert f"settings.OUTLAST[{key!r}] is {value!r}, {said}" in message.msg
    assert DEFAULTS[key] in str(message.hint)


def test_a_dispatcher_may_be_left_away_and_a_provider_may_not(settings: Any) -> None:
    settings.OUTLAST = {"DISPATCHER": ""}
    assert checks.check_settings() == []
    settings.OUTLAST = {"AUTHORITY": ""}
    assert ids(checks.check_settings()) == ["E108"]


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("QUEUES", ([], "agents", {"agents": 3}, {"agents": ""}, None)),
        ("PLACEMENTS", ("gpu", [3], [""], {"gpu": 1})),
        ("ESCALATE_TO", ("duty", [None], 3)),
        ("REGION", (None, 3)),
        ("HOST_CLASS", (["large"],)),
        ("ADMIN_URL", (None,)),
        ("METRICS_TOKEN", (None, 3)),
        ("NOTICE_FROM", (3,)),
        ("NOTICE_DIGEST_SECONDS", (0, "1 h", True)),
        ("UPLOAD_STORAGE", (3, "nowhere")),
        ("OVERLOAD_SECONDS", (0, -1, "60", True)),
        ("PREPARED_STATEMENTS", ("yes", 1)),
        ("WEBHOOKS", (["ci"], None)),
        ("ADMISSION", ([], {"a": 0}, {"a": True}, {"a": "3"}, {"": 3}, {3: 3}, None)),
    ],
)
def test_a_setting_of_the_wrong_type_is_an_error_that_shows_how_it_is_written(settings: Any, key: str, values: Any) -> None:
    for value in values:
        settings.OUTLAST = {key: value}
        (message,) = checks.check_settings()
        assert (message.id, message.msg) == ("outlast_flows.E109", f"settings.OUTLAST[{key!r}] is {value!r}.")
        assert str(message.hint).startswith(f'Write "{key}": ')


def test_a_retention_that_cannot_be_is_said(settings: Any) -> None:
    settings.OUTLAST = {"RETENTION": {"days": "90", "archive": "csv"}}
    found = [message for message in checks.check_settings() if message.id == "outlast_flows.E124"]
    assert [message.msg.split(";")[0] for message in found] == [
        "settings.OUTLAST['RETENTION'] has days '90'",
        "settings.OUTLAST['RETENTION'] has archive 'csv'",
    ]
    settings.OUTLAST = {"RETENTION": {"storage": "nowhere"}}
    (message,) = [message for message in checks.check_settings() if message.id == "outlast_flows.E124"]
    assert "not in STORAGES" in message.msg


def test_a_redaction_that_cannot_be_is_said(settings: Any) -> None:
    settings.OUTLAST = {"REDACT": ["input.card", "inputs.card"]}
    (message,) = [message for message in checks.check_settings() if message.id == "outlast_flows.E125"]
    assert message.msg.startswith("settings.OUTLAST['REDACT'] lists 'inputs.card'")


def test_every_setting_has_a_rule() -> None:
    ruled = {
        *checks.configured.NUMBERS,
        *checks.configured.PATHS,
        *checks.configured.TYPES,
        "RELEASES",
        "CODEC",
        "DATABASE",
        "NOTICE_CHANNELS",
        "REDACT",
        "RETENTION",
    }
    assert ruled == set(DEFAULTS)


# ---------------------------------------------------------------- the clock


class Cursor:
    def __init__(self, row: Any) -> None:
        self.row = row

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None: ...

    def execute(self, statement: str) -> None: ...

    def fetchone(self) -> Any:
        return self.row


@pytest.mark.parametrize(
    ("row", "found"),
    [
        (None, []),
        (("SELECT statement_timestamp()",), []),
        (("\n  select   statement_timestamp();\n",), []),
        (("SELECT statement_timestamp() + (SELECT shift FROM outlast_test_clock)",), ["W103"]),
        (("SELECT '2020-01-01'::timestamptz",), ["W103"]),
    ],
)
def test_a_clock_that_can_be_moved_is_a_warning(monkeypatch: pytest.MonkeyPatch, row: Any, found: list[str]) -> None:
    monkeypatch.setattr(checks.database, "connections", other_database(vendor="postgresql", cursor=lambda: Cursor(row)))
    assert ids(checks.check_clock(databases=["default"])) == found


def test_a_database_that_is_away_is_a_warning_and_not_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr(checks.database, "connections", other_database(vendor="postgresql", cursor=away))
    assert ids(checks.check_clock(databases=["default"])) == ["W104"]


@pytest.mark.parametrize("databases", [None, [], ["other"]])
def test_the_clock_is_looked_at_only_where_the_database_may_be_asked(databases: Any) -> None:
    assert checks.check_clock(databases=databases) == []


# ---------------------------------------------------------------- the three apps, and packages of the same name


@pytest.mark.parametrize(("lacking", "said"), [("tasks", "no worker serves the record"), ("approvals", "asks nobody")])
def test_an_app_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, lacking: str, said: str) -> None:
    assert checks.check_installed() == []
    monkeypatch.setattr(apps, "is_installed", lambda name: name != lacking)
    (message,) = checks.check_installed()
    assert (message.id, message.level) == ("outlast_flows.E107", django_checks.ERROR)
    assert message.msg.startswith(f"{lacking!r} is not in INSTALLED_APPS: ")
    assert said in message.msg


def setup_with(folder: Path, installed: list[str]) -> str:
    """What a project whose own folder comes first on sys.path says when it starts."""
    program = (
        f"from django.conf import settings; settings.configure(INSTALLED_APPS={installed!r}, DATABASES={{}});"
        "import django; django.setup()"
    )
    path = os.pathsep.join([str(folder), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        env={**os.environ, "PYTHONPATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
    )
    return done.stderr


@pytest.mark.parametrize("order", [("flows", "approvals", "tasks"), ("tasks", "approvals", "flows")])
def test_a_projects_own_flows_module_is_said_before_anything_fails_on_it(tmp_path: Path, order: tuple[str, ...]) -> None:
    (tmp_path / "flows.py").write_text("x = 1")
    said = setup_with(tmp_path, ["django.contrib.contenttypes", "django.contrib.auth", *order]).strip().splitlines()[-1]
    assert said.startswith(
        "django.core.exceptions.ImproperlyConfigured: (outlast_flows.E105) The package 'flows' that Python finds"
    )
    assert str(tmp_path / "flows.py") in said
    assert "Rename it" in said


def test_a_foreign_package_of_our_name_is_found_and_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = ModuleType("approvals")
    foreign.__file__ = "/srv/shop/approvals.py"
    monkeypatch.setitem(sys.modules, "approvals", foreign)
    (message,) = checks.check_packages()
    assert (message.id, message.level) == ("outlast_flows.E105", django_checks.ERROR)
    assert "'approvals' that Python finds is not Outlast's: it is /srv/shop/approvals.py" in message.msg
    assert "Rename it" in str(message.hint)


def test_a_foreign_package_that_outlast_does_not_use_is_no_business_of_ours(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setitem(sys.modules, "tasks", ModuleType("tasks"))
    settings.OUTLAST = {"DISPATCHER": ""}
    monkeypatch.setattr(apps, "get_app_configs", lambda: [SimpleNamespace(name="flows")])
    assert checks.check_packages() == []


def test_a_projects_own_tasks_module_is_found_where_it_comes_first(tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text("raise SystemExit('must not be imported')")
    program = (
        "from django.conf import settings; settings.configure(INSTALLED_APPS=['flows', 'django.contrib.auth',"
        "'django.contrib.contenttypes']); import django; django.setup(); from flows import checks;"
        "print([message.id for message in checks.check_packages()])"
    )
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        env={**os.environ, "PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "['outlast_flows.E105']", done.stderr


# ---------------------------------------------------------------- Celery


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"CELERY_TASK_ACKS_LATE": True}, ["W111"]),
        ({"CELERY_BROKER_TRANSPORT_OPTIONS": {}}, ["W112"]),
        ({"CELERY_BROKER_TRANSPORT_OPTIONS": {"ack_emulation": True}}, ["W112"]),
        ({"CELERY_BROKER_TRANSPORT_OPTIONS": {}, "CELERY_BROKER_URL": "rediss://cache/0"}, ["W112"]),
        ({"CELERY_BROKER_TRANSPORT_OPTIONS": {}, "CELERY_BROKER_URL": "amqp://rabbit"}, []),
        ({"CELERY_RESULT_BACKEND": "redis://cache/1", "CELERY_TASK_IGNORE_RESULT": False}, ["W113"]),
        ({"CELERY_RESULT_BACKEND": "redis://cache/1"}, []),
        ({"CELERY_TASK_REJECT_ON_WORKER_LOST": True}, ["W114"]),
    ],
)
def test_dangerous_celery_settings_are_warnings_of_a_deployment(settings: Any, changes: dict[str, Any], found: list[str]) -> None:
    for name, value in changes.items():
        setattr(settings, name, value)
    messages = checks.check_celery()
    assert ids(messages) == found
    assert all(message.level == django_checks.WARNING for message in messages)


def test_a_project_whose_celery_settings_are_elsewhere_is_not_judged(settings: Any) -> None:
    for name in [name for name in dir(settings) if name.startswith("CELERY_")]:
        delattr(settings, name)
    assert checks.check_celery() == []


def test_every_id_has_one_place_and_one_meaning() -> None:
    ours = Path(checks.__file__).parent
    text = "".join(path.read_text() for path in [*sorted(ours.glob("*.py")), ours.parents[1] / "tasks" / "checks.py"])
    found = [line.split('id="')[1].split('"')[0] for line in text.splitlines() if 'id="' in line]
    assert len(found) == len(set(found))
    assert set(found) == {f"outlast_flows.{one}" for one in checks.CATALOGUE}

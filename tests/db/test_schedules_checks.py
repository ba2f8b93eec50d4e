"""What the checks say of schedules: as they are declared, what reads them, the zones, and those of the record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows import Schedule as Declared
from flows import minutes
from flows.checks import check_schedule_names, check_schedules, check_started_by, check_zones, schedules
from flows.core import declared as declarations
from flows.models import Schedule
from flows.services import missing
from flows.testing import LocalWorker
from tests.factories import person
from tests.support.scheduling import NAME, Declare, made, quick

pytestmark = pytest.mark.req("M1", "G5")


@pytest.fixture(autouse=True)
def undeclared() -> Iterator[None]:
    before = list(declarations.DECLARED)
    yield
    declarations.DECLARED[:] = before


def found() -> list[str]:
    return [str(one.id).removeprefix("outlast_flows.") for one in check_schedules()]


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("E084", {"cron": "61 * * * *"}, "cannot be read"),
    ("E084", {"rule": "FREQ=SECONDLY"}, "by the second"),
    ("E084", {"every": minutes(0.001)}, "at least a second"),
    ("E084", {"every": minutes(1), "cap": 0}, "cap=0"),
    ("E084", {"every": minutes(1), "jitter": minutes(-1)}, "is no span"),
    ("E084", {"every": minutes(1), "priority": 99_999}, "priority"),
    ("E085", {"every": minutes(1), "input": {"a": {1, 2}}}, "input of Schedule"),
    ("E085", {"every": minutes(1), "flow": "t-nowhere"}, "there is no flow 't-nowhere'"),
    ("E086", {"every": minutes(1), "zone": "Europe/Wien"}, "no time zone"),
    ("E086", {"every": minutes(1), "missed": "some"}, "none of every, newest, skip"),
    ("E086", {"every": minutes(1), "overlap": "often"}, "none of allow"),
    ("E086", {"cron": "0 2 * * *", "repeated": "twice"}, "none of first, last, both"),
    ("W004", {"every": minutes(1), "user": ""}, "nobody is accountable"),
]


@pytest.mark.parametrize(("code", "options", "said"), WRONG)
def test_each_mistake_has_its_id(worker: LocalWorker, declare: Declare, code: str, options: dict[str, Any], said: str) -> None:
    given = {"flow": quick(declare), "user": "ann", **options}
    Declared(NAME, given.pop("flow"), **given)
    (message,) = check_schedules()
    assert str(message.id).endswith(code)
    assert NAME in message.msg and said in message.msg
    assert message.hint


def test_a_name_is_the_beginning_of_keys(worker: LocalWorker, declare: Declare) -> None:
    Declared("n" * 150, quick(declare), every=minutes(1), user="ann")
    assert found() == ["E084"]


def test_one_that_is_sound_has_none(worker: LocalWorker, declare: Declare) -> None:
    flow = quick(declare)
    Declared("a", flow, cron="30 2 * * *", zone="Europe/Vienna", user="ann", repeated="both", missing="skip")
    Declared("b", "t-scheduled", rule="FREQ=DAILY", user="ann", window=minutes(5), cooldown=minutes(1), jitter=minutes(1))
    assert found() == []


def test_what_reads_it_has_to_be_installed(worker: LocalWorker, declare: Declare, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = quick(declare)
    Declared("c", flow, every=minutes(1), user="ann")
    monkeypatch.setattr(schedules, "_is_installed", lambda _package: False)
    assert found() == []
    Declared("a", flow, cron="30 2 * * *", user="ann")
    (message,) = check_schedules()
    assert (message.id, "'cronsim'" in message.msg) == ("outlast_flows.E115", True)
    assert 'pip install "outlast[schedules]"' in str(message.hint)


@pytest.mark.parametrize(("name", "text"), [("tzdata.zi", "# version 2026g\n# more"), ("+VERSION", "2026g")])
def test_zones_that_are_older_than_the_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    monkeypatch.setattr(schedules.zoneinfo, "TZPATH", (str(tmp_path / "none"), str(tmp_path)))
    monkeypatch.setattr(schedules.metadata, "version", lambda _name: "2026.6")
    (message,) = check_zones()
    assert (message.id, message.msg) == (
        "outlast_flows.W110",
        "The time zones of the package tzdata are of 2026f, the system's of 2026g.",
    )
    monkeypatch.setattr(schedules.metadata, "version", lambda _name: "2026.7")
    assert check_zones() == []


def test_a_system_without_zones_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules.zoneinfo, "TZPATH", (str(tmp_path),))
    assert check_zones() == []


def test_a_name_that_both_have(worker: LocalWorker, declare: Declare) -> None:
    flow = quick(declare)
    made(flow)
    assert check_schedule_names(databases=["default"]) == []
    Declared(NAME, flow, every=minutes(1), user="ann")
    (message,) = check_schedule_names(databases=["default"])
    assert (message.id, NAME in message.msg) == ("outlast_flows.E117", True)
    Schedule.objects.update(origin="code")
    assert check_schedule_names(databases=["default"]) == []
    assert check_schedule_names(databases=["other"]) == []


def test_a_calendar_that_nobody_has_published_is_named(worker: LocalWorker, declare: Declare) -> None:
    Declared(NAME, quick(declare), every=minutes(1), user="ann", calendar="nowhere")
    (one,) = missing.calendars([], "default")
    assert (one.where, "'nowhere'" in one.message) == (NAME, True)


def test_a_user_who_is_not_there_is_said(worker: LocalWorker, declare: Declare) -> None:
    flow = quick(declare)
    for name, user in (("with-nobody", "t-nobody"), ("with-ann", "ann"), ("without", "")):
        Declared(name, flow, every=minutes(1), user=user)
    person("ann")
    (message,) = [one for one in check_started_by(databases=["default"]) if "Schedule" in one.msg]
    assert (message.id, "with-nobody" in message.msg, "t-nobody" in message.msg, bool(message.hint)) == (
        "outlast_flows.W108", True, True, True,
    )  # fmt: skip

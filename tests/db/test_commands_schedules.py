"""manage.py flows schedules: what is shown, and what people do about a schedule, each with a reason and a right."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.core.management import CommandError, call_command

from flows import minutes
from flows.models import Occurrence, Schedule
from flows.testing import Clock, LocalWorker
from tests.factories import person
from tests.support.scheduling import NAME, Declare, made, now, quick, tick

pytestmark = pytest.mark.req("M1")


def said(*words: str, **options: Any) -> tuple[str, str]:
    """What it printed, and what it said beside."""
    out, err = io.StringIO(), io.StringIO()
    call_command("flows", "schedules", *words, stdout=out, stderr=err, **options)
    return out.getvalue(), err.getvalue()


@pytest.fixture
def signed(worker: LocalWorker) -> list[str]:
    """Who says so, and why."""
    person("rita").user_permissions.add(Permission.objects.get(codename="manage_schedule"))
    return ["--by", "rita", "--reason", "because"]


def test_what_there_is_and_what_comes(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    made(quick(declare), jitter=minutes(1), window=minutes(90))
    made(quick(declare, "t-other"), "daily", cron="30 2 * * *", zone="Europe/Vienna")
    text, err = said("list")
    assert "nightly" in text and "cron 30 2 * * *" in text and "2 shown" in err
    listed = json.loads(said("list", "--json")[0])
    assert [one["name"] for one in listed] == ["daily", "nightly"]
    assert listed[1]["user"] == "ann"
    found = json.loads(said("next", "daily", "--count", "3", "--json")[0])
    assert [one["local"][11:19] for one in found] == ["02:30:00"] * 3
    clock.move(minutes=2, seconds=2)
    tick(worker, 2)
    shown = json.loads(said("show", NAME, "--limit", "1", "--json")[0])
    assert (shown["window"], shown["overlap"], len(shown["occurrences"])) == (5400.0, "skip", 1)
    assert "OVERLAP" in said("show", NAME)[0] or "scheduled_for".upper() in said("show", NAME)[0]


def test_people_act(worker: LocalWorker, clock: Clock, declare: Declare, signed: list[str]) -> None:
    made(quick(declare), cron="*/10 * * * *")
    assert "nightly is paused" in said("pause", NAME, *signed)[1]
    assert "nightly was paused already" in said("pause", NAME, *signed)[1]
    assert "nightly is going on" in said("resume", NAME, *signed)[1]
    assert said("run", NAME, *signed) == ("1\n", "1 occurrence added to nightly\n")
    until = now()
    span = ["--since", (until - timedelta(hours=1)).isoformat(), "--until", until.isoformat()]
    data = json.loads(said("backfill", NAME, *span, *signed, "--json")[0])
    assert len(data["moments"]) == Occurrence.objects.filter(origin="backfill").count() == 6
    assert {*Occurrence.objects.values_list("by_label", "reason")} == {("rita", "because")}
    assert Schedule.objects.get().paused_at is None


def test_what_is_refused_says_the_way_out(worker: LocalWorker, declare: Declare, signed: list[str]) -> None:
    made(quick(declare))
    with pytest.raises(CommandError, match=r"There is no schedule 'weekly'\. There are nightly\."):
        said("next", "weekly")
    with pytest.raises(CommandError, match=r"needs the permission outlast_flows\.manage_schedule"):
        said("pause", NAME, "--by", "ann", "--reason", "r")
    with pytest.raises(CommandError, match="no moment with an offset"):
        said("backfill", NAME, "--since", "yesterday", "--until", "2026-01-01", *signed)
    with pytest.raises(CommandError, match="required"):
        said("pause", NAME)
    assert Schedule.objects.get().paused_at is None

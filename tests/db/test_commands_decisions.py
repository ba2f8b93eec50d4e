"""manage.py flows show: the decisions of a run's models, for a program and for a person."""

from __future__ import annotations

from typing import Any

import pytest

import flows
from flows import Candidate
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import Line, does
from tests.support.commanding import cli
from tests.support.deciding import HASH, Decide, rows

__all__ = ["cli"]

EVIL = "m\x1b[31m\u202e1"


@pytest.mark.req("O1", "Q3")
def test_show_has_the_artifacts_of_a_run(cli: Any, worker: LocalWorker, clock: Clock) -> None:
    def choose(attempt: Any) -> Candidate:
        attempt.record_model(EVIL, output_hash=HASH, usage={"input_tokens": 3})
        return Candidate("nothing declared" if attempt.number == 1 else "stop")

    does["choose"] = choose
    run = Decide.start({"key": "k"})
    worker.run()
    flows.signal("e", "t.decide", key="k", payload={})
    factories.drive(worker, clock)
    told = cli("show", run.id, "--json").json["candidates"]
    assert [(one["choice"], one["refused"], one["attempt"], one["output_hash"]) for one in told] == [
        ("", "INVALID_CANDIDATE", 1, HASH), ("stop", "", 2, HASH),
    ]  # fmt: skip
    assert told[1]["usage"] == {"input_tokens": 3, "count": 1, "calls": [{"model": EVIL, "output_hash": HASH, "input_tokens": 3}]}
    shown = cli("show", run.id).out
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    line = next(line for line in shown.splitlines() if line.startswith("choose  ") and " stop " in line)
    assert line.split()[:4] == ["choose", "1", "2", "stop"]
    assert line.split()[-2:] == [rows(run)[1].digest[7:19], "1"]


def test_a_run_without_a_decision_has_none(cli: Any, worker: LocalWorker) -> None:
    run = Line.start({})
    worker.run()
    assert cli("show", run.id, "--json").json["candidates"] == []
    assert "DECISION" not in cli("show", run.id).out

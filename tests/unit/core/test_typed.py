"""What an author declares with a wrong type is said where it is made, with the way to write it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from flows.core.commitments import Commits
from flows.core.effects import Effect, Servicing
from flows.core.errors import DefinitionError
from flows.core.policies import ESCALATE, Checkpoint, Deadline, Retry, Visits
from flows.core.requirements import Competence, Fresh, Gate
from flows.core.spans import hours, minutes

pytestmark = pytest.mark.req("G5")


def work(attempt: Any) -> None:
    """An author's function."""


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: minutes("10"), "minutes(…) is '10', which is a str. Write minutes(3)."),
        (lambda: hours(True), "hours(…) is True, which is a bool."),
        (lambda: Deadline(hours="2", then=ESCALATE), "Deadline(hours=…) is '2', which is a str. Write Deadline(hours=2, then=ESCALATE)."),
        (lambda: Deadline(hours=2, then=ESCALATE, escalate_to=5), "Deadline(escalate_to=…) is 5: it takes names, as text."),
        (lambda: Deadline(hours=2, then=ESCALATE, escalate_to=["duty", 5]), "Deadline(escalate_to=…) is ['duty', 5]: it takes names"),
        (lambda: Fresh(work, within=3600), "Fresh(within=…) is 3600, which is an int. Write Fresh(probe, within=hours(4))."),
        (lambda: Fresh(work, reuse=60), "Fresh(reuse=…) is 60, which is an int. Write Fresh(probe, reuse=seconds(60))."),
        (lambda: Retry(initial=5), "Retry(initial=…) is 5, which is an int. Write Retry(initial=seconds(5))."),
        (lambda: Retry(maximum="1h"), "Retry(maximum=…) is '1h', which is a str."),
        (lambda: Retry(max_attempts=2.5), "Retry(max_attempts=…) is 2.5, which is a float. Write Retry(max_attempts=2)."),
        (lambda: Retry(max_attempts=True), "Retry(max_attempts=…) is True, which is a bool."),
        (lambda: Retry(backoff="2"), "Retry(backoff=…) is '2', which is a str."),
        (lambda: Retry(retry_on=ValueError), "it takes several classes of errors. Write Retry(retry_on=(ValueError,))."),
        (lambda: Retry(never_on=("ValueError",)), "Retry(never_on=…) is ('ValueError',): it takes several classes of errors."),
        (lambda: Effect(grace=30), "Effect(grace=…) is 30, which is an int. Write Effect(…, grace=seconds(30))."),
        (lambda: Effect(timeout=30), "Effect(timeout=…) is 30, which is an int. Write Effect(…, timeout=minutes(2))."),
        (lambda: Effect(probes=6), "Effect(probes=…) is 6, which is an int. Write Effect(…, probes=Retry(max_attempts=6))."),
        (lambda: Servicing(work, grace=3), "Servicing(grace=…) is 3, which is an int."),
        (lambda: Servicing(work, timeout=None), "Servicing(timeout=…) is None, which is a NoneType."),
        (lambda: Commits(5), 'Commits(name, …) is 5, which is an int. Write Commits("window", release=…).'),
        (lambda: Commits("window", kind=3), "Commits(kind=…) is 3, which is an int."),
        (lambda: Commits("window", deadline=5), "Commits(deadline=…) is 5, which is an int."),
        (lambda: Gate(placement=3), 'Gate(placement=…) is 3: it takes names, as text. Write Gate(placement="eu").'),
        (lambda: Gate(authority=5), "Gate(authority=…) is 5: it takes names, as text."),
        (lambda: Gate(fresh=work), "Gate(fresh=…) is <function work"),
        (lambda: Gate(verified_by=work), "Gate(verified_by=…) is <function work"),
        (lambda: Gate(commitments=[""]), "Gate(commitments=…) is ['']: it takes names"),
        (lambda: Gate(competence="a"), "Gate(competence=…) is 'a', which is a str. Write Gate(competence=Competence(\"propose\", errors=3))."),
        (lambda: Visits("3", then="gave_up"), "Visits(n, …) is '3', which is a str. Write Visits(3, then=\"gave_up\")."),
        (lambda: Visits(3, then=work), "Visits(n, then=…) is <function work"),
        (lambda: Competence("propose", errors="3"), "Competence(errors=…) is '3', which is a str."),
        (lambda: Competence(work, errors=3), "Competence(of, …) is <function work"),
        (lambda: Checkpoint(max_bytes="16k"), "Checkpoint(max_bytes=…) is '16k', which is a str."),
    ],

)  # fmt: skip
def test_a_wrong_type_is_said_with_the_way_to_write_it(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(DefinitionError, match=re.escape(said)) as caught:
        make()
    assert "Write " in str(caught.value)


def test_what_fits_is_taken_in_each_of_its_forms() -> None:
    assert Retry(retry_on=[ValueError]).retry_on == (ValueError,)  # type: ignore[arg-type]
    assert Gate(authority=("repo.a", "repo.b"), placement="eu").placement == ("eu",)
    assert Deadline(hours=0.5, then=ESCALATE, escalate_to="duty").escalate_to == ("duty",)
    assert (minutes(1.5), Fresh(work).within, Gate().fresh) == (timedelta(seconds=90), None, {})

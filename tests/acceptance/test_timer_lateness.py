"""How late a timer is on an idle system: from the moment that it names to the start of the work behind it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from tests.support.chaosapp.flows import Nap
from tests.support.processes import Site

COUNT, APART = 100, timedelta(milliseconds=150)


@pytest.mark.req("C3")
def test_timers_on_an_idle_system_are_on_time(site: Site, measured: Callable[[str, float], None]) -> None:
    site.worker()
    site.beat()
    now = site.rows("SELECT now()")[0][0]
    moments = [now + timedelta(seconds=1.5) + number * APART for number in range(COUNT)]
    runs = site.start_many(Nap, [{"until": moment.isoformat()} for moment in moments])
    site.wait_complete(*runs)
    late = site.rows(
        """
        SELECT extract(epoch FROM a.started_at - t.due_at)::float8 FROM outlast_timer t
        JOIN outlast_attempt a ON a.workflow_id = t.workflow_id WHERE t.kind = 'sleep' ORDER BY 1
        """
    )
    assert len(late) == COUNT
    assert late[0][0] >= 0, "no timer fires early"
    measured("timer lateness p50", late[COUNT // 2][0])
    measured("timer lateness p90", late[COUNT * 9 // 10][0])
    measured("timer lateness p99", late[-2][0])
    measured("timer lateness max", late[-1][0])
    assert late[-2][0] < 1.0
    site.assert_sound(COUNT)

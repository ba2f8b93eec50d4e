"""Beat off for an hour, two Beats, no Beat at all: the timers are rows, and whoever looks at the clock fires them, once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from flows.testing import Clock, movable_clock
from tests.support.chaosapp.flows import Held, Load, LongNap, Nap, Three
from tests.support.processes import ALIAS, Site


@pytest.fixture
def clock(site: Site) -> Iterator[Clock]:
    with movable_clock(ALIAS) as clock:
        yield clock


def asleep(site: Site, count: int) -> list[object]:
    runs = [site.start(LongNap) for _ in range(count)]
    site.wait("all to sleep", lambda: all(site.status(run)[0] == "waiting" for run in runs))
    return runs


@pytest.mark.failure("Beat stops")
@pytest.mark.req("C2", "C3", "T1")
def test_an_hour_without_beat_and_workers_loses_nothing(site: Site, clock: Clock) -> None:
    worker, beat = site.worker(), site.beat()
    runs = asleep(site, 5)
    beat.stop()
    worker.stop()
    clock.move(hours=1)
    assert {site.status(run)[0] for run in runs} == {"waiting"}
    site.beat()
    site.worker()
    site.wait_complete(*runs)
    assert site.rows("SELECT status, count(*) FROM outlast_timer GROUP BY status") == [("fired", 5)]
    site.assert_sound(5)


@pytest.mark.failure("clock jumps")
@pytest.mark.req("C3", "T1")
def test_an_hour_without_beat_while_workers_go_on(site: Site, clock: Clock) -> None:
    site.worker()
    beat = site.beat()
    runs = asleep(site, 5)
    beat.kill()
    clock.move(hours=1)
    new = site.start(Three)
    site.beat("again")
    site.wait_complete(new, *runs)
    site.assert_sound(6)


@pytest.mark.failure("two Beats")
@pytest.mark.req("C3", "T1")
def test_two_beats_fire_each_timer_once(site: Site) -> None:
    site.worker()
    site.worker("other")
    site.beat()
    site.beat("second")
    runs = site.start_many(Load, [{"seconds": 0.02}] * 20)
    site.answer_load(20)
    site.wait_complete(*runs)
    wakes = "SELECT count(*), count(DISTINCT trigger_ref) FROM outlast_transition WHERE trigger = 'timer'"
    count, different = site.rows(wakes)[0]
    assert count == different
    assert count >= 20, "each has slept; retries, and what was heard after a while, come on top"
    site.assert_sound(20)


#: Each timer once: what fired, and what it woke.
FIRED = "SELECT count(*), count(*) FILTER (WHERE status = 'fired') FROM outlast_timer"
WOKEN = "SELECT count(*), count(DISTINCT trigger_ref) FROM outlast_transition WHERE trigger = 'timer'"


@pytest.mark.failure("clock jumps")
@pytest.mark.req("C3", "E1", "T1")
def test_the_durable_clock_goes_back_an_hour(site: Site, clock: Clock) -> None:
    """Sleepers sleep an hour longer, by the clock that they were told; a step under a lease notices nothing; then each timer fires once."""
    site.worker()
    site.beat()
    runs = asleep(site, 5)
    held = site.start(Held)
    site.wait("its step", lambda: len(site.called("two/1")) == 1)
    clock.move(hours=-1)
    between = site.start(Three)
    site.wait_complete(between)
    lease = site.rows("SELECT lease_until FROM outlast_worker")[0][0]
    site.wait("the lease of then to be over", lambda: site.rows("SELECT 1 WHERE statement_timestamp() > %s", lease))
    assert [status for _, status in site.workers()] == ["alive"]
    assert {site.status(run)[0] for run in runs} == {"waiting"}
    assert site.status(held)[:2] == ("running", "two")
    site.let_go()
    site.wait_complete(held)
    assert site.attempts(held, "two") == ["succeeded"]
    clock.move(minutes=50)
    another = site.start(Three)
    site.wait_complete(another)
    assert {site.status(run)[0] for run in runs} == {"waiting"}, "ten minutes before they fell asleep"
    clock.move(hours=1)
    site.wait_complete(*runs)
    assert (site.rows(FIRED), site.rows(WOKEN)) == ([(5, 5)], [(5, 5)])
    site.assert_sound(8)


@pytest.mark.failure("clock jumps")
@pytest.mark.req("C3", "E1", "T1")
def test_the_servers_clock_was_an_hour_ahead(site: Site) -> None:
    """The last tick lies in the future, for the server's clock was corrected since: nobody waits for that, with Beat or without."""
    site.worker()
    beat = site.beat()
    held = site.start(Held)
    site.wait("its step", lambda: len(site.called("two/1")) == 1)
    for looking in ("with Beat", "without"):
        if looking == "without":
            beat.stop()
        ahead = "UPDATE outlast_tick SET ticked_at = statement_timestamp() + interval '1 hour' RETURNING 1"
        assert site.rows(ahead) == [(1,)]
        soon = site.rows("SELECT (now() + interval '1.5 seconds')::text")[0][0]
        runs = [site.start(Nap, {"until": soon}) for _ in range(3)]
        site.wait_complete(*runs, seconds=20)
        site.wait("the mark of a look", lambda: site.rows("SELECT 1 FROM outlast_tick WHERE ticked_at <= statement_timestamp()"))
    assert [status for _, status in site.workers()] == ["alive"]
    assert site.attempts(held, "one") == ["succeeded"]
    site.let_go()
    site.wait_complete(held)
    assert site.attempts(held, "two") == ["succeeded"], "its lease was never in doubt"
    assert (site.rows(FIRED), site.rows(WOKEN)) == ([(6, 6)], [(6, 6)])
    site.assert_sound(7)


@pytest.mark.req("C3", "T1")
def test_without_any_beat_the_workers_look_at_the_clock(site: Site, measured: Callable[[str, float], None]) -> None:
    site.worker()
    soon = site.rows("SELECT (now() + interval '1.5 seconds')::text")[0][0]
    runs = [site.start(Nap, {"until": soon}) for _ in range(3)]
    measured("timers of 1.5 s without a Beat, to the end", site.wait_complete(*runs, seconds=20))
    site.assert_sound(3)


@pytest.mark.req("C3", "T1")
def test_the_clock_does_not_starve_when_all_slots_are_taken(site: Site) -> None:
    """Both slots work for a long time, so no tick is taken from the queue; timers of others are looked at all the same."""
    site.worker()
    site.beat()
    soon = site.rows("SELECT (now() + interval '4 seconds')::text")[0][0]
    sleeper = site.start(Nap, {"until": soon}, key="sleeper")
    site.wait("it to sleep", lambda: site.status(sleeper)[0] == "waiting")
    held = [site.start(Held) for _ in range(2)]
    site.wait("the steps", lambda: len(site.called("two/1")) == 2)
    site.wait("its timer to fire", lambda: site.rows("SELECT 1 FROM outlast_timer WHERE status = 'fired'"), seconds=20)
    site.let_go()
    site.wait("all to end", lambda: not site.open_runs())
    assert all(site.is_complete(run) for run in held)
    site.assert_sound(3)

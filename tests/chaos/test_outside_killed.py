"""SIGKILL while runs have to do with what is outside: a job, an endless run, webhooks, starts that become one. Nothing is lost or done twice."""

from __future__ import annotations

import json
import random
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

import flows
from project.dev.engines import free_port
from tests.support import signing
from tests.support.chaosapp import journal
from tests.support.chaosapp.outside import Building, Endless, Gathered, Hooked
from tests.support.processes import ALIAS, Site

RUNS, HOOKS = 12, 24
SECRET = signing.secrets("standard")[0]
SOURCE = {"SCHEME": "standard", "SECRETS": ["env:CHAOS_SECRET"], "EVENT": "chaos.hooked", "KEY": "body.key"}


@pytest.mark.req("C1", "T1")
def test_a_job_is_started_once_and_its_answer_counts_once(site: Site) -> None:
    """Killed in the call that starts it, and while it waits; the event comes twice, when no worker is there."""
    site.cleanup()  # looks at what is in doubt
    worker = site.worker()
    run = site.start(Building, key="b")
    site.wait("the call", lambda: site.called("build.start/1"))
    worker.kill()
    worker = site.worker(ready=False)
    site.wait("the same call again", lambda: len(site.called("build.start/1")) == 2)
    site.let_go()
    site.wait("the wait, and a poll", lambda: journal.read(site.world, "asked"))
    worker.kill()
    answers = [flows.signal("built", "chaos.built", key="b", payload={"n": 1}, using=ALIAS) for _ in range(2)]
    site.worker(ready=False)
    site.wait_complete(run)
    assert len({line["operation"] for line in site.called("build.start/1")}) == 1, "a provider is asked for the same twice"
    assert [bool(one) for one in answers] == [True, False]
    assert site.rows("SELECT status, place FROM outlast_event") == [("consumed", "taken")]
    assert site.rows("SELECT kind, status FROM outlast_commitment") == [("job", "fulfilled")]
    assert site.rows("SELECT result FROM outlast_workflow") == [({"n": 1},)]
    site.assert_sound(1)


@pytest.mark.req("G4", "T1")
def test_each_run_of_an_endless_one_is_followed_by_one(site: Site) -> None:
    run = site.start(Endless, {"left": RUNS}, key="e")
    ended = "SELECT count(*)::int FROM outlast_workflow WHERE status = 'complete'"
    for share in (4, 8):
        worker = site.worker(ready=False)
        site.wait(f"{share} runs", lambda share=share: site.rows(ended)[0][0] >= share)
        worker.kill()
    site.worker(ready=False)
    site.wait("the last run", lambda: site.rows(ended)[0][0] == RUNS + 1)
    rows = site.rows(
        "SELECT (input->>'left')::int, outcome, key, coalesce(chain, id) FROM outlast_workflow ORDER BY created_at, id"
    )
    assert [row[0] for row in rows] == list(range(RUNS, -1, -1)), "each number once, in order"
    assert [row[1] for row in rows] == ["CONTINUED"] * RUNS + ["COMPLETE"]
    assert [row[2] for row in rows] == [None] * RUNS + ["e"]
    assert {row[3] for row in rows} == {run}
    assert len(journal.read(site.world, journal.DONE)) == RUNS + 1
    site.assert_sound(RUNS + 1)


@pytest.mark.req("E1", "T1")
def test_what_a_sender_was_told_is_there_and_what_it_sends_again_counts_once(make_site: Callable[..., Site]) -> None:
    """The web process is killed under the requests of four senders, who send again what was not answered."""
    site = make_site(WEBHOOKS={"chaos": SOURCE})
    runs = site.start_many(Hooked, [{}] * HOOKS)
    port = free_port()
    web_env = {"WEB_ADDRESS": f"127.0.0.1:{port}", "CHAOS_SECRET": SECRET}
    left, told, lock = list(range(HOOKS)), [], threading.Lock()
    random.Random(6).shuffle(left)
    over = threading.Event()

    def send() -> None:
        while not over.is_set():
            with lock:
                if not left:
                    return
                number = left.pop()
            status = post(port, number)
            with lock:
                if status in (200, 202):
                    told.append(status)
                else:
                    left.append(number)

    site.procs.start("web", env=web_env)
    site.worker(ready=False)
    senders = [threading.Thread(target=send) for _ in range(4)]
    for sender in senders:
        sender.start()
    try:
        for share in (6, 14):
            site.wait(f"{share} answers", lambda share=share: len(told) >= share)
            site.procs.processes["web"].kill()
            site.procs.start("web", env=web_env)
        site.wait("all answers", lambda: len(told) == HOOKS)
    finally:
        over.set()
        for sender in senders:
            sender.join()
    site.wait_complete(*runs)
    assert site.rows("SELECT count(*)::int FROM outlast_webhook_delivery WHERE verdict = 'accepted'") == [(HOOKS,)]
    assert site.rows("SELECT count(*)::int, count(DISTINCT workflow_id)::int FROM outlast_event WHERE place = 'taken'") == [
        (HOOKS, HOOKS)
    ]
    assert len(journal.read(site.world, journal.DONE)) == HOOKS
    site.assert_sound(HOOKS)


def post(port: int, number: int) -> int:
    """The answer to one delivery; 0: there was none."""
    body = json.dumps({"key": f"chaos-hooked-{number}"}).encode()
    headers = signing.signed("standard", body, SECRET, now=int(time.time()), sent_id=f"h-{number}")
    headers["content-type"] = "application/json"
    request = urllib.request.Request(f"http://127.0.0.1:{port}/flows/hooks/chaos", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        time.sleep(0.05)  # nobody listens
        return 0


@pytest.mark.req("R2", "T1")
def test_starts_that_become_one_begin_once_with_the_newest_input(site: Site) -> None:
    """Killed as the first of them have begun; what is left of them, and what is put off meanwhile, is begun by whoever comes next."""
    begun = "SELECT count(*)::int FROM outlast_workflow"

    def put_off(group: str) -> list[Any]:
        return [site.start(Gathered, {"of": f"{group}{key}", "n": n}) for n in range(3) for key in range(5)]

    promised = set(put_off("a"))
    worker = site.worker(ready=False)
    site.wait("the first of them", lambda: site.rows(begun)[0][0] > 0)
    worker.kill()
    promised |= set(put_off("b"))
    assert len(promised) == 10
    site.worker(ready=False)
    site.wait("all of them", lambda: site.rows(begun)[0][0] == len(promised))
    site.wait_complete(*promised)
    results = [row[0] for row in site.rows("SELECT result FROM outlast_workflow")]
    assert sorted((one["of"], one["n"]) for one in results) == [(f"{group}{key}", 2) for group in "ab" for key in range(5)]
    assert len(journal.read(site.world, journal.DONE)) == 10
    assert not site.rows("SELECT FROM outlast_start_key WHERE due_at IS NOT NULL")
    site.assert_sound(10)

"""The cases of failure that the product is tested against by name; `@pytest.mark.failure(CASE)` says which a test is."""

from __future__ import annotations

#: Case → what must be seen. The first ten are those of one source document, the last two of the other; between them those of the
#: requirements (T1).
CASES: dict[str, str] = {
    "worker dies before the activity starts": "it is safely tried again",
    "worker dies after the effect, before its result is recorded": "the same operation, reconciled, never twice",
    "approval arrives after supersession": "it is rejected for a stale intent",
    "timer fires twice": "it wakes once",
    "release changes during a wait": "compatibility is decided before anything goes on",
    "commitment is active at completion": "the end waits, or says so",
    "write races with cancellation": "the stale one is refused",
    "duplicate event": "it is consumed once",
    "sleep past the freshness budget": "revalidated before the next consequential step",
    "lease expires under a slow worker": "its late result moves nothing",
    "broker loses everything": "nothing is lost but seconds",
    "database restarts": "what was committed is there, the rest is done again",
    "Beat stops": "nothing is lost",
    "two Beats": "each timer fires once",
    "clock jumps": "timers fire once, and in time",
    "wake-up that reaches no decision": "no model is called",
    "checkpoint references deleted state": "the conflict is explained, and nothing stale is applied",
    "dependency recovers with a backlog": "those who waited are let in at the declared rate, and no faster",
    "worker dies in the middle of an agent's turn": "no effect twice, and only the call in flight is paid anew",
    "prompt injection in what an agent reads": "it is data: route, approval, arguments and budget are those without it",
    "signed payload with instructions": "it is data between marks, and gives no right",
}

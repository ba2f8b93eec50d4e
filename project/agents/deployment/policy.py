"""What is asked of the cloud, what may be asked, and what follows from what was read. Pure: functions of recorded values alone.

`…_wanted` is called twice: for the request that Outlast records before a call, and for the call itself. So what is recorded is what is
sent, and a later attempt asks for the same under the same key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from flows.errors import PolicyDenied

if TYPE_CHECKING:
    from flows import Attempt, State

    Seen = Attempt | State

Json = dict[str, Any]

LONGEST_LEAD = 3 * 3600  # seconds: the flow waits for four hours until its window must have opened
LONGEST_WINDOW = 4 * 60  # minutes: lead and window together end before the commitment's deadline does
TEXTS, NUMBERS = ("service", "version", "cloud"), {"minutes": LONGEST_WINDOW, "opens_in": LONGEST_LEAD}


def check_input(given: Mapping[str, Any]) -> None:
    """Only a deployment that this flow's own deadlines leave room for.

    Raises:
        PolicyDenied: says what is wrong.
    """
    for name in TEXTS:
        if not isinstance(given.get(name), str) or not given[name]:
            raise PolicyDenied(f"{name} must be a text, not {given.get(name)!r}")
    for name, most in NUMBERS.items():
        value = given.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            raise PolicyDenied(f"{name} must be a number from 0 to {most}, not {value!r}")
    if urlsplit(given["cloud"]).scheme != "http" or not urlsplit(given["cloud"]).netloc:
        raise PolicyDenied(f"cloud must be an address like http://127.0.0.1:8123, not {given['cloud']!r}")


# ---------------------------------------------------------------------- what is asked for


def window_wanted(seen: Seen) -> Json:
    """Without a look at whether the input is sound: that is `check_input`'s, which can say so."""
    given = seen.input
    return {"service": given.get("service"), "minutes": given.get("minutes"), "seconds_until_open": given.get("opens_in")}


def canary_wanted(seen: Seen) -> Json:
    return {"service": seen.input["service"], "version": seen.input["version"], "window": window_id(seen.results["reserve"])}


def deployment_wanted(seen: Seen) -> Json:
    """Of a promotion as of a rollback: which deployment is meant."""
    return {"deployment": seen.results["canary"]["id"]}


# ---------------------------------------------------------------------- what was agreed, and whose event is meant


def window_id(reserved: Mapping[str, Any]) -> str:
    """The cloud's name for the window, from the result of `reserve`."""
    return str(reserved["id"])


def window_terms(reserved: Mapping[str, Any]) -> Json:
    """What was agreed about the window, for whoever looks at the commitment."""
    return {name: reserved[name] for name in ("service", "opens_at", "closes_at")}


def reserved_window(state: State) -> str:
    return window_id(state.results["reserve"])


def canary_id(state: State) -> str:
    return str(state.results["canary"]["id"])


# ---------------------------------------------------------------------- what follows


def ready(state: State) -> str:
    """Whether the canary may begin: `go`, `later` (it may change by itself) or `never` (this window is over)."""
    found = state.results["check"]
    if found["window"] in {"released", "expired"}:
        return "never"
    return "go" if found["healthy"] and found["window"] == "open" else "later"


def verdict(state: State) -> str:
    """Whether the canary keeps the service's objectives. Only a plain yes is one."""
    return "keep" if state.results["slo"]["ok"] is True else "drop"


def deployed_as(state: State) -> Json:
    """The result of the workflow: what it claims that the cloud has done."""
    promoted = state.results["promote"]
    return {name: promoted[name] for name in ("service", "version", "window")} | {"deployment": promoted["id"]}

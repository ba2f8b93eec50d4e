"""The client of the small cloud. What went wrong is said in the words of `flows.errors`, and never more than is known.

    what was met                                  of a change            of a question
    no connection: nothing was sent               Transient              Transient
    503: nothing was done                         CapacityUnavailable    Transient
    409; `details["state"]` names the state       StateConflict          -
    any other 4xx: it is wrong, and stays wrong   CompetenceFailure      CompetenceFailure
    500, no answer, half an answer, a time-out    AmbiguousOutcome       Transient

Setting health, objectives and faults may be repeated, so it fails as a question does.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from flows.errors import (
    ActivityError,
    AmbiguousOutcome,
    CapacityUnavailable,
    CompetenceFailure,
    StateConflict,
    Transient,
)

Json = dict[str, Any]


class Cloud:
    """One cloud at one address; holds no connection, so it may be used by many threads.

    Each change takes the key under which the cloud does it once. None is for what may be done twice, and has to be said.
    """

    def __init__(self, address: str, timeout: float = 5.0) -> None:
        netloc = urlsplit(address).netloc
        if not netloc:
            raise ValueError(f"an address like http://127.0.0.1:8123 is needed, got {address!r}")
        self.address, self.timeout, self._netloc = address, timeout, netloc

    # ------------------------------------------------------------------ changes

    def reserve(self, service: str, minutes: float, *, seconds_until_open: float = 0, key: str | None) -> Json:
        """A change window: `{id, service, opens_at, closes_at, state}`."""
        body = {"service": service, "seconds_until_open": seconds_until_open, "minutes": minutes}
        return self._change("windows", body=body, key=key)

    def release(self, window: str, *, key: str | None) -> Json:
        """Gives the window back."""
        return self._change("windows", window, "release", key=key)

    def canary(self, service: str, version: str, window: str, *, key: str | None) -> Json:
        """A deployment to a few instances: `{id, service, version, window, stage}`."""
        return self._change("deployments", body={"service": service, "version": version, "window": window}, key=key)

    def promote(self, deployment: str, *, key: str | None) -> Json:
        """The canary becomes what the service runs."""
        return self._change("deployments", deployment, "promote", key=key)

    def rollback(self, deployment: str, *, key: str | None) -> Json:
        """The canary goes, or what ran before the promotion runs again."""
        return self._change("deployments", deployment, "rollback", key=key)

    # ------------------------------------------------------------------ questions

    def operation(self, key: str) -> Json:
        """What became of the change with that key: `{state: happened, resource, response}` or `{state: absent}`.

        Absent means that it was not done and will not be. Where the cloud cannot say, Transient is raised.
        """
        return self._ask("operations", key)

    def window(self, window: str) -> Json:
        """Its state is reserved, open, expired or released."""
        return self._ask("windows", window)

    def deployment(self, deployment: str) -> Json:
        """Its stage is canary, promoted or rolled_back."""
        return self._ask("deployments", deployment)

    def service(self, service: str) -> Json:
        """What runs: `{service, version, deployment, healthy, error_rate, ok}`."""
        return self._ask("services", service)

    def health(self, service: str) -> Json:
        return self._ask("health", service)

    def slo(self, service: str) -> Json:
        return self._ask("slo", service)

    def events(self, after: int = 0) -> list[Json]:
        """A page of the feed, as it was delivered: duplicates and disorder included."""
        page: list[Json] = self._call("GET", ("events",), query={"after": after})
        return page

    def ledger(self, service: str | None = None) -> Json:
        """`{effects, summary: {applied, duplicated, windows, canaries}}`."""
        return self._ask("ledger", **({"service": service} if service else {}))

    # ------------------------------------------------------------------ what tests and demonstrations set

    def set_health(self, service: str, *, healthy: bool) -> Json:
        return self._set("health", service, body={"healthy": healthy})

    def set_slo(self, service: str, error_rate: float, *, ok: bool | None = None) -> Json:
        return self._set("slo", service, body={"error_rate": error_rate, **({} if ok is None else {"ok": ok})})

    def faults(self, **switches: float | bool) -> Json:
        """Switches exactly these faults on, and all others off; without any, the cloud behaves."""
        return self._set("faults", body=switches)

    # ------------------------------------------------------------------ HTTP

    def _change(self, *path: str, body: Json | None = None, key: str | None) -> Json:
        if key is not None and not (key and key.isascii() and key.isprintable()):
            raise CompetenceFailure(f"an idempotency key is printable ASCII, not {key!r}")
        headers = {} if key is None else {"Idempotency-Key": key}
        found: Json = self._call("POST", path, body or {}, headers=headers)
        return found

    def _ask(self, *path: str, **query: str) -> Json:
        found: Json = self._call("GET", path, query=query)
        return found

    def _set(self, *path: str, body: Json) -> Json:
        found: Json = self._call("PUT", path, body)
        return found

    def _call(
        self,
        method: str,
        path: tuple[str, ...],
        body: Json | None = None,
        *,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        what = "/" + "/".join(quote(part, safe="") for part in path) + (f"?{urlencode(query)}" if query else "")
        content = None if body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection(self._netloc, timeout=self.timeout)
        nobody_knows = AmbiguousOutcome if method == "POST" else Transient
        try:
            connection.connect()
        except OSError as error:
            raise Transient(f"{self.address} cannot be reached: {error}") from error
        try:
            connection.request(method, what, content, headers or {})
            with connection.getresponse() as response:  # half an answer leaves it open otherwise, and with it the connection
                status, answer = response.status, json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise nobody_knows(f"{method} {what}: no answer: {type(error).__name__}: {error}") from error
        finally:
            connection.close()
        if status == 200:
            return answer
        raise self._error(method, what, response, answer if isinstance(answer, dict) else {})

    def _error(self, method: str, what: str, response: http.client.HTTPResponse, answer: Json) -> ActivityError:
        change, status = method == "POST", response.status
        if status == 503:
            kind: type[ActivityError] = CapacityUnavailable if change else Transient
        elif status >= 500:
            kind = AmbiguousOutcome if change else Transient
        else:
            kind = StateConflict if status == 409 else CompetenceFailure
        after = response.headers.get("Retry-After", "")
        text = f"{method} {what}: {status} {answer.get('error', '')} {answer.get('message', '')}".rstrip()
        facts = {name: answer[name] for name in ("error", "state") if name in answer}
        return kind(text, retry_after=float(after) if after.isdecimal() else None, status=status, **facts)

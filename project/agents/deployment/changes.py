"""The rules of the small cloud: which changes there are, what each needs, and what it leaves behind. No HTTP in here.

    window       reserved ──► released          (it opens and closes by the clock)
    deployment   canary ──► promoted ──► rolled_back
                    └───────────────────────────┘

A canary and a promotion need a window that is open; a rollback needs none, because mitigation must not wait. The version
that a service runs is no column: it is the last promotion that was not rolled back, so a rollback restores what was before.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]
Fields = dict[str, tuple[type, ...]]

TEXT, NUMBER, BOOLEAN = (str,), (int, float), (bool,)
#: What the request of each change must hold.
FIELDS: dict[str, Fields] = {
    "reserve": {"service": TEXT, "seconds_until_open": NUMBER, "minutes": NUMBER},
    "release": {},
    "canary": {"service": TEXT, "version": TEXT, "window": TEXT},
    "promote": {},
    "rollback": {},
}
LONGEST = 10_000_000  # of any number in a request: 19 years, if these are minutes


class Refused(Exception):
    """The request was not carried out and nothing has changed; `body` says why."""

    def __init__(self, status: int, error: str, **more: Any) -> None:
        super().__init__(error)
        self.status = status
        self.body: Json = {"error": error, **more}


def conflict(state: str, message: str) -> Refused:
    return Refused(409, "conflict", state=state, message=message)


def checked(body: Json, needed: Fields, allowed: Fields | None = None) -> Json:
    """The body, if it has the fields that it must have, of the right kind, and no others than it may have."""
    fields = {**needed, **(allowed or {})}
    if wrong := (needed.keys() - body.keys()) | (body.keys() - fields.keys()):
        raise Refused(422, "invalid", message=f"missing or unknown: {', '.join(sorted(wrong))}")
    for name, value in body.items():
        right = isinstance(value, fields[name]) and isinstance(value, bool) == (fields[name] is BOOLEAN)
        if not right or value == "" or (fields[name] is NUMBER and not 0 <= value <= LONGEST):
            raise Refused(422, "invalid", message=f"{name} cannot be {value!r}")
    return body


@dataclass(frozen=True, slots=True)
class Turn:
    """One transaction, at one time."""

    db: sqlite3.Connection
    now: float

    # ------------------------------------------------------------------ statements

    def run(self, statement: str, *values: Any) -> sqlite3.Cursor:
        return self.db.execute(statement, values)

    def all(self, statement: str, *values: Any) -> list[sqlite3.Row]:
        return self.run(statement, *values).fetchall()

    def one(self, statement: str, *values: Any) -> sqlite3.Row | None:
        row: sqlite3.Row | None = self.run(statement, *values).fetchone()
        return row

    def found(self, table: str, id: str) -> sqlite3.Row:
        row = self.one(f"SELECT * FROM {table} WHERE id = ?", id)
        if row is None:
            raise Refused(404, "unknown_resource", message=f"there is no {id} among the {table}")
        return row

    def new_id(self, table: str, prefix: str) -> str:
        """The file's own name is part of it, so that two clouds never give the same."""
        row = self.one(f"SELECT name, (SELECT count(*) FROM {table}) + 1 AS number FROM cloud")
        assert row is not None
        return f"{prefix}-{row['name']}-{row['number']}"

    # ------------------------------------------------------------------ windows

    def reserve(self, resource: str | None, body: Json) -> Json:
        window, opens_at = self.new_id("windows", "win"), self.now + body["seconds_until_open"]
        values = (window, body["service"], opens_at, opens_at + 60 * body["minutes"])
        self.run("INSERT INTO windows (id, service, opens_at, closes_at) VALUES (?, ?, ?, ?)", *values)
        return self.window(window)

    def release(self, resource: str, body: Json) -> Json:
        state = self.window(resource)["state"]
        if state in {"released", "expired"}:
            raise conflict(state, f"{resource} is {state}: there is nothing to give back")
        self.run("UPDATE windows SET released_at = ? WHERE id = ?", self.now, resource)
        return self.window(resource)

    def window(self, id: str) -> Json:
        row = self.found("windows", id)
        if row["released_at"] is not None:
            state = "released"
        elif row["closes_at"] <= self.now:
            state = "expired"
        else:
            state = "open" if row["opens_at"] <= self.now else "reserved"
        times = {name: utc(row[name]) for name in ("opens_at", "closes_at")}
        return {"id": id, "service": row["service"], **times, "state": state}

    def raise_if_not_open(self, window: str, service: str) -> None:
        found = self.window(window)
        if found["service"] != service:
            raise conflict("other_service", f"{window} was reserved for {found['service']}, not for {service}")
        if found["state"] != "open":
            raise conflict(found["state"], f"{window} is {found['state']}, and not open")

    def announce_windows(self) -> None:
        """The event of each window that opened since the last look, written down so that it stays the same for ever."""
        opened = "opens_at <= ? AND (released_at IS NULL OR released_at >= opens_at)"
        for row in self.all(f"SELECT * FROM windows WHERE NOT announced AND {opened} ORDER BY opens_at, number", self.now):
            self.run("UPDATE windows SET announced = 1 WHERE id = ?", row["id"])
            facts = {name: utc(row[name]) for name in ("opens_at", "closes_at")}
            self.emit(f"window.opened/{row['id']}", row["id"], {"window": row["id"], "service": row["service"], **facts})

    # ------------------------------------------------------------------ deployments

    def canary(self, resource: str | None, body: Json) -> Json:
        self.raise_if_not_open(body["window"], body["service"])
        deployment = self.new_id("deployments", "dep")
        values = (deployment, body["service"], body["version"], body["window"])
        self.run("INSERT INTO deployments (id, service, version, window) VALUES (?, ?, ?, ?)", *values)
        return self.observed(deployment)

    def promote(self, resource: str, body: Json) -> Json:
        found = self.deployment(resource)
        if found["stage"] != "canary":
            raise conflict(found["stage"], f"{resource} is {found['stage']}: only a canary is promoted")
        self.raise_if_not_open(found["window"], found["service"])
        next_one = "(SELECT coalesce(max(promotion), 0) + 1 FROM deployments)"
        self.run(f"UPDATE deployments SET stage = 'promoted', promotion = {next_one} WHERE id = ?", resource)
        return self.observed(resource)

    def rollback(self, resource: str, body: Json) -> Json:
        found = self.deployment(resource)
        if found["stage"] == "rolled_back":
            raise conflict("rolled_back", f"{resource} is rolled back already")
        if found["stage"] == "promoted" and self.current(found["service"])[1] != resource:
            raise conflict("superseded", f"{found['service']} runs something newer than {resource}")
        self.run("UPDATE deployments SET stage = 'rolled_back' WHERE id = ?", resource)
        return self.observed(resource)

    def deployment(self, id: str) -> Json:
        row = self.found("deployments", id)
        return {name: row[name] for name in ("id", "service", "version", "window", "stage")}

    def current(self, service: str) -> tuple[str | None, str | None]:
        """The version that a service runs, and the deployment that brought it."""
        promoted = "service = ? AND stage = 'promoted' ORDER BY promotion DESC LIMIT 1"
        row = self.one(f"SELECT version, id FROM deployments WHERE {promoted}", service)
        return (row["version"], row["id"]) if row else (None, None)

    # ------------------------------------------------------------------ observation

    def measured(self, service: str) -> Json:
        row = self.one("SELECT healthy, error_rate, ok FROM services WHERE service = ?", service)
        if row is None:
            return {"healthy": True, "error_rate": 0.0, "ok": True}
        return {"healthy": bool(row["healthy"]), "error_rate": row["error_rate"], "ok": bool(row["ok"])}

    def measure(self, service: str, **values: Any) -> None:
        """New figures of a service; each of its canaries is observed with them."""
        self.run("INSERT OR IGNORE INTO services (service) VALUES (?)", service)
        for name, value in values.items():
            self.run(f"UPDATE services SET {name} = ? WHERE service = ?", value, service)
        for row in self.all("SELECT id FROM deployments WHERE service = ? AND stage = 'canary' ORDER BY number", service):
            self.observed(row["id"])

    def observed(self, id: str) -> Json:
        """Puts the deployment as it is now, with its service's figures, into the feed; returns it."""
        found = self.deployment(id)
        self.run("UPDATE deployments SET observations = observations + 1 WHERE id = ?", id)
        number = self.found("deployments", id)["observations"]
        self.emit(f"deployment.observed/{id}/{number}", id, {**found, **self.measured(found["service"])})
        return found

    def emit(self, id: str, key: str, payload: Json) -> None:
        values = (id, id.partition("/")[0], key, json.dumps(payload))
        self.run("INSERT INTO events (id, type, key, payload) VALUES (?, ?, ?, ?)", *values)


MOVES: dict[str, Callable[[Turn, Any, Json], Json]] = {
    "reserve": Turn.reserve,
    "release": Turn.release,
    "canary": Turn.canary,
    "promote": Turn.promote,
    "rollback": Turn.rollback,
}


def utc(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds")

"""What the small cloud has done: its own durable ledger, in one sqlite file. No HTTP and no faults in here.

An effect, its response and its events are one transaction: after a kill the file holds all of it or nothing. The row in
`effects` is both the line of the ledger and the record by which a repeated request is answered. A refusal leaves no trace.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from project.agents.deployment.changes import FIELDS, MOVES, Json, Refused, Turn, checked, utc

PAGE = 500  # events in one answer
TOLERATED = 0.01  # an error rate up to this is within the objective, unless somebody says otherwise

SCHEMA = """
CREATE TABLE IF NOT EXISTS cloud (name TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS effects (seq INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT, verb TEXT NOT NULL, service TEXT NOT NULL,
    resource TEXT NOT NULL, at REAL NOT NULL, request TEXT NOT NULL, response TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS effects_by_key ON effects (key);
CREATE TABLE IF NOT EXISTS windows (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, service TEXT NOT NULL,
    opens_at REAL NOT NULL, closes_at REAL NOT NULL, released_at REAL, announced INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS deployments (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, service TEXT NOT NULL,
    version TEXT NOT NULL, window TEXT NOT NULL, stage TEXT NOT NULL DEFAULT 'canary', promotion INTEGER,
    observations INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS services (service TEXT PRIMARY KEY, healthy INTEGER NOT NULL DEFAULT 1,
    error_rate REAL NOT NULL DEFAULT 0, ok INTEGER NOT NULL DEFAULT 1);
CREATE TABLE IF NOT EXISTS events (cursor INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, type TEXT NOT NULL,
    key TEXT NOT NULL, payload TEXT NOT NULL);
"""


class Ledger:
    """One connection under one lock: sqlite has a single writer anyway, and a lock is fairer than its busy loop."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, timeout=5.0, isolation_level=None, check_same_thread=False)
        self._db.row_factory = sqlite3.Row
        self._db.execute("PRAGMA journal_mode = WAL")
        # A kill loses nothing that was committed; only a power cut could, and nobody plays that here.
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.executescript(SCHEMA)
        with self._turn() as turn:
            if turn.one("SELECT name FROM cloud") is None:
                turn.run("INSERT INTO cloud VALUES (?)", uuid.uuid4().hex[:8])

    def close(self) -> None:
        with self._lock:
            self._db.close()

    @contextlib.contextmanager
    def _turn(self) -> Iterator[Turn]:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield Turn(self._db, time.time())
                self._db.execute("COMMIT")
            except BaseException:
                self._db.execute("ROLLBACK")
                raise

    # ------------------------------------------------------------------ changes

    def apply(self, verb: str, resource: str | None, body: Json, key: str | None, *, forget: bool = False) -> Json:
        """Does it once for each key; the same request under that key is answered from the record, another one is refused.

        `forget` is the fault of a provider that does not keep this promise: the key is written down and not looked up.
        """
        request = json.dumps([verb, resource, checked(body, FIELDS[verb])], sort_keys=True)
        with self._turn() as turn:
            record = None if key is None or forget else _record(turn, key)
            if record is not None:
                if record["request"] != request:
                    raise Refused(422, "key_reused", message=f"{key!r} was used for another request: {record['request']}")
                recorded: Json = json.loads(record["response"])
                return recorded
            response = MOVES[verb](turn, resource, body)
            turn.run(
                "INSERT INTO effects (key, verb, service, resource, at, request, response) VALUES (?, ?, ?, ?, ?, ?, ?)",
                *(key, verb, response["service"], response["id"], turn.now, request, json.dumps(response)),
            )
            return response

    def set_health(self, service: str, *, healthy: bool) -> Json:
        with self._turn() as turn:
            turn.measure(service, healthy=healthy)
        return {"healthy": healthy}

    def set_slo(self, service: str, error_rate: float, *, ok: bool | None = None) -> Json:
        """Whether a rate is within the objective is its own affair, unless it is said."""
        within = error_rate <= TOLERATED if ok is None else ok
        with self._turn() as turn:
            turn.measure(service, error_rate=error_rate, ok=within)
        return {"error_rate": error_rate, "ok": within}

    # ------------------------------------------------------------------ reading

    def operation(self, key: str) -> Json:
        """What became of the request with that key; with forgotten keys, of the last one."""
        with self._turn() as turn:
            record = _record(turn, key)
        if record is None:
            return {"state": "absent"}
        return {"state": "happened", "resource": record["resource"], "response": json.loads(record["response"])}

    def service(self, service: str) -> Json:
        """What runs, since which deployment, and how well."""
        with self._turn() as turn:
            version, deployment = turn.current(service)
            return {"service": service, "version": version, "deployment": deployment, **turn.measured(service)}

    def window(self, id: str) -> Json:
        with self._turn() as turn:
            return turn.window(id)

    def deployment(self, id: str) -> Json:
        with self._turn() as turn:
            return turn.deployment(id)

    def events(self, after: int) -> list[Json]:
        """The feed since a cursor, in order. Events are numbered by the single writer, so none appears behind a cursor."""
        with self._turn() as turn:
            turn.announce_windows()
            rows = turn.all(
                "SELECT id, type, key, payload, cursor FROM events WHERE cursor > ? ORDER BY cursor LIMIT ?", after, PAGE
            )
        return [{**dict(row), "payload": json.loads(row["payload"])} for row in rows]

    def everything(self, service: str | None = None) -> Json:
        """All effects in order, and what was done too often or is left over."""
        only, values = ("service = ?", [service]) if service else ("1", [])
        with self._turn() as turn:
            effects = turn.all(f"SELECT seq, key, verb, service, resource, at FROM effects WHERE {only} ORDER BY seq", *values)
            held = f"{only} AND released_at IS NULL AND closes_at > ?"
            windows = turn.all(f"SELECT id FROM windows WHERE {held} ORDER BY number", *values, turn.now)
            canaries = turn.all(f"SELECT id FROM deployments WHERE {only} AND stage = 'canary' ORDER BY number", *values)
        applied = Counter(row["key"] for row in effects if row["key"] is not None)
        summary: dict[str, Any] = {
            "applied": dict(applied),
            "duplicated": [key for key, count in applied.items() if count > 1],
            "windows": [row["id"] for row in windows],
            "canaries": [row["id"] for row in canaries],
        }
        return {"effects": [{**dict(row), "at": utc(row["at"])} for row in effects], "summary": summary}


def _record(turn: Turn, key: str) -> sqlite3.Row | None:
    return turn.one("SELECT * FROM effects WHERE key = ? ORDER BY seq DESC LIMIT 1", key)

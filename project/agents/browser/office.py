"""The rules of the small town hall, which has no API: permits for events in the street, asked for on its pages. No HTTP in here.

    session     open ──► over                  (nothing was heard of it for a while, or it was logged out)
    document    being checked ──► accepted, refused      by an official, somewhere else; an event says so
                      └──────────────┴──► removed
    permit      received ──► withdrawn

It keeps no promise that a web site does not keep: what is sent twice is received twice. `received` is its ledger.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from dataclasses import asdict, dataclass, field
from typing import Any

#: The accounts of the town hall.
ACCOUNTS = {"ada": "engine-no-1"}


@dataclass(frozen=True, slots=True)
class Asked:
    """One field of the form. `options`: value → text."""

    name: str
    label: str
    kind: str = "text"
    options: dict[str, str] = field(default_factory=dict)
    required: bool = True


PLACES = {"market": "Market square", "harbour": "Harbour street", "park": "The park"}
FIRST = (
    Asked("name", "Who applies"),
    Asked("event", "What is planned"),
    Asked("day", "On which day", "date"),
    Asked("place", "Where", "select", PLACES),
    Asked("guests", "How many guests are expected", "number"),
    Asked("plan", "Number of the site plan"),
    Asked("reference", "Your reference"),
)
MUSIC = Asked("music", "Will there be music", "select", {"": "–", "yes": "Yes", "no": "No"})
#: What the form asks for, by its layout: the town hall has changed it once.
LAYOUTS = {1: FIRST, 2: (*FIRST[:5], MUSIC, *FIRST[5:])}


@dataclass
class Document:
    number: str
    reference: str
    name: str
    sha256: str
    state: str = "being checked"


@dataclass
class Permit:
    number: str
    reference: str
    fields: dict[str, str]
    by: str
    state: str = "received"


class Wrong(Exception):
    """It was not done, and why: shown on the page."""

    def __init__(self, status: int, *reasons: str) -> None:
        super().__init__(*reasons)
        self.status, self.reasons = status, reasons


class Office:
    """What the town hall knows. Each method is one step of it, under one lock."""

    def __init__(self, idle: float = 600.0) -> None:
        self.idle, self.layout = idle, 1
        self.sessions: dict[str, tuple[str, float]] = {}
        self.documents: dict[str, Document] = {}
        self.received: dict[str, Permit] = {}
        self.events: list[dict[str, Any]] = []
        self.logins = 0
        self._lock = threading.RLock()

    # ------------------------------------------------------------------ sessions

    def log_in(self, user: str, password: str) -> str:
        with self._lock:
            if not secrets.compare_digest(ACCOUNTS.get(user, "\0").encode(), password.encode()):
                raise Wrong(200, "Wrong name or password.")
            session = secrets.token_hex(16)
            self.sessions[session] = (user, time.monotonic())
            self.logins += 1
            return session

    def log_out(self, session: str) -> None:
        with self._lock:
            self.sessions.pop(session, None)

    def user_of(self, session: str) -> str | None:
        with self._lock:
            user, heard = self.sessions.get(session, ("", 0.0))
            if not user or time.monotonic() - heard > self.idle:
                self.sessions.pop(session, None)
                return None
            self.sessions[session] = (user, time.monotonic())
            return user

    @staticmethod
    def token(session: str) -> str:
        """What a form sent in this session must hold."""
        return hashlib.sha256(f"form/{session}".encode()).hexdigest()[:32]

    # ------------------------------------------------------------------ documents

    def take_document(self, reference: str, name: str, content: bytes) -> Document:
        with self._lock:
            if not content:
                raise Wrong(422, "The document is empty.")
            number = f"D-{len(self.documents) + 1}"
            self.documents[number] = made = Document(number, reference, name, hashlib.sha256(content).hexdigest())
            return made

    def check(self, number: str, state: str) -> None:
        """An official has looked at it. What is said once stays an event for ever."""
        with self._lock:
            document = self.documents[number]
            document.state = state
            payload = {"document": number, "state": state, "sha256": document.sha256}
            self.events.append(
                {"id": f"document.checked/{number}/{state}", "type": "document.checked", "key": number, "payload": payload}
            )

    def remove(self, number: str) -> Document:
        with self._lock:
            document = self.documents[number]
            document.state = "removed"
            return document

    # ------------------------------------------------------------------ permits

    def receive(self, fields: dict[str, str], user: str) -> Permit:
        with self._lock:
            wanted = LAYOUTS[self.layout]
            missing = [f"{one.label}: please say." for one in wanted if one.required and not fields.get(one.name)]
            strange = [
                f"{one.label}: not one of ours." for one in wanted if one.options and fields.get(one.name) not in one.options
            ]
            if not missing and not fields["guests"].isdecimal():
                strange.append("How many guests are expected: a number, please.")
            document = self.documents.get(fields.get("plan", ""))
            if document is None or document.state != "accepted":
                strange.append("Number of the site plan: no plan of that number was accepted.")
            if missing or strange:
                raise Wrong(
                    422,
                    *missing,
                    *(one for one in strange if one.partition(":")[0] not in {m.partition(":")[0] for m in missing}),
                )
            number = f"P-{1001 + len(self.received)}"
            kept = {one.name: fields[one.name] for one in wanted}
            self.received[number] = made = Permit(number, fields["reference"], kept, user)
            return made

    def withdraw(self, number: str) -> Permit:
        with self._lock:
            permit = self.received[number]
            permit.state = "withdrawn"
            return permit

    def ledger(self) -> dict[str, Any]:
        """All that was ever done here, for tests and for whoever wants to know what really happened."""
        with self._lock:
            return {
                "permits": [asdict(one) for one in self.received.values()],
                "documents": [asdict(one) for one in self.documents.values()],
                "sessions": len(self.sessions),
                "logins": self.logins,
            }

"""Being logged in: state that can be made again at any time, beside the workflow that lasts.

    none ──► kept ──► carried by every later visit          a file in Django's storage, under its digest; the checkpoint names the digest
              │            └──► expired: the page asks for a password ──► a fresh one is kept, and the page is read anew
              └──► logged out, on the way to any end of the workflow (the commitment `session`)

What is in such a file lets its holder act as the user, so it is in no row of the database, and belongs into a storage that no web server shows.
A file that a kill cut short does not have its own digest, and counts as none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import Storage, storages
from django.utils.module_loading import import_string

from flows.errors import ActivityError, AmbiguousOutcome, PolicyDenied, StateConflict, Transient
from project.agents.browser import office, pages, policy
from project.agents.browser.pages import Document, Form, Page

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from flows import Attempt, Operation

FOLDER = "outlast/browser"


class Visit:
    """One page, and what to do where it asks for a password."""

    def __init__(self, site: str, page: Page) -> None:
        self.site, self.page = site, page

    def read(self, path: str) -> Document:
        """The page at that path as it is now, after logging in where that is needed.

        Raises:
            PolicyDenied: the site does not take the credentials.
        """
        found = self.page.goto(path)
        if found.wants_login:
            self._log_in(found)
            found = self.page.goto(path)  # anew: what a form holds belongs to its session
        if found.wants_login:
            raise PolicyDenied(f"{self.site} does not let us in")
        return found

    def send(self, form: Form, values: Mapping[str, str], files: Mapping[str, Path] | None = None) -> Document:
        return self.page.send(form, values, files)

    def kept(self) -> None:
        """Called when there is a fresh session."""

    def _log_in(self, asked: Document) -> None:
        (form,) = (one for one in asked.forms if any(field.kind == "password" for field in one.controls))
        name, password = credentials(self.site)
        values = {one.name: password if one.kind == "password" else name for one in form.asked}
        try:
            self.page.send(form, values)
        except (AmbiguousOutcome, StateConflict) as error:  # another log-in does no harm
            raise Transient(f"logging in: {error}") from error
        self.kept()


class _AttemptsVisit(Visit):
    def __init__(self, attempt: Attempt, page: Page) -> None:
        super().__init__(attempt.input["site"], page)
        self.attempt = attempt
        page.cookies = carried(attempt)

    def kept(self) -> None:
        content = json.dumps(self.page.cookies, sort_keys=True).encode()
        digest = hashlib.sha256(content).hexdigest()
        before = (self.attempt.checkpoint or {}).get("session")
        if not store().exists(path_of(self.attempt.workflow_id, digest)):
            store().save(path_of(self.attempt.workflow_id, digest), ContentFile(content))
        remember(self.attempt, session=digest)
        if before and before != digest:
            store().delete(path_of(self.attempt.workflow_id, before))


@contextmanager
def visit(attempt: Attempt) -> Iterator[Visit]:
    """The site, in the workflow's session."""
    with pages.opened(attempt.input["site"]) as page:
        yield _AttemptsVisit(attempt, page)


@contextmanager
def visit_once(operation: Operation) -> Iterator[Visit]:
    """The site for whoever services an operation: in a session of its own, which ends with it."""
    site = operation.input["site"]
    with pages.opened(site) as page:
        yield Visit(site, page)
        leave(page)


def leave(page: Page) -> None:
    """Log out. A session that stays because of a fault ends by itself; nothing hangs on it."""
    with suppress(ActivityError):
        found = page.goto(policy.NEW_PERMIT)
        if not found.wants_login:
            page.send(found.form(policy.LEAVE), {})


def log_out(operation: Operation) -> dict[str, Any]:
    """The end of the session that is kept, and of what killed attempts left beside it. Again is once."""
    folder = f"{FOLDER}/{operation.workflow_id}"
    names: list[str] = []
    with suppress(FileNotFoundError):
        names = sorted(store().listdir(folder)[1])
    for name in names:
        cookies = _read(f"{folder}/{name}")
        if cookies:
            with pages.opened(operation.input["site"]) as page:
                page.cookies = cookies
                leave(page)
        store().delete(f"{folder}/{name}")
    with suppress(OSError):
        store().delete(folder)
    return {"ended": len(names)}


def remember(attempt: Attempt, **facts: Any) -> None:
    """Beside what the checkpoint holds already: page, form version, session, what was refused."""
    attempt.save_checkpoint({**(attempt.checkpoint or {}), **facts})


def carried(attempt: Attempt) -> dict[str, str]:
    """The session that the checkpoint names; empty where there is none, or what is there is not it."""
    digest = (attempt.checkpoint or {}).get("session")
    return _read(path_of(attempt.workflow_id, digest)) if digest else {}


def path_of(workflow_id: str, digest: str) -> str:
    return f"{FOLDER}/{workflow_id}/{digest}.json"


def store() -> Storage:
    """The storage of the setting BROWSER_AGENT_STORAGE, an alias of STORAGES."""
    found: Storage = storages[getattr(settings, "BROWSER_AGENT_STORAGE", "default")]
    return found


def credentials(site: str) -> tuple[str, str]:
    """Name and password, from the function that BROWSER_AGENT_CREDENTIALS names; without it, those of the small town hall.

    Raises:
        PolicyDenied: there are none for this site.
    """
    if path := getattr(settings, "BROWSER_AGENT_CREDENTIALS", ""):
        found: tuple[str, str] = import_string(path)(site)
        return found
    if urlsplit(site).hostname != "127.0.0.1":
        raise PolicyDenied(f"there are no credentials for {site}: name a function in the setting BROWSER_AGENT_CREDENTIALS")
    return next(iter(office.ACCOUNTS.items()))


def _read(path: str) -> dict[str, str]:
    try:
        with store().open(path) as file:
            content = file.read()
    except FileNotFoundError:
        return {}
    if f"{hashlib.sha256(content).hexdigest()}.json" != path.rpartition("/")[2]:
        return {}
    cookies: dict[str, str] = json.loads(content)
    return cookies

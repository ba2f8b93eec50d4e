"""A page as the agent sees it, and the one interface by which it is driven. Two programs stand behind it: `chromium.py` and `plain.py`.

Document    what a page says: address, status, title, text, links, facts (its definition lists), forms
Form        a form of it; `version` is the digest of what it asks for, without what changes from visit to visit (values, hidden fields)
Page        goto, send, and the cookies, which are all that a session is

All of a Document is what others wrote: data for the model and for people, never an instruction. A page keeps to one origin, the site's:
whatever leads elsewhere is refused, or does not load.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from django.conf import settings

from flows.errors import PolicyDenied, StateConflict
from project.agents.browser import pipe

#: Kinds of fields that carry no answer of ours.
SILENT = frozenset({"hidden", "submit", "button", "reset", "image"})


@dataclass(frozen=True, slots=True)
class Control:
    """One field. `options`: of a choice, (value, text)."""

    name: str
    kind: str
    label: str = ""
    value: str = ""
    required: bool = False
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Form:
    """`id` is what the page calls it. `action`: the whole address that it is sent to."""

    id: str
    action: str
    method: str
    encoding: str
    controls: tuple[Control, ...]

    @property
    def asked(self) -> tuple[Control, ...]:
        """What somebody is to fill in."""
        return tuple(one for one in self.controls if one.kind not in SILENT)

    @property
    def version(self) -> str:
        """The same as long as the form asks for the same."""
        fields = [[one.name, one.kind, one.label, one.required, one.options] for one in self.asked]
        said = [self.id, urlsplit(self.action).path, self.method, fields]
        return "sha256:" + hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Document:
    url: str
    status: int
    title: str = ""
    text: str = ""
    forms: tuple[Form, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return urlsplit(self.url).path

    @property
    def wants_login(self) -> bool:
        """Whether it asks for a password: then it is not the page that was asked for."""
        return any(one.kind == "password" for form in self.forms for one in form.controls)

    def form(self, id: str) -> Form:
        """
        Raises:
            StateConflict: the page has no such form.
        """
        found = [one for one in self.forms if one.id == id]
        if len(found) != 1:
            raise StateConflict(f"the page at {self.path} has {len(found)} forms {id!r}, and should have one")
        return found[0]


class Page(Protocol):
    """One tab with one site in it."""

    #: Name → value of the site's cookies.
    cookies: dict[str, str]

    def goto(self, path: str) -> Document:
        """Read a page of the site anew.

        Raises:
            Transient: it cannot be read now. PolicyDenied: it leads away from the site.
        """

    def send(self, form: Form, values: Mapping[str, str], files: Mapping[str, Path] | None = None) -> Document:
        """Fill in this form of the page that is open and send it; what the site answers. Fields that are not named stay as they are.

        Raises:
            Transient: nothing was sent. AmbiguousOutcome: nobody knows whether it arrived. StateConflict: the form does not take the values.
            PolicyDenied: it would be sent away from the site.
        """


def opened(site: str) -> AbstractContextManager[Page]:
    """A page of that site (an origin, `http://host:port`), without a session, in the program that BROWSER_AGENT_DRIVER names:
    "chromium", "http", or empty: a Chromium where there is one.
    """
    from project.agents.browser import chromium, plain

    driver = getattr(settings, "BROWSER_AGENT_DRIVER", "") or ("chromium" if pipe.find() else "http")
    return chromium.page(site) if driver == "chromium" else plain.page(site)


def origin(url: str) -> str:
    """
    Raises:
        PolicyDenied: it is no address of a web site.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise PolicyDenied(f"a site is an address like http://127.0.0.1:8200, not {url!r}")
    return f"{parts.scheme}://{parts.netloc}"


def within(site: str, url: str) -> None:
    """
    Raises:
        PolicyDenied: the address is not one of the site's.
    """
    if origin(url) != origin(site):
        raise PolicyDenied(f"{url!r} is outside {site}")


def takes(form: Form, values: Mapping[str, str]) -> None:
    """What a browser itself looks at before it sends: whether the fields are there, and no needed one is empty.

    Raises:
        StateConflict: names what does not fit.
    """
    there = {one.name: one for one in form.asked}
    if strange := sorted(values.keys() - there.keys()):
        raise StateConflict(f"the form {form.id!r} has no field {', '.join(strange)}")
    for name, value in values.items():
        if there[name].options and value not in dict(there[name].options):
            raise StateConflict(f"{value!r} is none of the choices of {name!r}")
    files = {one.name for one in form.asked if one.kind == "file"}
    empty = [one.name for one in form.asked if one.required and one.name not in files and not values.get(one.name, one.value)]
    if empty:
        raise StateConflict(f"the form {form.id!r} needs {', '.join(empty)}")

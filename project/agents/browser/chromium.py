"""The page in a real headless Chromium: what it says after its scripts have run, and forms that the browser itself checks and sends.

Its only way out is the `Strait`: it reaches the site and nothing else, and what it sends, it sends once.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from flows.errors import AmbiguousOutcome, PolicyDenied, StateConflict, Transient
from project.agents.browser import pages, parsing
from project.agents.browser.pages import Document, Form
from project.agents.browser.pipe import BrowserFault, Tab, running
from project.agents.browser.strait import Strait

#: Fills in the fields of a form as a person's typing would: with the events that its scripts listen to. What it cannot fill in, it names.
FILL = """
((id, values) => {
  const form = document.getElementById(id), wrong = [];
  if (!(form instanceof HTMLFormElement)) return [id];
  for (const [name, value] of Object.entries(values)) {
    const field = form.elements.namedItem(name);
    if (!field || !('value' in field)) { wrong.push(name); continue; }
    field.value = value;
    for (const event of ['input', 'change']) field.dispatchEvent(new Event(event, {bubbles: true}));
    if (field.value !== value) wrong.push(name);
  }
  for (const field of form.elements) if (field.willValidate && !field.checkValidity()) wrong.push(field.name);
  return wrong;
})
"""


class ChromiumTab(Tab):
    """Notes what became of the document that is loaded: its status, or that it did not come. Answers what the page asks a person."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self.status = 0
        self.asked = ""
        self._documents: set[str] = set()
        super().__init__(to_browser, from_browser)

    def noted(self, message: dict[str, Any]) -> None:
        params = message["params"]
        mine = params.get("type") == "Document" and params.get("frameId") == self.frame
        match message["method"]:
            case "Network.requestWillBeSent" if mine:
                self._documents.add(params["requestId"])
                self.asked = str(params["request"]["url"])
            case "Network.responseReceived" if mine:
                self.status = int(params["response"]["status"])
            case "Page.javascriptDialogOpening":  # the page would wait for a click; it may be left, and gets a no to all else
                self.tell("Page.handleJavaScriptDialog", accept=params["type"] == "beforeunload")
            case "Network.loadingFailed" if params["requestId"] in self._documents:
                self.status = 0

    def submit(self, form: str) -> None:
        """Have the browser send the form, and wait for what comes back."""
        before = self._loads
        self.do(f"document.getElementById({json.dumps(form)}).requestSubmit()")
        self._until_loaded(before)


class ChromiumPage:
    """See `pages.Page`."""

    def __init__(self, site: str, tab: ChromiumTab, strait: Strait) -> None:
        self.site, self._tab, self._strait = pages.origin(site), tab, strait

    @property
    def cookies(self) -> dict[str, str]:
        found = self._tab.call("Network.getCookies", urls=[self.site])["cookies"]
        return {one["name"]: one["value"] for one in found}

    @cookies.setter
    def cookies(self, wanted: dict[str, str]) -> None:
        self._tab.call("Network.clearBrowserCookies")
        for name, value in wanted.items():
            self._tab.call("Network.setCookie", url=self.site, name=name, value=value, httpOnly=True)

    def goto(self, path: str) -> Document:
        url = urljoin(self.site, path)
        pages.within(self.site, url)
        self._tab.status = 0
        try:
            self._tab.goto(url)
            found = self._document()
        except BrowserFault as error:
            raise Transient(str(error)) from error
        if found.status >= 500:
            raise Transient(f"{url}: {found.status}")
        return found

    def send(self, form: Form, values: Mapping[str, str], files: Mapping[str, Path] | None = None) -> Document:
        pages.within(self.site, form.action)
        pages.takes(form, values)
        tab = self._tab
        try:
            wrong = [name for name in files or {} if not self._give(form, name, (files or {})[name])]
            wrong += tab.do(f"({FILL})({json.dumps(form.id)}, {json.dumps(dict(values))})")
        except BrowserFault as error:
            raise Transient(str(error)) from error
        if wrong:
            raise StateConflict(f"the form {form.id!r} does not take {', '.join(wrong)}")
        tab.status = 0
        try:
            with self._strait.once():
                tab.submit(form.id)
            found = self._document()
        except (BrowserFault, Transient, PolicyDenied) as error:  # it was sent, so nothing that comes after says that it was not
            raise AmbiguousOutcome(str(error)) from error
        if found.status >= 500:
            raise AmbiguousOutcome(f"the site answered {found.status}")
        return found

    def _give(self, form: Form, name: str, path: Path) -> bool:
        """Whether the form took the file."""
        wanted = f"document.getElementById({json.dumps(form.id)}).elements.namedItem({json.dumps(name)})"
        found = self._tab.call("Runtime.evaluate", expression=wanted)["result"].get("objectId")
        if found:
            self._tab.call("DOM.setFileInputFiles", objectId=found, files=[str(path)])
        return bool(found)

    def _document(self) -> Document:
        """
        Raises:
            Transient: nothing came. PolicyDenied: what came is not the site's.
        """
        pages.within(self.site, self._tab.asked)
        url, html = self._tab.do("[location.href, document.documentElement.outerHTML]")
        if not self._tab.status or urlsplit(url).scheme not in {"http", "https"}:
            raise Transient(f"{self.site} did not answer")
        pages.within(self.site, url)
        return parsing.read(html, url, self._tab.status)


@contextmanager
def page(site: str) -> Iterator[ChromiumPage]:
    """A browser of its own, with nothing in it; afterwards it is gone.

    Raises:
        Transient: it cannot be started.
    """
    parts = urlsplit(pages.origin(site))
    secure = parts.scheme == "https"
    with ExitStack() as stack:
        try:
            strait = stack.enter_context(
                closing(Strait(parts.hostname or "", parts.port or (443 if secure else 80), secure=secure))
            )
            flags = [f"--proxy-server={strait.address}", "--proxy-bypass-list=<-loopback>", "--disable-http2"]
            if os.geteuid() == 0:
                flags.append("--no-sandbox")  # as root it starts with no other
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="outlast-browser-", ignore_cleanup_errors=True))
            tab = ChromiumTab(*stack.enter_context(running(Path(folder), *flags)))
        except (BrowserFault, OSError) as error:
            raise Transient(f"the browser cannot be started: {error}") from error
        yield ChromiumPage(site, tab, strait)

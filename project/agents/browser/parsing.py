"""HTML to a `Document`: the same for both programs. What a page runs or styles itself with is left out of its text."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from urllib.parse import urljoin

from project.agents.browser.pages import Control, Document, Form

#: Characters of a page's text that are kept.
TEXT = 20_000
UNSEEN = frozenset({"script", "style", "template", "noscript", "head"})
VOID = frozenset({"input", "br", "hr", "img", "meta", "link"})

#: What ends an element that is open and need not be closed by itself.
ENDS = {"option": {"option", "select"}, "dt": {"dt", "dd", "dl"}, "dd": {"dt", "dd", "dl"}}

Given = dict[str, str]


@dataclass
class _Form:
    given: Given
    controls: list[Control] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.forms: list[_Form] = []
        self.labels: dict[str, str] = {}
        self.links: list[tuple[str, str]] = []
        self.facts: dict[str, str] = {}
        self.title = ""
        self.said: list[str] = []
        self._open: list[str] = []
        self._form: _Form | None = None
        self._held: dict[str, list[str]] = {}  # tag → the text inside the one that is open
        self._given: dict[str, Given] = {}
        self._options: list[tuple[str, str]] = []
        self._chosen: str | None = None
        self._term = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._end_open(tag)
        given = {name: value or "" for name, value in attrs}
        if tag not in VOID:
            self._open.append(tag)
        if tag in {"title", "label", "a", "dt", "dd", "option", "textarea", "button"}:
            self._held[tag], self._given[tag] = [], given
        if tag == "form":
            self._form = _Form(given)
            self.forms.append(self._form)
        elif tag == "input":
            self._control(given, given.get("type", "text").lower(), given.get("value", ""))
        elif tag == "select":
            self._given[tag], self._options, self._chosen = given, [], None

    def _end_open(self, tag: str) -> None:
        for one in [one for one in self._held if tag in ENDS.get(one, ())]:
            self.handle_endtag(one)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self._held:
            self._end_open(tag)
        if tag in self._open:
            while self._open and self._open.pop() != tag:
                """What was not closed ends with it."""
        text = " ".join("".join(self._held.pop(tag, [])).split())
        given = self._given.pop(tag, {})
        match tag:
            case "title":
                self.title = text
            case "label":
                self.labels[given.get("for", "")] = text
            case "a":
                self.links.append((given.get("href", ""), text))
            case "dt":
                self._term = text
            case "dd":
                self.facts[self._term] = text
            case "option":
                value = given.get("value", text)
                self._options.append((value, text))
                self._chosen = value if "selected" in given or self._chosen is None else self._chosen
            case "select":
                self._control(given, "select", self._chosen or "", tuple(self._options))
            case "textarea":
                self._control(given, "textarea", text)
            case "form":
                self._form = None

    def handle_data(self, data: str) -> None:
        for held in self._held.values():
            held.append(data)
        if not UNSEEN & set(self._open) and data.strip():
            self.said.append(" ".join(data.split()))

    def _control(self, given: Given, kind: str, value: str, options: tuple[tuple[str, str], ...] = ()) -> None:
        if self._form is None or not given.get("name") or "disabled" in given:
            return
        self._form.controls.append(Control(given["name"], kind, "", value, "required" in given, options))
        self._form.ids.append(given.get("id", ""))


def read(html: str, url: str, status: int) -> Document:
    """What the page says."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return Document(
        url=url,
        status=status,
        title=reader.title,
        text="\n".join(reader.said)[:TEXT],
        forms=tuple(_form(one, reader.labels, url) for one in reader.forms),
        links=tuple((urljoin(url, href), text) for href, text in reader.links),
        facts=reader.facts,
    )


def _form(found: _Form, labels: dict[str, str], url: str) -> Form:
    controls = zip(found.controls, found.ids, strict=True)
    return Form(
        id=found.given.get("id", ""),
        action=urljoin(url, found.given.get("action") or url),
        method=found.given.get("method", "get").upper(),
        encoding=found.given.get("enctype", "application/x-www-form-urlencoded"),
        controls=tuple(replace(one, label=labels.get(mark, "")) for one, mark in controls),
    )

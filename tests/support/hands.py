"""How a person works a page: with a mouse or a finger, or by the keyboard alone."""

from __future__ import annotations

from typing import Protocol

from tests.support.browser import Page


class Hand(Protocol):
    """How a person works a page."""

    def use(self, selector: str, *, loads: bool = True) -> None:
        """Activate a link or a button."""

    def write(self, selector: str, text: str) -> None:
        """Go to a field and type."""

    def mark(self, selector: str) -> None:
        """Choose a radio button, or tick a box."""

    def choose(self, selector: str, value: str) -> None:
        """Go to a list and choose what has that value."""


class Pointer:
    """A mouse; on a phone a finger. The keyboard serves only to type what goes into a field."""

    def __init__(self, tab: Page, *, finger: bool) -> None:
        self.tab, self.hit = tab, tab.tap if finger else tab.click

    def use(self, selector: str, *, loads: bool = True) -> None:
        self.hit(selector, loads=loads)

    def write(self, selector: str, text: str) -> None:
        self.hit(selector, loads=False)
        assert self.tab.do(f"document.activeElement.matches({selector!r})"), f"{selector} takes the focus when it is touched"
        self.tab.type(text)

    def mark(self, selector: str) -> None:
        self.hit(selector, loads=False)

    def choose(self, selector: str, value: str) -> None:
        self.hit(selector, loads=False)
        self.tab.do(CHOSEN % (selector, value))


class Keyboard:
    """Tab, Space and Enter, from the top of each page on; where the focus is can be seen all the way."""

    def __init__(self, tab: Page) -> None:
        self.tab = tab

    def use(self, selector: str, *, loads: bool = True) -> None:
        self._reach(selector)
        self.tab.press("Enter", loads=loads)

    def write(self, selector: str, text: str) -> None:
        self._reach(selector)
        self.tab.type(text)

    def mark(self, selector: str) -> None:
        self._reach(selector)
        self.tab.press("Space")

    def choose(self, selector: str, value: str) -> None:
        self._reach(selector)
        self.tab.do(CHOSEN % (selector, value))

    def _reach(self, selector: str) -> None:
        if not self.tab.do(f"document.activeElement.matches({selector!r})"):
            self.tab.tab_to(selector)
        assert self.tab.do(SEEN), f"the focus on {selector} can be seen"


#: How a list opens is the browser's own, outside the page: what is chosen in it is set.
CHOSEN = "(() => { const e = document.querySelector(%r); e.value = %r; e.dispatchEvent(new Event('change', {bubbles: true})); return 0; })()"

#: An outline, or a border or shadow that the same element does not have without the focus.
SEEN = """(() => { const e = document.activeElement, look = () => { const s = getComputedStyle(e);
  return [s.outlineStyle === 'none' ? '' : s.outline, s.borderColor, s.boxShadow, s.backgroundColor, s.textDecoration, s.color].join(); };
  e.getAnimations().forEach(one => one.finish());
  const on = look(); e.blur(); e.getAnimations().forEach(one => one.finish()); const off = look(); e.focus({focusVisible: true});
  return on !== off || getComputedStyle(e).outlineStyle !== 'none'; })()"""

"""Our pages under a theme: `make test-browser THEMES=1`. What a theme draws is its own; what we draw must be there and can be read."""

from __future__ import annotations

import pytest

from tests.support import axe, scene, themed
from tests.support.browser import Page
from tests.support.scene import THEMES, WIDTHS, Scene

pytestmark = pytest.mark.skipif(not themed.THEME, reason="no theme is asked for: make test-browser THEMES=1")

SHOWN = {
    "index",
    "inbox",
    "inbox-all",
    "decide",
    "decide-revised",
    "decide-ladder",
    "decide-answered",
    "decide-reader",
    "decide-error",
    "history",
    "workflow-waiting",
    "workflow-stopped",
    "operations-all",
    "operation-page",
    "budget-page",
    "policy-page",
}


@pytest.mark.parametrize("width", WIDTHS)
def test_our_pages_are_whole_and_can_be_read(filled: Scene, address: str, tab: Page, width: int) -> None:
    found: list[str] = []
    tab.screen(width, WIDTHS[width], phone=width < 600)
    for page in scene.pages():
        if page.name not in SHOWN:
            continue
        for theme in THEMES:
            tab.dark(on=theme == "dark")
            page.show(tab, address, filled)
            if themed.THEME == "jazzmin":  # it does not ask what the system prefers, but keeps its own switch
                tab.do(
                    f"localStorage.setItem('jazzmin-theme-mode', '{theme}'); document.documentElement.dataset.bsTheme = '{theme}'"
                )
            tab.settle()
            view = f"{themed.THEME}-{page.name}-{width}-{theme}"
            tab.shoot(view)
            if tab.do("document.title === 'owned'"):
                found.append(f"{view}: text became code")
            if not tab.do("document.documentElement.scrollWidth <= innerWidth"):
                found.append(f"{view}: the page scrolls sideways")
            if tab.do("!!document.querySelector('.oa-page')"):
                found += [
                    f"{view}: {node['target']}: {node['why']}"
                    for one in axe.violations(tab, axe.COLOURS, within=".oa-page", but="a")  # a link has the theme's own colour
                    for node in one["nodes"]
                ]
    assert not found, "\n".join(found)

"""Every page, at both widths and in both themes: a picture, an audit, and what a screen reader is told."""

from __future__ import annotations

from itertools import pairwise

import pytest
from django.contrib import admin

from tests.support import axe, scene
from tests.support.browser import Page
from tests.support.scene import THEMES, WIDTHS, Scene

pytestmark = pytest.mark.req("F7")


@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_has_a_grave_fault_for_people_with_a_disability(filled: Scene, address: str, tab: Page, width: int) -> None:
    axe.source()
    found: list[str] = []
    tab.screen(width, WIDTHS[width], phone=width < 600)
    for page in scene.pages():
        page.show(tab, address, filled)
        found += [f"{page.name}-{width}: {said}" for said in tab.complaints]
        for theme in THEMES:
            tab.dark(on=theme == "dark")
            view = f"{page.name}-{width}-{theme}"
            tab.shoot(view)
            found += [
                f"{view}: {one['rule']} ({one['impact']}): {node['target']}: {node['why']}"
                for one in axe.violations(tab, axe.COLOURS if theme == "dark" else ())
                for node in one["nodes"]
            ]
        if not tab.do("document.documentElement.scrollWidth <= innerWidth"):
            found.append(f"{page.name}-{width}: the page scrolls sideways")
        if tab.do("document.title") == "owned":
            found.append(f"{page.name}: text became code")
        if not tab.do(STYLED):
            found.append(f"{page.name}: it has not our style sheet")
        found += [f"{page.name}: a hidden character in {text!r}" for text in tab.do(HIDDEN)]
        tab.complaints.clear()  # the audit's own attempts
    assert not found, "\n".join(found)


def test_what_is_wrong_would_be_noticed(filled: Scene, address: str, tab: Page) -> None:
    filled.enter(tab, address)
    tab.goto(address + scene.PAGES_BY_NAME["decide"].where(filled))
    assert (axe.violations(tab), tab.do(HIDDEN)) == ([], [])
    tab.do("document.querySelector('.oa-page').insertAdjacentHTML('beforeend', '<button></button><p>\u202etxet</p>'); 0")
    assert [one["rule"] for one in axe.violations(tab)] == ["button-name"]
    assert tab.do(HIDDEN) == ["\u202etxet"]


#: What we draw is on pages with our style sheet only.
STYLED = """!document.querySelector('.oa-page, .oa-chip, .oa-text') || document.title.includes('hange history')
  || [...document.styleSheets].some(one => (one.href || '').endsWith('/outlast_flows/admin.css'))"""

#: Texts, and the title, in which a character stands that nobody sees or that turns others round. What people typed into a field is theirs.
HIDDEN = r"""[document.title, ...document.body.innerText.split('\n')].filter(text =>
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/u.test(text))"""

#: What a person must be able to name, because they act on it.
ACTED_ON = {
    "button",
    "link",
    "textbox",
    "searchbox",
    "combobox",
    "listbox",
    "checkbox",
    "radio",
    "spinbutton",
    "DisclosureTriangle",
}


def test_a_screen_reader_is_told_what_everything_is(filled: Scene, address: str, tab: Page) -> None:
    found: list[str] = []
    tab.screen(1280, WIDTHS[1280])
    for page in scene.pages():
        page.show(tab, address, filled)
        told = tab.accessible()
        found += [f"{page.name}: a {one['role']} without a name" for one in told if one["role"] in ACTED_ON and not one["name"]]
        found += [f"{page.name}: {said}" for said in _structure(told) if page.who]  # the login page is Django's
        errors = tab.do("[...document.querySelectorAll('[aria-invalid=true]')].map(one => one.name)")
        if page.name.endswith("-error"):
            alerts = [one for one in told if one["role"] == "alert"]
            if not (errors and alerts and tab.do("document.activeElement.getAttribute('aria-invalid') === 'true'")):
                found.append(f"{page.name}: the refusal is announced ({alerts}), the field says so ({errors}) and has the focus")
            if not tab.do(DESCRIBED):
                found.append(f"{page.name}: the field does not name its error")
        elif errors:
            found.append(f"{page.name}: {errors} are said to be wrong")
    assert not found, "\n".join(found)


#: The field in focus says what is wrong with it.
DESCRIBED = """(document.activeElement.getAttribute('aria-describedby') || '').split(' ')
  .some(id => { const e = document.getElementById(id); return e && e.matches('.oa-error, .errorlist, .errornote') && e.innerText.trim(); })"""


def _structure(told: list[dict[str, object]]) -> list[str]:
    """What is wrong with the headings and the landmarks."""
    levels = [int(str(one["level"])) for one in told if one["role"] == "heading"]
    wrong = [f"a heading of level {b} under one of level {a}" for a, b in pairwise(levels) if b > a + 1]
    if levels.count(1) != 1:
        wrong.append(f"{levels.count(1)} headings of the first level")
    if not any(one["role"] == "main" for one in told):
        wrong.append("no main landmark")
    regions = [one["name"] for one in told if one["role"] in ("region", "navigation") and not one["name"]]
    return [*wrong, *(["a region without a name"] if regions else [])]


def test_everything_of_ours_in_the_admin_is_looked_at(filled: Scene) -> None:
    """What has no row in the scene would be passed over by the tests above."""
    models = {model._meta.model_name for model in admin.site._registry if model._meta.app_label in scene.OURS}
    seen = {page.name.removesuffix("-page") for page in scene.pages() if page.name.endswith("-page")}
    assert models - seen == set(), "give it a row in tests/support/scene.py"

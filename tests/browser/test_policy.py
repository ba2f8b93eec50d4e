"""No page asks for more than a strict content policy gives, and no text becomes code. These also run on Django 6.0 and 6.1."""

from __future__ import annotations

from typing import Any

import django
import pytest

from tests.support import scene
from tests.support.browser import Page
from tests.support.scene import WIDTHS, Scene

pytestmark = pytest.mark.req("F7")


def complaints(filled: Scene, address: str, tab: Page) -> list[str]:
    """What the browser says of the policy, or of a script that failed, on any page at any width; and where text became code."""
    found = []
    for page in scene.pages():
        page.show(tab, address, filled)
        for width, height in WIDTHS.items():
            tab.screen(width, height)
            tab.settle()
            if tab.do("document.title === 'owned' || !!document.querySelector('img[src=x]')"):
                found.append(f"{page.name}: text became code")
        found += [f"{page.name}: {said}" for said in tab.complaints]
        tab.complaints.clear()
    return found


def test_no_page_breaks_a_policy_of_own_files_only(filled: Scene, address: str, tab: Page) -> None:
    assert complaints(filled, address, tab) == []


def test_a_page_that_breaks_it_would_be_noticed(filled: Scene, address: str, tab: Page) -> None:
    filled.enter(tab, address)
    tab.goto(address + "/admin/")
    tab.do("document.body.insertAdjacentHTML('beforeend', '<p style=\"color: red\">'); 0")
    tab.settle()
    assert any("style-src" in said for said in tab.complaints)


@pytest.mark.skipif(django.VERSION < (6, 1), reason="the admin of Django before 6.1 has no nonces")
def test_no_page_breaks_a_policy_of_nonces_only(nonces: None, filled: Scene, address: str, tab: Page) -> None:
    assert complaints(filled, address, tab) == []
    assert tab.do("document.querySelector('script[src]').nonce") != "", "the policy was the one with nonces"


@pytest.fixture
def nonces(settings: Any) -> None:
    """Django's own middleware with a policy under which only what carries the page's nonce is loaded."""
    from django.utils.csp import CSP  # there since Django 6.0

    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "django.middleware.csp.ContentSecurityPolicyMiddleware"]
    settings.SECURE_CSP = {
        "default-src": [CSP.NONE],
        "script-src": [CSP.NONCE],
        "style-src": [CSP.NONCE],
        "img-src": [CSP.SELF],
        "form-action": [CSP.SELF],
        "base-uri": [CSP.NONE],
    }
    options = settings.TEMPLATES[0]["OPTIONS"]
    processors = [*options["context_processors"], "django.template.context_processors.csp"]
    settings.TEMPLATES = [{**settings.TEMPLATES[0], "OPTIONS": {**options, "context_processors": processors}}]

"""Whom a question is put to, in the language of who reads it. What is kept of an audience without a name of its own has the same in English."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from django.utils.translation import gettext as _

from approvals.core.seats import audience
from flows.core.nodes.audience import in_words


def audience_in_words(asked: Mapping[str, str]) -> str:
    """Everybody who is in all that an audience names."""
    forms = {"role": "%(name)s", "pool": _("pool %(name)s"), "permission": "%(name)s", "user": "%(name)s"}
    parts = [forms[kind] % {"name": asked[kind]} for kind in forms if kind in asked]
    return reduce(lambda one, other: _("%(one)s and %(other)s") % {"one": one, "other": other}, parts)


def step_in_words(step: Mapping[str, Any]) -> str:
    """What the author of a flow calls a step, or else whom it asks."""
    named = str(step["name"])
    return audience_in_words(step["audience"]) if named == in_words(dict(step["audience"])) else named


def asked_in_words(steps: Sequence[Mapping[str, Any]], step: int, keys: Sequence[str]) -> str:
    """Who may answer now; `keys` begin with the step's own."""
    parts = [step_in_words(steps[step]), *(audience_in_words(audience(one)) for one in keys[1:])]
    return reduce(lambda one, other: _("%(one)s or %(other)s") % {"one": one, "other": other}, parts)

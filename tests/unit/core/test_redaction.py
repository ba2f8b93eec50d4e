"""The setting REDACT: which fields of a value are hidden."""

from __future__ import annotations

from typing import Any

import pytest

from flows.core.redaction import HIDDEN, faults, hide, paths

VALUE = {
    "card": {"number": 1, "cvc": 2},
    "people": [{"name": "a", "address": "x"}, {"name": "b"}],
    "deep": {"er": {"password": "p"}},
}


@pytest.mark.parametrize(
    ("path", "hidden"),
    [
        ("input.card.number", {**VALUE, "card": {"number": HIDDEN, "cvc": 2}}),
        ("input.card", {**VALUE, "card": HIDDEN}),
        ("*.card", {**VALUE, "card": HIDDEN}),
        ("input.people.address", {**VALUE, "people": [{"name": "a", "address": HIDDEN}, {"name": "b"}]}),
        ("input.*.cvc", {**VALUE, "card": {"number": 1, "cvc": HIDDEN}}),
        ("input.**.password", {**VALUE, "deep": {"er": {"password": HIDDEN}}}),
        ("input.**.card", {**VALUE, "card": HIDDEN}),
        ("input.deep.**", {**VALUE, "deep": {"er": HIDDEN}}),
        ("input.people.**", {**VALUE, "people": [{"name": HIDDEN, "address": HIDDEN}, {"name": HIDDEN}]}),
        ("input.deep.er.password.**", {**VALUE, "deep": {"er": {"password": HIDDEN}}}),
        ("input.nothing.there", VALUE),
        ("result.card", VALUE),
        ("input", HIDDEN),
    ],
)
def test_a_path_hides_what_it_leads_to(path: str, hidden: Any) -> None:
    assert hide("input", VALUE, paths([path])) == hidden


def test_nothing_stays_nothing_and_text_has_no_fields() -> None:
    assert hide("input", None, paths(["input"])) is None
    assert hide("input", "text", paths(["input.card"])) == "text"
    assert hide("input", VALUE, ()) is VALUE


@pytest.mark.parametrize("given", ["input.card", [""], ["inputs.card"], [3], ["input..card"], {"input": 1}, ["input.card", None]])
def test_a_setting_that_cannot_be_is_said_and_hides_everything(given: Any) -> None:
    assert list(faults(given))
    assert hide("result", VALUE, paths(given)) == HIDDEN

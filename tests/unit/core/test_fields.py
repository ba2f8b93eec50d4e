"""Forms as data: what a field takes, what it refuses, and with which words."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from flows.core import canonical, fields
from flows.core.errors import DefinitionError
from flows.core.fields import Field, Upload, check, sound

pytestmark = pytest.mark.req("C6")

MAX = 1000


def given(field: Field, value: Any) -> Any:
    """What is kept of a value, or the sentence that refuses it."""
    answer, faults = check([field.frozen], {field.name: value}, max_file=MAX)
    if faults:
        (fault,) = faults[field.name]
        return fault.sentence
    return answer[field.name]


TAKEN: list[tuple[Field, Any, Any]] = [
    (Field("x"), "  two\r\nlines ", "two\nlines"),
    (Field("x"), "<script>alert(1)</script>\u202e", "<script>alert(1)</script>\u202e"),
    (Field("x", kind="integer"), 3, 3),
    (Field("x", kind="integer"), " -42 ", -42),
    (Field("x", kind="integer", least=1, most=3), 3, 3),
    (Field("x", kind="integer"), 2**53 - 1, 2**53 - 1),
    (Field("x", kind="decimal"), "0012.50", "12.50"),
    (Field("x", kind="decimal"), Decimal("1E+2"), "100"),
    (Field("x", kind="decimal"), 7, "7"),
    (Field("x", kind="decimal", least="0.1", most=Decimal("0.3")), "0.3", "0.3"),
    (Field("x", kind="boolean"), False, False),
    (Field("x", kind="choice", choices={"a": "A"}), "a", "a"),
    (Field("x", kind="date"), "2026-02-28", "2026-02-28"),
    (Field("x", kind="date", least=date(2026, 1, 1)), date(2026, 1, 1), "2026-01-01"),
    (Field("x", kind="file"), Upload("a.pdf", 10, "application/pdf"), {"name": "a.pdf", "size": 10, "content_type": "application/pdf"}),
    (Field("x", required=False), "   ", None),
    (Field("x", kind="integer", required=False), None, None),
    (Field("x", kind="file", required=False), None, None),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value", "kept"), TAKEN, ids=lambda one: str(one)[:40])
def test_what_fits_is_kept_as_json_of_its_type(field: Field, value: Any, kept: Any) -> None:
    found = given(field, value)
    assert found == kept
    assert type(found) is type(kept)
    canonical.canonical(found)


REFUSED: list[tuple[Field, Any, str]] = [
    (Field("x"), "", "This is needed."),
    (Field("x"), None, "This is needed."),
    (Field("x"), 5, "Give text."),
    (Field("x"), ["a"], "Give text."),
    (Field("x"), "a\x00b", "cannot be stored"),
    (Field("x"), "a\ud800b", "cannot be stored"),
    (Field("x"), "x" * 4001, "This has 4,001 characters; at most 4,000 are taken."),
    (Field("x"), "x" * 10_000_000, "This has 10,000,000 characters"),
    (Field("x", least=3), "ab", "This has 2 characters; at least 3 are needed."),
    (Field("x", kind="integer"), "1.5", "whole number"),
    (Field("x", kind="integer"), "٣", "whole number"),
    (Field("x", kind="integer"), True, "whole number"),
    (Field("x", kind="integer"), 1.0, "whole number"),
    (Field("x", kind="integer"), "9" * 5000, "whole number"),
    (Field("x", kind="integer"), 2**53, "too large"),
    (Field("x", kind="integer", most=3), 4, "At most 3."),
    (Field("x", kind="integer", least=3), 2, "At least 3."),
    (Field("x", kind="decimal"), 0.1, "as text"),
    (Field("x", kind="decimal"), float("nan"), "as text"),
    (Field("x", kind="decimal"), Decimal("NaN"), "as text"),
    (Field("x", kind="decimal"), Decimal("Infinity"), "as text"),
    (Field("x", kind="decimal"), Decimal("1E+999999"), "as text"),
    (Field("x", kind="decimal"), "1e5", "as text"),
    (Field("x", kind="decimal"), True, "as text"),
    (Field("x", kind="decimal", most="1.5"), "1.51", "At most 1.5."),
    (Field("x", kind="boolean"), "yes", "Say yes or no."),
    (Field("x", kind="boolean"), 1, "Say yes or no."),
    (Field("x", kind="choice", choices=["a"]), "b", "Choose one"),
    (Field("x", kind="choice", choices=["a"]), ["a"], "Choose one"),
    (Field("x", kind="date"), "2026-02-30", "Give a day"),
    (Field("x", kind="date"), "20260228", "Give a day"),
    (Field("x", kind="date"), datetime(2026, 1, 1), "Give a day"),  # noqa: DTZ001 - it has no day of its own
    (Field("x", kind="date", least="2026-01-01"), "2025-12-31", "At least 2026-01-01."),
    (Field("x", kind="file"), "contract.pdf", "Send a file."),
    (Field("x", kind="file"), {"name": "a", "size": 1, "path": "/etc/passwd"}, "Send a file."),
    (Field("x", kind="file"), Upload("a", 0), "This file is empty."),
    (Field("x", kind="file"), Upload("a", MAX + 1), "This file has 1,001 bytes; at most 1,000 are taken."),
    (Field("x", kind="file", most=5), Upload("a", 6), "at most 5 are taken"),
    (Field("x", kind="file", most=5 * MAX), Upload("a", MAX + 1), "at most 1,000 are taken"),
    (Field("x", kind="file"), Upload("a" * 256, 1), "A file has a name"),
    (Field("x", kind="file"), Upload("../..", 1), "A file has a name"),
    (Field("x", kind="file"), Upload("a\x00", 1), "A file has a name"),
]


@pytest.mark.parametrize(("field", "value", "told"), REFUSED, ids=lambda one: str(one)[:40])
def test_what_does_not_fit_is_refused_in_words(field: Field, value: Any, told: str) -> None:
    assert told in str(given(field, value))


def test_a_file_is_known_by_its_last_name_and_a_type_that_is_one() -> None:
    field = Field("x", kind="file")
    assert given(field, Upload(r"C:\temp\a b.pdf", 1, "text/html; charset=x")) == {
        "name": "a b.pdf",
        "size": 1,
        "content_type": "application/octet-stream",
    }
    assert given(field, Upload("../../etc/passwd", 1, "text/plain"))["name"] == "passwd"


def test_what_was_not_asked_for_is_refused_and_every_fault_is_told_at_once() -> None:
    form = [Field("a").frozen, Field("b", kind="integer").frozen]
    _, faults = check(form, {"b": "x", "approved": True, 5: 1}, max_file=MAX)
    assert sorted(faults) == ["", "a", "b"]
    assert [one.sentence for one in faults[""]] == ["“approved” was not asked for.", "“5” was not asked for."]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Field(5), "Field"),  # type: ignore[arg-type]
        (lambda: Field("Amount"), "lower-case"),
        (lambda: Field("a" * 65), "lower-case"),
        (lambda: Field("a", kind="money"), "kind is 'money'"),
        (lambda: Field("a", label="x" * 201), "label"),
        (lambda: Field("a", help="\x00"), "help"),
        (lambda: Field("a", required=1), "required"),  # type: ignore[arg-type]
        (lambda: Field("a", kind="choice"), "choices"),
        (lambda: Field("a", choices=["b"]), "choices"),
        (lambda: Field("a", kind="choice", choices="ab"), "choices"),
        (lambda: Field("a", kind="choice", choices=["b", "b"]), "each once"),
        (lambda: Field("a", kind="choice", choices=[1]), "every choice is text"),  # type: ignore[list-item]
        (lambda: Field("a", kind="choice", choices=[str(n) for n in range(201)]), "at most 200"),
        (lambda: Field("a", kind="boolean", most=1), "means nothing"),
        (lambda: Field("a", kind="file", least=1), "means nothing"),
        (lambda: Field("a", kind="decimal", most=0.5), "does not bound"),  # type: ignore[arg-type]
        (lambda: Field("a", kind="date", most="tomorrow"), "does not bound"),
        (lambda: Field("a", most=-1), "does not bound"),
        (lambda: Field("a", most=50_001), "ask for a file"),
        (lambda: Field("a", kind="integer", least=2, most=1), "above most"),
    ],
)
def test_a_field_that_could_not_be_asked_for_is_refused_where_it_is_written(make: Any, told: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        make()
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("form", "told"),
    [("ab", "a list of fields"), ([], "0 fields"), ([Field("a"), Field("a")], "a more than once"), ([{"name": "a"}], "a list of fields")],
)  # fmt: skip
def test_a_form_is_a_list_of_fields_each_once(form: Any, told: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        sound(form, "The form")
    assert told in str(caught.value)


def test_a_frozen_field_is_json_and_is_read_as_it_was_written() -> None:
    field = Field("wanted_by", kind="date", least=date(2026, 1, 1), required=False)
    assert field.frozen == {
        "name": "wanted_by",
        "kind": "date",
        "label": "Wanted by",
        "help": "",
        "required": False,
        "choices": [],
        "least": "2026-01-01",
        "most": None,
    }
    assert fields.names([field.frozen, Field("f", kind="file").frozen], "file") == ["f"]

"""A form as data: typed fields that a person fills in, and the one place where what came back is checked. Pure (C6).

    Field(…) in a flow ──frozen──► JSON in the request ──thawed──► the form on a page; `check` of what was given, or what is wrong by field

What was given is data from outside: of the type that its field says, bounded, text that PostgreSQL can store; nothing that was not asked for.
A file is checked by what is told of it; its bytes are the business of who stores them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from flows.core import payload
from flows.core.canonical import MAX_SAFE_INTEGER
from flows.core.errors import DefinitionError
from flows.core.typed import must

KINDS = ("text", "integer", "decimal", "boolean", "choice", "date", "file")

MAX_FIELDS = 50
MAX_CHOICES = 200
MAX_LABEL = 200
MAX_HELP = 1000
MAX_FILE_NAME = 255

#: Characters of a text whose field names no `most`, and of any.
TEXT, MAX_TEXT = 4000, 50_000

NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_WHOLE = re.compile(r"[+-]?[0-9]{1,16}")
_EXACT = re.compile(r"[+-]?[0-9]{1,30}(?:\.[0-9]{1,30})?")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TYPE = re.compile(r"[A-Za-z0-9.+-]{1,60}/[A-Za-z0-9.+-]{1,60}")

#: Kind → what `least` and `most` bound; kinds that are missing have no bounds.
BOUNDED = {"text": "characters", "integer": "the number", "decimal": "the number", "date": "the day", "file": "bytes"}


@dataclass(frozen=True)
class Field:
    """One thing that is asked for.

    Args:
        name: what it is called in the answer: lower-case letters, digits and `_`. kind: "text", "integer", "decimal" (exact, kept as text),
            "boolean", "choice", "date" (kept as "2026-11-30") or "file".
        label, help: what people read; the label is made of the name if none is given. required: whether it must be given; what is not
            given is None in the answer.
        choices: of a choice: the values, or value → label.
        least, most: of a text its characters (at most 4,000 unless `most` says otherwise), of numbers and dates the value, of a file its
            bytes (`most` only; the setting `MAX_UPLOAD_BYTES` bounds it too).
    """

    name: str
    kind: str = field(kw_only=True, default="text")
    label: str = field(kw_only=True, default="")
    help: str = field(kw_only=True, default="")
    required: bool = field(kw_only=True, default=True)
    choices: Sequence[str] | Mapping[str, str] = field(kw_only=True, default=())
    least: int | str | Decimal | date | None = field(kw_only=True, default=None)
    most: int | str | Decimal | date | None = field(kw_only=True, default=None)

    def __post_init__(self) -> None:
        what = f"Field({self.name!r:.80})"
        must("Field(…)", self.name, (str,), 'Field("amount", kind="integer")')
        if not NAME.fullmatch(self.name):
            raise DefinitionError(f"{what}: a field is named in lower-case letters, digits and _, beginning with a letter.")
        if self.kind not in KINDS:
            raise DefinitionError(f"{what}: kind is {self.kind!r:.60}; it is one of {', '.join(KINDS)}.")
        for option, most in (("label", MAX_LABEL), ("help", MAX_HELP)):
            must(f"{what}, {option}", getattr(self, option), (str,), f'{option}="…"')
            if len(getattr(self, option)) > most or not payload.is_text(getattr(self, option)):
                raise DefinitionError(f"{what}: {option} is text of at most {most} characters.")
        must(f"{what}, required", self.required, (bool,), "required=False")
        self._check_choices(what)
        self._check_bounds(what)

    @property
    def offered(self) -> list[tuple[str, str]]:
        """The choices as (value, label)."""
        return list(self.choices.items()) if isinstance(self.choices, Mapping) else [(one, one) for one in self.choices]

    @property
    def frozen(self) -> dict[str, Any]:
        """As it is kept with a question, in JSON."""
        return {
            "name": self.name,
            "kind": self.kind,
            "label": self.label or self.name.replace("_", " ").capitalize(),
            "help": self.help,
            "required": self.required,
            "choices": [list(pair) for pair in self.offered],
            "least": _written(self.least),
            "most": _written(self.most),
        }

    def _check_choices(self, what: str) -> None:
        given: Any = self.choices
        if not isinstance(given, Mapping | list | tuple):
            raise DefinitionError(f'{what}: choices is {given!r:.60}. Write choices=["a", "b"] or {{"a": "Label of a"}}.')
        if (self.kind == "choice") != bool(self.choices):
            raise DefinitionError(f'{what}: choices=… belongs to kind="choice", and that needs it.')
        values: list[str] = [value for value, _ in self.offered]
        texts: list[Any] = [text for pair in self.offered for text in pair]
        if any(not isinstance(text, str) or not text or len(text) > MAX_LABEL or not payload.is_text(text) for text in texts):
            raise DefinitionError(f"{what}: every choice is text of 1 to {MAX_LABEL} characters.")
        if len(set(values)) != len(values) or len(values) > MAX_CHOICES:
            raise DefinitionError(f"{what}: at most {MAX_CHOICES} choices, each once.")

    def _check_bounds(self, what: str) -> None:
        for option in ("least", "most"):
            given = getattr(self, option)
            if given is None:
                continue
            if self.kind not in BOUNDED or (self.kind == "file" and option == "least"):
                raise DefinitionError(f"{what}: {option}=… means nothing for kind={self.kind!r}.")
            try:
                _bound(self.kind, given)
            except _Bad:
                raise DefinitionError(f"{what}: {option}={given!r:.60} does not bound {BOUNDED[self.kind]}.") from None
        least, most = _bound(self.kind, self.least), _bound(self.kind, self.most)
        if least is not None and most is not None and least > most:
            raise DefinitionError(f"{what}: least is above most, so nothing could be given.")
        if self.kind == "text" and most is not None and not 0 < most <= MAX_TEXT:
            raise DefinitionError(f"{what}: most is from 1 to {MAX_TEXT} characters; ask for a file where more is needed.")


@dataclass(frozen=True, slots=True)
class Upload:
    """What is told of a file that was given: the name and the type that its sender claims, and its size in bytes."""

    name: str
    size: int
    content_type: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with what was given; `template` takes `params`, so that the words can be translated."""

    template: str
    params: Mapping[str, Any]

    @property
    def sentence(self) -> str:
        """The sentence in English."""
        return self.template % self.params


class _Bad(Exception):
    """It cannot be taken."""

    def __init__(self, template: str, **params: Any) -> None:
        super().__init__(template)
        self.fault = Fault(template, params)


def sound(given: Any, what: str) -> tuple[Field, ...]:
    """The fields of a form, as an author wrote or made them.

    Raises:
        DefinitionError: they are none, or no form can be made of them.
    """
    if not isinstance(given, list | tuple) or not all(isinstance(one, Field) for one in given):
        raise DefinitionError(f'{what} is {given!r:.60}: a form is a list of fields, [Field("amount", kind="integer")].')
    if not 0 < len(given) <= MAX_FIELDS:
        raise DefinitionError(f"{what} has {len(given)} fields; a form has 1 to {MAX_FIELDS}.")
    names = [one.name for one in given]
    if twice := {name for name in names if names.count(name) > 1}:
        raise DefinitionError(f"{what} has {', '.join(sorted(twice))} more than once.")
    return tuple(given)


def check(
    fields: Sequence[Mapping[str, Any]], given: Mapping[Any, Any], *, max_file: int
) -> tuple[dict[str, Any], dict[str, list[Fault]]]:
    """(what was given, as it is kept; what is wrong with it, by field). A fault of the whole form stands under "".

    Args:
        fields: as `Field.frozen` gives them. given: name → value; of a file its `Upload`. max_file: bytes of any file.
    Returns:
        Of a file the answer has "name", "size" and "content_type". Dates and decimals are text; what was not given is None.
    """
    answer: dict[str, Any] = {}
    faults: dict[str, list[Fault]] = {}
    for one in fields:
        name = one["name"]
        try:
            answer[name] = _checked(one, given.get(name), max_file)
        except _Bad as bad:
            faults[name] = [bad.fault]
    known = {one["name"] for one in fields}
    if strange := [name for name in given if name not in known]:
        faults[""] = [Fault(_("“%(name)s” was not asked for."), {"name": str(name)[:60]}) for name in strange[:5]]
    return answer, faults


def _checked(one: Mapping[str, Any], value: Any, max_file: int) -> Any:
    if isinstance(value, str):
        if not payload.is_text(value):
            raise _Bad(_("This holds a character that cannot be stored (NUL, or half of a pair)."))
        value = value.replace("\r\n", "\n").strip()
    if value is None or value == "":
        if one["required"]:
            raise _Bad(_("This is needed."))
        return None
    if one["kind"] == "file":
        return _file(value, min(max_file, one["most"] if one["most"] is not None else max_file))
    if one["kind"] == "choice":
        if not isinstance(value, str) or value not in [choice for choice, _label in one["choices"]]:
            raise _Bad(_("Choose one of those that are offered."))
        return value
    found = READ[one["kind"]](value)
    _bounded(one, found)
    return _written(found)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _Bad(_("Give text."))
    return value


def _integer(value: Any) -> int:
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _Bad(_("Give a whole number, such as 42."))
    if abs(value) > MAX_SAFE_INTEGER:
        raise _Bad(_("This number is too large to be kept exactly."))
    return value


def _decimal(value: Any) -> Decimal:
    """A float is refused: what it stands for is not what was written."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_SAFE_INTEGER:
        return Decimal(value)
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) <= 30:
        value = f"{value:f}"
    if isinstance(value, str) and _EXACT.fullmatch(value):
        return Decimal(value)
    raise _Bad(_("Give a number, such as 12.50; in a program, as text, so that it is exact."))


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Bad(_("Say yes or no."))
    return value


def _date(value: Any) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if isinstance(value, str) and _DAY.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise _Bad(_("Give a day, such as 2026-11-30."))


def _file(value: Any, most: int) -> dict[str, Any]:
    if not isinstance(value, Upload):
        raise _Bad(_("Send a file."))
    name = re.split(r"[/\\]", value.name)[-1].strip()
    if not name or len(name) > MAX_FILE_NAME or not payload.is_text(name) or name in (".", ".."):
        raise _Bad(_("A file has a name, of at most %(most)s characters."), most=MAX_FILE_NAME)
    if not 0 < value.size <= most:
        if value.size <= 0:
            raise _Bad(_("This file is empty."))
        raise _Bad(_("This file has %(size)s bytes; at most %(most)s are taken."), size=f"{value.size:,}", most=f"{most:,}")
    kind = value.content_type if _TYPE.fullmatch(value.content_type) else "application/octet-stream"
    return {"name": name, "size": value.size, "content_type": kind}


#: Kind → how a value is read; what comes out is compared with the bounds.
READ: dict[str, Callable[[Any], Any]] = {
    "text": _text,
    "integer": _integer,
    "decimal": _decimal,
    "boolean": _boolean,
    "date": _date,
}


def _bounded(one: Mapping[str, Any], value: Any) -> None:
    kind = one["kind"]
    least, most = _bound(kind, one["least"]), _bound(kind, one["most"])
    if kind == "text":
        most = TEXT if most is None else most
        told = {"length": f"{len(value):,}"}
        if len(value) > most:
            raise _Bad(_("This has %(length)s characters; at most %(most)s are taken."), most=f"{most:,}", **told)
        if least is not None and len(value) < least:
            raise _Bad(_("This has %(length)s characters; at least %(least)s are needed."), least=f"{least:,}", **told)
        return
    if most is not None and value > most:
        raise _Bad(_("At most %(most)s."), most=_written(most))
    if least is not None and value < least:
        raise _Bad(_("At least %(least)s."), least=_written(least))


def _bound(kind: str, value: Any) -> Any:
    """A bound in the type in which values of that kind are compared."""
    if value is None:
        return None
    found = READ["integer" if kind in ("text", "file") else kind](value)
    if kind in ("text", "file") and found < 0:
        raise _Bad(_("Give a whole number, such as 42."))
    return found


def _written(value: Any) -> Any:
    """In JSON: what has no type there is text."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value.isoformat() if isinstance(value, date) else value


def names(fields: Iterable[Mapping[str, Any]], kind: str) -> list[str]:
    """The names of the fields of that kind."""
    return [one["name"] for one in fields if one["kind"] == kind]


def _(text: str) -> str:
    """Marks a text for `makemessages`; the core does not translate, the services do."""
    return text


__all__ = ["KINDS", "Fault", "Field", "Upload", "check", "names", "sound"]

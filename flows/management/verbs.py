"""What the verbs of the command share: what a module gives back, and a verb below a verb (`flows policy publish`)."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol


class Verb(Protocol):
    """Makes a verb with the options that all have. `identified`: it is about one run, its argument ID."""

    def __call__(self, name: str, summary: str, *, identified: bool = False) -> ArgumentParser:
        """The parser of the verb."""


@dataclass(frozen=True, slots=True)
class Report:
    """Data for a program, the same as text, sentences for a person, a line each, and what is wrong; "" if nothing is."""

    data: Any
    text: str
    said: str = ""
    wrong: str = ""


def below(parser: ArgumentParser) -> Callable[[str, str], ArgumentParser]:
    """What makes them; the common options may stand after them, too."""
    verbs = parser.add_subparsers(dest="what", required=True, metavar="WHAT")

    def verb(name: str, summary: str) -> ArgumentParser:
        made: ArgumentParser = verbs.add_parser(name, help=summary, description=summary)
        made.add_argument("--json", action="store_true", default=SUPPRESS, help="print one JSON document")
        made.add_argument("--database", metavar="ALIAS", default=SUPPRESS, help="the database alias that holds the record")
        made.add_argument("--as", dest="viewer", metavar="USERNAME", default=SUPPRESS, help="who looks")
        return made

    return verb

"""What the verbs of the command share: a verb below a verb (`flows policy publish`)."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser
from collections.abc import Callable


def below(parser: ArgumentParser) -> Callable[[str, str], ArgumentParser]:
    """What makes them; the common options may stand after them, too."""
    verbs = parser.add_subparsers(dest="what", required=True, metavar="WHAT")

    def verb(name: str, summary: str) -> ArgumentParser:
        made: ArgumentParser = verbs.add_parser(name, help=summary, description=summary)
        made.add_argument("--json", action="store_true", default=SUPPRESS, help="print one JSON document")
        made.add_argument("--database", metavar="ALIAS", default=SUPPRESS, help="the database alias that holds the record")
        return made

    return verb

"""manage.py flows hold, lift and holds: what no worker takes up. The command's part for these verbs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from flows.core.holds import Scope
from flows.management import find, verbs, words
from flows.services import holds, identify
from flows.store.holds import Row

TITLES = ("scope", "name", "since", "by", "reason", "ready")


def add(verb: verbs.Verb) -> None:
    """The verbs `hold`, `lift` and `holds`."""
    hold = verb("hold", "Have nothing of this taken up by workers until it is lifted; what runs now ends its step.")
    lift = verb("lift", "Let what is held be taken up again.")
    for one in (hold, lift):
        one.add_argument("scope", choices=[scope.value for scope in Scope], metavar="SCOPE", help=", ".join(Scope))
        one.add_argument(
            "name", nargs="?", default="", metavar="NAME", help="of the flow, key, dependency or tenant; none for all"
        )
        one.add_argument("--reason", required=True, metavar="TEXT", help="why; it is kept with the hold")
        one.add_argument("--by", metavar="USERNAME", help=f"who says so: needs {holds.PERMISSION}")
    verb("holds", "What is held now, by whom and why, and how many ready runs that stops.")


def do(verb: str, *, database: str | None, **options: Any) -> verbs.Report:
    """The list, or what became of one.

    Raises:
        OutlastError: there is nothing to hold, or the user may not.
    """
    alias = identify.alias(database)
    if verb == "holds":
        rows = [_data(one, alias) for one in holds.holds(using=alias)]
        table = words.table(TITLES, [tuple(one[title] for title in TITLES) for one in rows])
        return verbs.Report(rows, table, f"{len(rows)} {'hold' if len(rows) == 1 else 'holds'}")
    given = {"reason": options["reason"], "by": find.user(options["by"], alias), "using": alias}
    act = holds.hold if verb == "hold" else holds.lift
    found = act(options["scope"], options["name"], **given)
    named = f"{options['scope']} {options['name']}".strip()
    if verb == "hold":
        assert found.hold is not None
        said = f"{named} is held{'' if found else ' already'}"
        return verbs.Report(_data(found.hold, alias), found.answer.value, said)
    lifted = None if found.hold is None else asdict(found.hold)
    return verbs.Report(lifted, found.answer.value, f"{named} is lifted" if found else f"{named} is not held")


def _data(one: Row, using: str) -> dict[str, Any]:
    return {**asdict(one), "ready": holds.ready(one, using)}

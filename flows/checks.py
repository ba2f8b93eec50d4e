"""Django's system checks: flows as they are written, and the settings they run under. Each has a stable id and a way out.

outlast_flows.E001–E099   flows (`flows.core.lint` has the list; E023 needs an import and is here)
outlast_flows.E101–       settings and database          W101–   the same, where it can still work
outlast_flows.W111–       Celery settings that are dangerous with Redis (`check --deploy`)
"""

from __future__ import annotations

import difflib
import importlib.util
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from django.apps import AppConfig, apps
from django.conf import settings
from django.core import checks
from django.db import OperationalError, connections

from flows import registry
from flows.conf import DEFAULTS
from flows.core import definition as declared
from flows.core import lint, releases
from flows.core.definition import Flow
from flows.core.errors import DefinitionError
from flows.core.lint import effects, options
from flows.core.nodes import Activity
from flows.services import deployed

TAG = "outlast"

#: Our packages have plain names; another package of such a name may be found first.
PACKAGES = ("flows", "tasks", "approvals")
HOME = Path(__file__).resolve().parent.parent

#: id → what it stands for; `flows.core.lint.CATALOGUE` has those of flows.
CATALOGUE: dict[str, str] = {
    "E101": "`settings.OUTLAST` is not a dict",
    "E102": "a number in `settings.OUTLAST` is not positive",
    "E103": "`OUTLAST['DATABASE']` is not an alias in `DATABASES`",
    "E104": "the record's database is not PostgreSQL",
    "E105": "another package of the name `flows`, `tasks` or `approvals` is found first",
    "E121": "live runs whose definition changed without a new version",
    "E122": "live runs of a version that is not loaded, from which nothing leads to a newer one",
    "E106": "`OUTLAST['RELEASES']` is not a list of names of releases",
    "W101": "an unknown key in `settings.OUTLAST`",
    "W102": "a lease that does not outlive a missed renewal",
    "W103": "`flows_now()` is not PostgreSQL's own clock",
    "W104": "the record's database does not answer, so its clock was not looked at",
    "W111": "Celery acknowledges late",
    "W112": "the Redis transport keeps unacknowledged messages",
    "W113": "Celery keeps results",
    "W114": "Celery delivers again what kills its worker",
}

#: Settings that count seconds, rows or bytes, and make no sense below this.
LEAST = {"LINGER_SECONDS": 0}
NUMBERS = tuple(name for name, value in DEFAULTS.items() if isinstance(value, int | float) and not isinstance(value, bool))

PLAIN_CLOCK = "select statement_timestamp()"
RECORD = "SELECT to_regclass('outlast_workflow')"
CLOCK = "SELECT prosrc FROM pg_proc WHERE oid = to_regprocedure('flows_now()')"


@checks.register(TAG)
def check_flows(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[checks.CheckMessage]:
    """Every mistake of every declared flow (G5)."""
    flows = declared_flows(app_configs)
    found = [*lint.problems_of_all(flows), *(one for flow in flows for one in _not_importable(flow))]
    return [_message(one.id, one.severity, one.message, one.hint, one.where) for one in found]


@checks.register(TAG)
def check_settings(**_: Any) -> list[checks.CheckMessage]:
    """`settings.OUTLAST` says what it seems to say, and the record is in PostgreSQL."""
    given = getattr(settings, "OUTLAST", {})
    if not isinstance(given, Mapping):
        hint = 'Write OUTLAST = {"LEASE_SECONDS": 10}.'
        return [checks.Error(f"settings.OUTLAST is a {type(given).__name__}.", hint=hint, id="outlast_flows.E101")]
    return [*_unknown_keys(given), *_numbers(), *_database(), *_releases()]


@checks.register(TAG)
def check_packages(**_: Any) -> list[checks.CheckMessage]:
    """The packages `flows`, `tasks` and `approvals` that Python finds are Outlast's own."""
    wanted = {name for name in PACKAGES if any(app.name == name for app in apps.get_app_configs())}
    wanted |= {name for name in PACKAGES if str(_value("DISPATCHER")).startswith(f"{name}.")}
    return [_foreign(name, place) for name in PACKAGES if name in wanted and (place := _elsewhere(name)) is not None]


@checks.register(TAG, deploy=True)
def check_celery(**_: Any) -> list[checks.CheckMessage]:
    """Celery settings under which a message would be more than a hint, or a lost Redis ends the worker."""
    return list(_celery())


@checks.register(checks.Tags.database)
def check_clock(databases: Sequence[str] | None = None, **_: Any) -> list[checks.CheckMessage]:
    """The durable clock is the plain one. A test kit may have made it movable; no test kit belongs here."""
    alias = str(_value("DATABASE"))
    if alias not in (databases or ()) or alias not in connections or connections[alias].vendor != "postgresql":
        return []
    try:
        with connections[alias].cursor() as cursor:
            cursor.execute(CLOCK)
            row = cursor.fetchone()
    except OperationalError as error:
        hint = "Start the server, or correct DATABASES; then run this check again."
        return [checks.Warning(f"Database {alias!r} does not answer: {error}", hint=hint, id="outlast_flows.W104")]
    if row is None or " ".join(row[0].lower().replace(";", " ").split()) == PLAIN_CLOCK:
        return []
    hint = "Leave the test kit's movable_clock() block, or put the function of migration outlast_flows.0002 back."
    message = f"flows_now() in database {alias!r} is not PostgreSQL's own clock: business time may be moved."
    return [checks.Warning(message, hint=hint, id="outlast_flows.W103")]


@checks.register(checks.Tags.database)
def check_versions(databases: Sequence[str] | None = None, **_: Any) -> list[checks.CheckMessage]:
    """Live runs can go on with the definitions that are loaded here, or be migrated to them (G2)."""
    alias = str(_value("DATABASE"))
    if alias not in (databases or ()) or alias not in connections or connections[alias].vendor != "postgresql":
        return []
    try:
        with connections[alias].cursor() as cursor:
            cursor.execute(RECORD)
            if cursor.fetchone() == (None,):  # before the first migrate
                return []
        found = deployed.findings(alias)
    except OperationalError:  # check_clock says so
        return []
    return [_cannot_go_on(one) for one in found]


def declared_flows(app_configs: Iterable[AppConfig] | None = None) -> list[type[Flow]]:
    """The flow classes of this process, or those declared inside the given apps."""
    if app_configs is None:
        return list(declared.DECLARED)
    homes = [app.name for app in app_configs]
    return [flow for flow in declared.DECLARED if any(f"{flow.__module__}.".startswith(f"{home}.") for home in homes)]


def _not_importable(flow: type[Flow]) -> Iterator[lint.Problem]:
    """Dotted paths of work that lead nowhere."""
    for name, node in flow.definition.nodes.items():
        further = effects.author_functions(node) if isinstance(node, Activity) else ()
        for option, function in (*node.functions(), *further):
            if not isinstance(function, str) or not options.PATH.fullmatch(function):
                continue
            try:
                registry.function(function)
            except Exception as fault:  # noqa: BLE001 - importing runs whatever stands in that module
                named = "" if isinstance(fault, DefinitionError) else f"importing {function!r} raises {type(fault).__name__}: "
                message = f"Node {name!r}, {option}: {named}{fault}"
                hint = "Name a function that exists by its module and name, or give the function itself."
                yield lint.problem("E023", flow.definition.where, message, hint, name)


def _cannot_go_on(one: deployed.Finding) -> checks.CheckMessage:
    named = f"{one.flow}@{one.version}"
    if one.kind == deployed.CHANGED:
        return checks.Error(one.message, hint=one.hint, obj=named, id="outlast_flows.E121")
    return checks.Error(one.message, hint=one.hint, obj=named, id="outlast_flows.E122")


def _message(id_: str, severity: str, message: str, hint: str, where: str) -> checks.CheckMessage:
    kind = checks.Warning if severity == "warning" else checks.Error
    return kind(message, hint=hint, obj=where, id=id_)


def _value(key: str) -> Any:
    """A setting as it is given, or its default, also where `settings.OUTLAST` is no dict."""
    given = getattr(settings, "OUTLAST", {})
    return given.get(key, DEFAULTS[key]) if isinstance(given, Mapping) else DEFAULTS[key]


def _unknown_keys(given: Mapping[str, Any]) -> Iterator[checks.CheckMessage]:
    for key in sorted(set(given) - set(DEFAULTS), key=str):
        near = difflib.get_close_matches(str(key), DEFAULTS, 1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Known are {', '.join(DEFAULTS)}."
        yield checks.Warning(f"settings.OUTLAST[{key!r}] means nothing.", hint=hint, id="outlast_flows.W101")


def _numbers() -> Iterator[checks.CheckMessage]:
    for key in NUMBERS:
        value = _value(key)
        sound = isinstance(value, int | float) and not isinstance(value, bool)
        if not sound or value < LEAST.get(key, 0) or (value == 0 and key not in LEAST):
            hint = f"Give a positive number; the default is {DEFAULTS[key]}."
            yield checks.Error(f"settings.OUTLAST[{key!r}] is {value!r}.", hint=hint, id="outlast_flows.E102")
    lease, renew = _value("LEASE_SECONDS"), _value("LEASE_RENEW_SECONDS")
    if isinstance(lease, int | float) and isinstance(renew, int | float) and renew * 2 > lease:
        message = f"A worker renews its lease of {lease} s every {renew} s: one missed renewal and its work is given away."
        hint = "Let LEASE_RENEW_SECONDS be at most a third of LEASE_SECONDS, as the defaults are."
        yield checks.Warning(message, hint=hint, id="outlast_flows.W102")


def _releases() -> Iterator[checks.CheckMessage]:
    value = _value("RELEASES")
    listed = isinstance(value, list | tuple | set | frozenset)
    if value is None or (listed and all(isinstance(name, str) and releases.NAME.fullmatch(name) for name in value)):
        return
    hint = 'List the names of the releases that this code carries, RELEASES = ["R17", "R18"], or leave it away: whatever it is given.'
    yield checks.Error(f"settings.OUTLAST['RELEASES'] is {value!r:.120}.", hint=hint, id="outlast_flows.E106")


def _database() -> Iterator[checks.CheckMessage]:
    alias = _value("DATABASE")
    if alias not in connections.settings:
        hint = f"Aliases in DATABASES: {', '.join(connections.settings)}."
        yield checks.Error(
            f"settings.OUTLAST['DATABASE'] is {alias!r}, which is no database.", hint=hint, id="outlast_flows.E103"
        )
    elif connections[alias].vendor != "postgresql":
        message = f"Database {alias!r} is {connections[alias].display_name}; Outlast keeps its record in PostgreSQL only."
        hint = "Use django.db.backends.postgresql, or name another alias: OUTLAST = {'DATABASE': 'record'}."
        yield checks.Error(message, hint=hint, id="outlast_flows.E104")


def _elsewhere(name: str) -> str | None:
    """Where a package is found, if that is not beside this one."""
    module = sys.modules.get(name)
    try:
        spec = module.__spec__ if module is not None else importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    origin = getattr(module, "__file__", None) or (spec.origin if spec else None)
    places = [origin] if origin else list(spec.submodule_search_locations or ()) if spec else []
    if not places:
        return "nowhere"
    found = Path(places[0]).resolve()
    return None if HOME / name in (found, found.parent) else str(found)


def _foreign(name: str, place: str) -> checks.CheckMessage:
    message = f"The package {name!r} that Python finds is not Outlast's: it is {place}, Outlast is in {HOME}."
    hint = (
        f"A module of the project with the name {name!r} comes first on sys.path. Rename it (a module inside an app, such as "
        f"shop/{name}.py, is no problem), or move the project's own code into a package."
    )
    return checks.Error(message, hint=hint, id="outlast_flows.E105")


def _celery() -> Iterator[checks.CheckMessage]:
    if getattr(settings, "CELERY_TASK_ACKS_LATE", False):
        message = "CELERY_TASK_ACKS_LATE is on: a task longer than the visibility timeout runs twice at the same time."
        hint = "Set it to False. Leases in PostgreSQL bring lost work back within seconds; Redis needs minutes for that."
        yield checks.Warning(message, hint=hint, id="outlast_flows.W111")
    broker = str(getattr(settings, "CELERY_BROKER_URL", ""))
    transport = getattr(settings, "CELERY_BROKER_TRANSPORT_OPTIONS", None) or {}
    if broker.startswith(("redis", "rediss", "sentinel", "valkey")) and transport.get("ack_emulation", True):
        message = "The Redis transport keeps unacknowledged messages: Celery 5.7 ends when it loses Redis while holding one."
        hint = 'Set CELERY_BROKER_TRANSPORT_OPTIONS = {"ack_emulation": False}; it is also three times as fast.'
        yield checks.Warning(message, hint=hint, id="outlast_flows.W112")
    if getattr(settings, "CELERY_RESULT_BACKEND", None) and not getattr(settings, "CELERY_TASK_IGNORE_RESULT", False):
        message = "CELERY_RESULT_BACKEND is set: each hint leaves a result behind that nobody reads."
        hint = "Leave it away, or set CELERY_TASK_IGNORE_RESULT = True; results of workflows are in PostgreSQL."
        yield checks.Warning(message, hint=hint, id="outlast_flows.W113")
    if getattr(settings, "CELERY_TASK_REJECT_ON_WORKER_LOST", False):
        message = "CELERY_TASK_REJECT_ON_WORKER_LOST is on: a task that kills its process is delivered again without end."
        hint = "Set it to False; attempts are counted in PostgreSQL, and workers lost under an activity have a bound."
        yield checks.Warning(message, hint=hint, id="outlast_flows.W114")

"""What is loaded here beside what lives in the record: runs whose definition changed without a new version, or is not loaded any more."""

from __future__ import annotations

from dataclasses import dataclass

from flows import registry
from flows.core.definition import Definition
from flows.core.errors import OutlastError
from flows.store import migrate as store

CHANGED = "changed"
MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Finding:
    """Live runs that cannot go on as they are. `kind`: CHANGED or MISSING; `examples`: some of them, by key or id."""

    kind: str
    flow: str
    version: int
    count: int
    examples: tuple[str, ...]
    message: str
    hint: str


def findings(using: str) -> list[Finding]:
    """Every version of which live runs cannot go on with what this process has loaded."""
    return [found for shape in store.shapes(using) if (found := _finding(shape, using)) is not None]


def _finding(shape: store.Shape, using: str) -> Finding | None:
    loaded = registry.definition(shape.flow, shape.version)
    kind = MISSING if loaded is None else CHANGED
    if loaded is not None and _fingerprint(loaded) in (shape.fingerprint, None):
        return None
    count = shape.servicing if registry.at_wake(shape.flow, shape.version) else shape.count
    if not count:  # whoever takes one of them up migrates it first
        return None
    examples = tuple(store.examples(shape, using))
    named = f"{shape.flow}@{shape.version}"
    runs = f"{count} live {'run' if count == 1 else 'runs'} of {named} ({', '.join(examples)}{', …' if count > len(examples) else ''})"
    if kind == CHANGED:
        message = f"{runs} began with another shape of it: fingerprint {shape.fingerprint}, loaded is {_fingerprint(loaded)}."
    elif count < shape.count or shape.servicing == shape.count:
        verb = "services what it owes" if count == 1 else "service what they owe"
        message = f"{runs} {verb} on the way to an end, as only version {shape.version} declares, which is not loaded."
    else:
        message = f"{runs} {'needs' if count == 1 else 'need'} version {shape.version}, which is not loaded."
    return Finding(kind, shape.flow, shape.version, count, examples, message, _way_out(shape, kind))


def _way_out(shape: store.Shape, kind: str) -> str:
    flow, version = shape.flow, shape.version
    steps = registry.steps(flow, version)
    if kind == MISSING:
        keep = f"Keep the class of version {version} beside the newer one until they have ended"
        if steps:
            return f"{keep}."
        found = any(name == flow for name, _ in registry.known())
        where = "" if found else " No version of it is loaded here: flows are found in <app>/flows.py, and in what that imports."
        return f"{keep}, or write migrate_from = {{{version}: …}} in the Meta of a newer version.{where}"
    if steps:
        return f"`manage.py flows migrate --flow {flow} --from {version}`, or put the old shape of version {version} back."
    return f"Raise Meta.version and write migrate_from = {{{version}: …}}, or put the old shape of version {version} back."


def _fingerprint(definition: Definition | None) -> str | None:
    """None where the declaration is faulty: then the checks of flows say so."""
    try:
        return definition.fingerprint if definition is not None else None
    except (OutlastError, AttributeError, TypeError):
        return None

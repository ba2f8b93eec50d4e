"""The public surface is a list that can be read: every name exists, in order, and importing it costs nothing."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import flows
import flows.api
import flows.errors

ROOT = Path(__file__).parents[2]
FRAMEWORKS = ("django", "celery", "kombu", "redis", "psycopg", "asgiref")


def loaded_by(program: str) -> set[str]:
    """The top-level packages that are loaded after a program has run in a fresh interpreter."""
    show = "; import json, sys; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    done = subprocess.run([sys.executable, "-c", program + show], capture_output=True, text=True, cwd=ROOT, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("module", [flows, flows.api, flows.errors], ids=lambda module: module.__name__)
def test_every_exported_name_exists_and_the_list_is_sorted(module: ModuleType) -> None:
    names = module.__all__
    assert [name for name in names if not hasattr(module, name)] == []
    constants_then_classes_then_functions = sorted(names, key=lambda name: (not name.isupper(), name[0].islower(), name))
    assert names == constants_then_classes_then_functions
    assert len(names) == len(set(names))


def test_every_error_that_authors_may_meet_is_exported() -> None:
    from flows.core import errors, misuse, turn_errors

    found = {**vars(errors), **vars(misuse), **vars(turn_errors)}
    ours = {name for name, value in found.items() if inspect.isclass(value) and issubclass(value, Exception)}
    internal = {"HalfMove"}
    assert ours - internal == set(flows.errors.__all__)


def test_every_verb_is_a_function_of_the_api_and_exported() -> None:
    of_a_builtins_name = {"list"}  # `from flows import *` must not hide it
    assert flows._VERBS & set(flows.__all__) == flows._VERBS - of_a_builtins_name
    for name in flows._VERBS:
        assert getattr(flows, name) is getattr(flows.api, name)


def test_every_exported_thing_says_what_it_is() -> None:
    for name in flows.__all__:
        value = getattr(flows, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, name


def test_importing_flows_loads_no_framework() -> None:
    assert not loaded_by("import flows") & set(FRAMEWORKS)


def test_declaring_drawing_and_checking_a_flow_loads_no_framework() -> None:
    program = (
        "import flows; from flows.core import graph, lint, decide, fold, payload, canonical; "
        "cls = type('A', (flows.Flow,), {'done': flows.End(flows.COMPLETE)}); "
        "assert lint.problems(cls.definition) == []; graph.svg(cls.definition)"
    )
    assert not loaded_by(program) & set(FRAMEWORKS)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'flows' has no attribute 'nothing'"):
        _ = flows.nothing

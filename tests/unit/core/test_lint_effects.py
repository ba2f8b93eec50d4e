"""Mistakes about effects and commitments: each id is found where the mistake is made, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flows.core import lint
from flows.core.commitments import Commits
from flows.core.definition import Definition
from flows.core.effects import Effect, Servicing
from flows.core.lint import PREFIX
from flows.core.nodes import Decision, Pipeline, Step
from flows.core.policies import CANCEL, Deadline, Retry
from tests.support.flow_values import work
from tests.unit.core.test_lint import EFFECTS, activity, ids, key, later, one, two

pytestmark = pytest.mark.req("G5")

ASKED = Effect(reconcile=work)

WRONG: list[tuple[str, Callable[[], Definition], str, str]] = [
    (
        "E033",
        lambda: one(Decision(work, choices={"a": "done"}, effect=Effect())),
        "Node 'first' is a Decision and has effect=.",
        "Activity of its own",
    ),
    (
        "E033",
        lambda: one(Pipeline(Step("a", work), commits=Commits("w"), then="done")),
        "Node 'first' is a Pipeline and has commits=.",
        "Activity of its own",
    ),
    (
        "E034",
        lambda: activity(commits=(Commits("w"), Commits("w"))),
        "Node 'first': the commitment 'w' is also begun by 'first'.",
        "",
    ),
    ("E035", lambda: activity(fulfils="w"), "Node 'first' fulfils 'w', which no node begins.", "No node begins one"),
    (
        "E035",
        lambda: activity(fulfils="x", commits=Commits("w")),
        "Node 'first' fulfils 'x', which no node begins.",
        "Begun are w",
    ),
    (
        "E036",
        lambda: activity(commits=Commits("w", deadline=Deadline(hours=1, then="done"))),
        "Node 'first': the deadline of the commitment 'w' leads to 'done'.",
        "then=ESCALATE",
    ),
    (
        "E037",
        lambda: one(Decision(work, choices={"a": "done"}, optional=True)),
        "Node 'first' is a Decision and has optional=True.",
        "Activity",
    ),
    (
        "E038",
        lambda: activity(effect=ASKED, effects={"label": ASKED}),
        "Node 'first' has effect= and effects=: its call is one, or it has several.",
        "Keep effects= and give the first call a name there, too",
    ),
    (
        "W001",
        lambda: activity(effect=Effect(idempotent=True, probes=Retry(max_attempts=9))),
        "Node 'first': probes= is given without reconcile=, so there is nothing to ask.",
        "reconcile=",
    ),
    (
        "W001",
        lambda: activity(effects={"label": Effect(idempotent=True, probes=Retry(max_attempts=9)), "mail": ASKED}),
        "Node 'first': probes= of 'label' is given without reconcile=",
        "reconcile=",
    ),
    (
        "W002",
        lambda: activity(effect=Effect()),
        "Node 'first': nobody can find out what became of its effect, so every doubt needs a person at once.",
        "idempotent=True",
    ),
    (
        "W002",
        lambda: activity(effects={"label": Effect(request=key), "mail": ASKED}),
        "Node 'first': nobody can find out what became of its effect 'label', so",
        "idempotent=True",
    ),
    ("E027", lambda: activity(effect=work), "Node 'first': effect is", "Effect(reconcile="),
    ("E027", lambda: activity(effects={"": Effect()}), "Node 'first': effects is", "effects={"),
    ("E027", lambda: activity(commits=["w"]), "Node 'first': commits is", "Commits("),
    ("E022", lambda: activity(effect=Effect(reconcile=two)), "Node 'first', reconcile: two cannot be called", ""),
    ("E021", lambda: activity(effect=Effect(request=later)), "Node 'first', request: later must be a plain function", ""),
    ("E020", lambda: activity(commits=Commits("w", release=Servicing("nowhere"))), "Node 'first', release of 'w': 'nowhere'", ""),
]

#: What is close to the mistake of that id and is none.
RIGHT: list[tuple[str, Callable[[], Definition]]] = [
    ("E033", lambda: activity(effect=Effect(reconcile=later, compensate=Servicing("app.undo", reconcile=work), request=key))),
    ("E034", lambda: activity(commits=(Commits("w", release=later), Commits("x", reference=key)))),
    ("E035", lambda: activity(commits=Commits("w"), fulfils="w")),
    ("E036", lambda: activity(commits=Commits("w", deadline=Deadline(hours=1, then=CANCEL)), effects={"a": ASKED})),
    ("E037", lambda: activity(optional=True)),
    ("E038", lambda: activity(effects={"label": ASKED, "mail": Effect(idempotent=True)}, commits=Commits("w"))),
    ("W001", lambda: activity(effect=Effect(reconcile=work, probes=Retry(max_attempts=9)))),
    ("W002", lambda: activity(effect=Effect(idempotent=True))),
]


@pytest.mark.parametrize(("code", "make", "message", "hint"), WRONG, ids=[f"{case[0]}-{n}" for n, case in enumerate(WRONG)])
def test_each_mistake_is_found_once_with_its_way_out(code: str, make: Callable[[], Definition], message: str, hint: str) -> None:
    found = [one for one in lint.problems(make()) if one.id == PREFIX + code]
    assert len(found) == 1, lint.problems(make())
    assert found[0].message.startswith(message)
    assert hint in found[0].hint


@pytest.mark.parametrize(("code", "make"), RIGHT, ids=[f"{case[0]}-{n}" for n, case in enumerate(RIGHT)])
def test_what_is_close_to_a_mistake_and_none_is_not_reported(code: str, make: Callable[[], Definition]) -> None:
    assert ids(make()) == []


def test_every_id_has_a_case_of_each_kind() -> None:
    assert {case[0] for case in WRONG} >= EFFECTS
    assert {case[0] for case in RIGHT} == EFFECTS


def test_what_only_warns_does_not_keep_a_project_from_starting() -> None:
    found = lint.problems(activity(effect=Effect(probes=Retry(max_attempts=9))))
    assert [(one.id, one.severity) for one in found] == [(PREFIX + "W001", "warning"), (PREFIX + "W002", "warning")]

"""What a lying model, a lying page and a wrong input can do: a candidate is only what code lets through."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps

from flows import checks
from flows.core import lint
from flows.core.nodes import Activity, Approval, Decision
from flows.errors import CompetenceFailure, InvalidCandidate, PolicyDenied
from flows.models import Candidate
from project.agents.browser import parsing, policy
from project.agents.browser.flows import FilePermit
from project.agents.browser.model import ModelAnswer, ModelRequest, RuleBasedModel
from project.agents.browser.pages import Form, origin
from project.agents.browser.sessions import credentials
from tests.support.town import Town, clock, driver, quick_commits, site, sound, town, transactional_db, worker

__all__ = ["clock", "driver", "quick_commits", "site", "sound", "town", "transactional_db", "worker"]

pytestmark = pytest.mark.req("O6")

NODES = FilePermit.definition.nodes
PAGE = """
<!doctype html><title>A &amp; B</title><script>var a = "<form id=x>"</script><style>p {}</style>
<h1>Hello</h1><form id="f" action="/to?a=1" method="post"><input type=hidden name=token value="t">
<label for=a>Wh<b>o</b></label><input id=a name=a required value="x&quot;y"><input name=gone disabled><input value=nameless>
<label for=b>Which</label><select id=b name=b><option value=1>One<option value=2 selected>Two</select><textarea name=c>long
text</textarea><button name=go>Go</button></form><a href="../p/1?x=2">One</a><dl><dt>State<dd>open</dd><dt>By</dt><dd>me</dd></dl>
"""


def form_of(*fields: str) -> Form:
    return parsing.read(f"<form id=f method=post>{''.join(fields)}</form>", "http://site/", 200).form("f")


def test_it_is_declared_without_a_mistake() -> None:
    assert lint.problems(FilePermit.definition) == []
    mine = [app for app in apps.get_app_configs() if app.name == "project.agents.browser"]
    assert len(mine) == 1
    assert checks.check_flows(mine) == []


def test_what_goes_out_needs_the_persons_yes_to_exactly_that_and_the_form_that_was_filled_in() -> None:
    submit, confirm = NODES["submit"], NODES["confirm"]
    assert isinstance(submit, Activity) and isinstance(confirm, Approval)
    assert submit.gate is not None
    assert (submit.gate.approved_by, confirm.candidate, set(submit.gate.fresh)) == ("confirm", "assemble", {"form"})
    assert FilePermit.definition.baselines_of("submit") == {"fill"}
    effects = {name for name, node in NODES.items() if isinstance(node, Activity) and node.effect}
    assert effects == {"attach", "submit"}
    assert isinstance(NODES["fill"], Decision)


def test_a_page_is_read_as_it_would_be_seen() -> None:
    found = parsing.read(PAGE, "http://site/at/here", 200)
    assert (found.title, found.facts, found.links) == ("A & B", {"State": "open", "By": "me"}, (("http://site/p/1?x=2", "One"),))
    assert "var a" not in found.text and "p {}" not in found.text and "Hello" in found.text
    form = found.form("f")
    assert (form.action, form.method, form.encoding) == ("http://site/to?a=1", "POST", "application/x-www-form-urlencoded")
    assert [(one.name, one.kind, one.label, one.value, one.required) for one in form.controls] == [
        ("token", "hidden", "", "t", False), ("a", "text", "Who", 'x"y', True), ("b", "select", "Which", "2", False),
        ("c", "textarea", "", "long text", False),
    ]  # fmt: skip
    assert form.asked[1].options == (("1", "One"), ("2", "Two"))
    other = parsing.read(PAGE.replace('value="t"', 'value="u"').replace("x&quot;y", ""), "http://site/at/here", 200)
    assert other.form("f").version == form.version, "values and tokens change from visit to visit"
    for old, new in (("Wh<b>o</b>", "Whom"), (" required", ""), ("One<", "None<"), ("/to?", "/elsewhere?"), ("name=c", "name=d")):
        assert parsing.read(PAGE.replace(old, new), "http://site/at/here", 200).form("f").version != form.version, old


@pytest.mark.parametrize(
    "values",
    [
        {}, {"a": ""}, {"a": "x\ny"}, {"a": "x" * 501}, {"a": 5}, {"a": "x", "b": "3"}, {"a": "x", "token": "t"}, {"a": "x", "new": "1"},
        {"a": "x", "plan": "D-1"}, {"a": "x", "reference": "r"}, {"a": "x\u202ey"},
    ],
)  # fmt: skip
def test_only_what_the_form_asks_of_the_model_is_let_through(values: Any) -> None:
    fields = (
        "<input name=a required><input type=hidden name=token><input name=plan required><input name=reference required>"
        "<select name=b><option value=''>-<option value=1>One</select>"
    )
    policy.check_values(form_of(fields), {"a": "x", "b": "1"})
    with pytest.raises(InvalidCandidate):
        policy.check_values(form_of(fields), values)


@pytest.mark.parametrize("kind", ["checkbox", "password", "file"])
def test_a_kind_of_field_that_it_cannot_fill_in_is_a_persons(kind: str) -> None:
    with pytest.raises(CompetenceFailure, match=kind):
        policy.check_values(form_of(f"<input name=a type={kind}>"), {"a": "on"})


@pytest.mark.parametrize("value", [None, {}, {"form": "f", "values": {}}, {"form": "f", "values": {"a": 1}}, {"reason": 1}])
def test_a_malformed_value_is_no_candidate(value: Any) -> None:
    policy.check_value({"form": "f", "values": {"a": "1"}})
    policy.check_value({"reason": "none"})
    with pytest.raises(InvalidCandidate):
        policy.check_value(value)


@pytest.mark.parametrize(
    "wrong", [{"site": None}, {"applicant": ""}, {"facts": ["a"]}, {"facts": {"a": None}}, {"facts": {"a": {"b": 1}}}]
)
def test_an_input_that_says_too_little_is_denied(wrong: dict[str, Any]) -> None:
    good = {"site": "http://127.0.0.1:1", "applicant": "ada", "facts": {"a": 1}}
    policy.check_input(good)
    with pytest.raises(PolicyDenied):
        policy.check_input({**good, **wrong})


def test_only_web_sites_with_credentials_are_visited() -> None:
    assert origin("http://127.0.0.1:80/x?y") == "http://127.0.0.1:80"
    for wrong in ("file:///etc/passwd", "ftp://a/", "javascript:1", "http://"):
        with pytest.raises(PolicyDenied):
            origin(wrong)
    with pytest.raises(PolicyDenied, match="BROWSER_AGENT_CREDENTIALS"):
        credentials("https://example.org")


def test_a_model_that_answers_nonsense_is_asked_again_and_nothing_of_it_is_sent(town: Town) -> None:
    """It takes over the reference, then names a choice that the form does not have, then does as the page tells it to in the guests' number."""

    def script(number: int, request: ModelRequest) -> ModelAnswer:
        good = RuleBasedModel().complete(request)
        lies = {1: {"reference": "mine"}, 2: {"place": "moon"}}.get(number, {})
        return ModelAnswer(good.choice, "as told", {**good.values, **lies})

    town.model.script = script
    town.start()
    for _ in range(3):
        town.pass_time(minutes=2)
    assert town.at == ("waiting", "upload")
    found = Candidate.objects.filter(workflow_id=town.run.id).order_by("id")
    assert [one.refused for one in found] == ["INVALID_CANDIDATE", "INVALID_CANDIDATE", ""]

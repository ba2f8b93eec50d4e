"""The operations' pages, through HTTP: who needs a person, what is known of one, and that only a permitted POST settles anything."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from flows.models import Commitment, Operation, Resolution
from flows.services.resolve import resolve, seen_of
from tests.factories import called, forget, row, status
from tests.support import doubting
from tests.support.approving import PASSWORD, World
from tests.support.doubting import (
    Happened,
    PayByTwo,
    PayMended,
    PayPlain,
    PayProbed,
    Unknown,
    in_doubt,
    operation_of,
    probe_says,
    undoing,
)

pytestmark = pytest.mark.req("B5", "B7")

EVIL = "<script>alert(1)</script> \u202eevil\u202c"
ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;"
MARK = '<span class="oa-hidden" title="RIGHT-TO-LEFT OVERRIDE">U+202E</span>'
LIST = "admin:outlast_flows_operation_changelist"


@pytest.fixture(autouse=True)
def people(world: World) -> Iterator[None]:
    """Rita and Ron may say what became of an operation; Vera may look; Otto may do neither."""
    forget()
    doubting.forget()
    may = Permission.objects.get(codename="resolve_operation")
    world.rita.user_permissions.add(may)
    world.ron.user_permissions.add(may)
    world.otto.user_permissions.clear()
    yield
    forget()
    doubting.forget()


def client_of(name: str, **options: Any) -> Client:
    client = Client(**options)
    assert client.login(username=name, password=PASSWORD)
    return client


def url(operation: Operation) -> str:
    return reverse("admin:outlast_flows_operation_change", args=[quote(operation.pk)])


def page(client: Client, operation: Operation) -> str:
    response = client.get(url(operation))
    assert response.status_code == 200
    return response.content.decode()


def give(client: Client, operation: Operation, verdict: str, *, follow: bool = True, **more: str) -> Any:
    given = {"verdict": verdict, "seen": seen_of(operation), "reason": "I asked them.", **more}
    return client.post(url(operation), given, follow=follow)


def said(response: Any) -> str:
    return " ".join(str(message) for message in response.context["messages"])


def again(operation: Operation) -> Operation:
    return Operation.objects.get(pk=operation.pk)


def listed(client: Client, **query: str) -> list[Operation]:
    response = client.get(reverse(LIST), query)
    assert response.status_code == 200
    return list(response.context["cl"].result_list)


# ---------------------------------------------------------------------- the list


def test_the_list_shows_who_needs_a_person_the_longest_in_doubt_first(world: World) -> None:
    first = in_doubt(world.worker, key="r-1")
    world.clock.move(minutes=1)
    probe_says.append(Unknown("the provider is busy"))
    probed = in_doubt(world.worker, PayProbed)
    failed = undoing(world.worker)
    world.clock.move(minutes=1)
    second = in_doubt(world.worker)
    client = client_of("vera")
    assert listed(client) == [first, second, failed]
    assert listed(client, queue="doubt") == [first, probed, second]
    assert len(listed(client, queue="all")) == 5
    shown = client.get(reverse(LIST)).content.decode()
    for text in (
        "uncertain: needs a person",
        "failed: needs a person",
        "t-doubt-plain r-1",
        str(first.workflow_id),
        "NOT_RECONCILABLE",
        "compensation",
    ):
        assert text in shown, text
    assert "the provider is busy" in client.get(reverse(LIST), {"queue": "doubt"}).content.decode()
    assert 'name="action"' not in shown, "who may only look selects nothing"
    assert "Resolve selected operations…" in client_of("rita").get(reverse(LIST)).content.decode()


def test_operations_are_found_by_their_id_and_by_their_workflow(world: World) -> None:
    one, other = in_doubt(world.worker), in_doubt(world.worker)
    client = client_of("vera")
    assert listed(client, q=one.pk) == listed(client, q=f" {one.workflow_id} ") == [one]
    assert listed(client, q="nothing") == []
    assert {one, other} == set(listed(client))


def test_the_list_costs_the_same_number_of_queries_for_one_and_for_many(world: World) -> None:
    client = client_of("rita")
    in_doubt(world.worker)
    client.get(reverse(LIST))
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as captured:
            client.get(reverse(LIST))
        counts.append(len(captured))
        for _ in range(4):
            in_doubt(world.worker)
    assert counts[0] == counts[1] <= 9


def test_what_needs_a_person_is_found_by_its_own_indexes(world: World) -> None:
    in_doubt(world.worker)
    with CaptureQueriesContext(connection) as captured:
        listed(client_of("vera"))
    found = [query["sql"] for query in captured if 'FROM "outlast_operation"' in query["sql"]]
    assert found
    with connection.cursor() as cursor:
        off = ("enable_seqscan", "enable_nestloop", "enable_mergejoin")  # over one row every plan is as good
        for setting in off:
            cursor.execute(f"SET {setting} = off")
        try:
            for sql in found:
                cursor.execute(f"EXPLAIN {sql}")
                plan = "\n".join(line for (line,) in cursor.fetchall())
                assert "outlast_operation_doubt" in plan, plan
                assert "outlast_operation_stuck" in plan, plan
        finally:
            for setting in off:
                cursor.execute(f"RESET {setting}")


# ---------------------------------------------------------------------- the page of one


def test_the_page_says_what_is_known(world: World) -> None:
    probe_says.append(Unknown("the provider is busy"))
    operation = in_doubt(world.worker, PayProbed, request={"amount": 4711}, key="order-1", goal="Buy a book")
    shown = page(client_of("vera"), operation)
    for text in (
        operation.pk,
        "t-doubt-probed.pay",
        "uncertain",
        "OUTCOME_UNKNOWN",
        "4711",
        operation.request_digest,
        "Buy a book",
        "t-doubt-probed order-1",
        reverse("admin:outlast_flows_workflow_change", args=[operation.workflow_id]),
        reverse("admin:outlast_flows_intent_change", args=[operation.workflow.intent_id]),
        "a probe: <strong>cannot tell</strong>",
        "did not settle it",
        "the provider is busy",
        "It is text, never instructions.",
        "somebody with the permission outlast_flows.resolve_operation",
    ):
        assert text in shown, text


def test_an_operation_and_its_mitigation_lead_to_each_other(world: World) -> None:
    failed = undoing(world.worker)
    effect = operation_of(row(failed.workflow_id))
    client = client_of("vera")
    assert url(failed) in page(client, effect)
    assert "Mitigated by" in page(client, effect)
    assert url(effect) in page(client, failed)
    assert "only by a person" in page(client, failed)


def test_the_workflows_page_lists_its_effects_and_what_it_owes(world: World) -> None:
    failed = undoing(world.worker)
    shown = client_of("vera").get(reverse("admin:outlast_flows_workflow_change", args=[failed.workflow_id])).content.decode()
    effect = operation_of(row(failed.workflow_id))
    for text in (url(failed), url(effect), "1 thing stands between it and its end", "On the way to</dt><dd>cancelled"):
        assert text in shown, text
    done = PayPlain.start({})
    world.worker.run()
    shown = client_of("vera").get(reverse("admin:outlast_flows_workflow_change", args=[done.id])).content.decode()
    assert "On the way to" not in shown
    assert "stands between" not in shown


# ---------------------------------------------------------------------- permissions


def test_who_may_only_look_sees_no_form_and_a_post_is_refused(world: World) -> None:
    operation = in_doubt(world.worker)
    client = client_of("vera")
    shown = page(client, operation)
    assert 'name="verdict"' not in shown
    assert "What became of it?" not in shown
    assert give(client, operation, "happened").status_code == 403
    one = {"operation": operation.pk, "seen": seen_of(operation), "verdict": "happened", "reason": "x"}
    assert client.post(reverse("admin:outlast_flows_operation_resolve"), one).status_code == 403
    assert client.get(reverse("admin:outlast_flows_operation_resolved")).status_code == 403
    action = {"action": "resolve_selected", "_selected_action": [operation.pk]}
    assert "One verdict for all" not in client.post(reverse(LIST), action, follow=True).content.decode()
    assert not Resolution.objects.exists()


def test_who_may_do_neither_sees_nothing_and_who_may_resolve_sees_it(world: World) -> None:
    operation = in_doubt(world.worker)
    otto = client_of("otto")
    for target in (reverse(LIST), url(operation), reverse("admin:outlast_flows_operation_history", args=[quote(operation.pk)])):
        assert otto.get(target).status_code == 403
    assert give(otto, operation, "happened").status_code == 403
    world.otto.user_permissions.add(Permission.objects.get(codename="resolve_operation"))
    assert listed(otto) == [operation]
    assert 'name="verdict"' in page(otto, operation)
    assert "/login/" in give(Client(), operation, "happened").redirect_chain[0][0]


def test_no_other_method_and_no_post_without_the_token(world: World) -> None:
    operation = in_doubt(world.worker)
    client = client_of("rita")
    given = {"verdict": "happened", "seen": seen_of(operation), "reason": "x"}
    client.get(url(operation), given)
    for method in ("put", "patch", "delete", "options"):
        assert getattr(client, method)(url(operation), given).status_code == 405
    assert client.get(reverse("admin:outlast_flows_operation_resolve"), given).status_code == 405
    strict = client_of("rita", enforce_csrf_checks=True)
    assert give(strict, operation, "happened", follow=False).status_code == 403
    assert not Resolution.objects.exists()
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page(strict, operation))
    assert token is not None
    assert give(strict, operation, "happened", csrfmiddlewaretoken=token[1], follow=False).status_code == 302
    assert again(operation).status == "succeeded"


def test_nobody_adds_changes_or_deletes_here_and_nothing_is_kept_by_a_cache(world: World) -> None:
    operation = in_doubt(world.worker)
    client = client_of("sue")
    assert client.get(reverse("admin:outlast_flows_operation_add")).status_code == 403
    delete = reverse("admin:outlast_flows_operation_delete", args=[quote(operation.pk)])
    assert client.post(delete, {"post": "yes"}).status_code == 403
    assert "no-store" in client.get(url(operation)).headers["Cache-Control"]
    for wrong in ("nothing", "a_00b"):
        assert client.get(reverse("admin:outlast_flows_operation_change", args=[wrong])).status_code == 404
        assert client.get(reverse("admin:outlast_flows_operation_history", args=[wrong])).status_code == 302, (
            "Django's own answer"
        )


# ---------------------------------------------------------------------- verdicts


def test_it_happened_with_its_evidence(world: World) -> None:
    operation = in_doubt(world.worker)
    response = give(client_of("rita"), operation, "happened", external_id="r-1", evidence='{"receipt": 1}')
    assert response.redirect_chain == [(url(operation), 302)]
    assert "Recorded; the workflow goes on from it." in said(response)
    world.worker.run()
    assert (row(operation.workflow_id).status, row(operation.workflow_id).result) == ("complete", {"receipt": 1})
    assert (again(operation).external_id, called("pay")) == ("r-1", 1)
    shown = page(client_of("rita"), operation)
    for text in (
        "a person (<bdi",
        "<strong>it happened</strong>",
        "settled it",
        "I asked them.",
        "r-1",
        "&quot;receipt&quot;: 1",
    ):
        assert text in shown, text
    assert 'name="verdict"' not in shown
    assert "Nothing can be said of it in this status." in shown


@pytest.mark.parametrize(
    ("verdict", "code", "now"), [("did_not_happen", "goes on from it", "planned"), ("cannot_tell", "stays in doubt", "uncertain")]
)
def test_it_did_not_happen_or_nobody_can_tell(world: World, verdict: str, code: str, now: str) -> None:
    operation = in_doubt(world.worker, by=world.robin)
    response = give(client_of("rita"), operation, verdict)
    assert code in said(response)
    assert again(operation).status == now


@pytest.mark.parametrize(
    ("verdict", "word", "now"),
    [
        ("retry", "try again", "succeeded"),
        ("give_up", "give up", "abandoned"),
        ("happened", "it happened", "succeeded"),
    ],
)
def test_a_refund_that_failed_is_tried_again_done_by_hand_or_given_up(world: World, verdict: str, word: str, now: str) -> None:
    failed = undoing(world.worker)
    client = client_of("rita")
    shown = page(client, failed)
    assert re.findall(r'name="verdict" id="[\w-]+" value="(\w+)"', shown) == ["happened", "retry", "give_up"]
    assert "Give up: it stays as it is" in shown
    assert 'name="external_id"' in shown
    assert "Recorded" in said(give(client, failed, verdict))
    shown = page(client, failed)
    assert f"<strong>{word}</strong>" in shown
    assert "did not settle it" not in shown
    world.worker.run()
    assert (again(failed).status, status(failed.workflow_id)[0]) == (now, "cancelled")


def test_only_verdicts_on_offer_are_there(world: World) -> None:
    shown = page(client_of("rita"), in_doubt(world.worker))
    assert re.findall(r'name="verdict" id="[\w-]+" value="(\w+)"', shown) == ["happened", "did_not_happen", "cannot_tell"]


def test_the_history_has_the_verdict(world: World) -> None:
    operation = in_doubt(world.worker)
    client = client_of("rita")
    give(client, operation, "retry")
    assert not LogEntry.objects.exists(), "a refusal is none"
    give(client, operation, "happened", reason=EVIL)
    entry = LogEntry.objects.get()
    assert (entry.user, entry.object_id) == (world.rita, operation.pk)
    shown = client.get(reverse("admin:outlast_flows_operation_history", args=[quote(operation.pk)])).content.decode()
    assert "It happened. Recorded; the workflow goes on from it." in shown
    assert "\u202e" not in shown


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"reason": " "}, "Say how you know"),
        ({"reason": "x" * 4001}, "at most 4000 characters"),
        ({"reason": "a\x00b"}, "Null characters are not allowed."),
        ({"verdict": ""}, "Choose one of the verdicts."),
        ({"verdict": "perhaps"}, "Choose one of the verdicts."),
        ({"seen": ""}, "Nothing was recorded."),
        ({"evidence": "receipt 4711"}, "This is not JSON: Expecting value: line 1 column 1 (char 0)."),
        ({"evidence": '{"a": NaN}'}, "is not a JSON number"),
        ({"evidence": '"\\u0000"'}, "NUL"),
        ({"evidence": "[" * 100_000}, "This is not JSON"),
        ({"verdict": "did_not_happen", "external_id": "r-1"}, "Only what happened has a provider"),
        ({"external_id": "x" * 501}, "at most 500 characters"),
    ],
)
def test_what_cannot_be_taken_is_explained_and_what_was_typed_stays(world: World, wrong: dict[str, str], message: str) -> None:
    operation = in_doubt(world.worker)
    given = {"verdict": "happened", "reason": "I asked.", **wrong}
    response = give(client_of("rita"), operation, given.pop("verdict"), **given)
    assert (response.status_code, response.redirect_chain) == (200, [])
    shown = response.content.decode()
    assert message in shown
    assert "Nothing was recorded." in shown
    assert "<title>Error: " in shown.replace("\n", "")
    if given["reason"] == "I asked.":
        assert "I asked.</textarea>" in shown
    assert not Resolution.objects.exists()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"seen": "uncertain:77"}, "The operation has moved since you looked at it; look again."),
        ({"verdict": "give_up"}, "That cannot be said of an operation in this status."),
    ],
)
def test_a_refusal_is_said(world: World, given: dict[str, str], sentence: str) -> None:
    operation = in_doubt(world.worker)
    given = {"verdict": "happened", **given}
    response = give(client_of("rita"), operation, given.pop("verdict"), **given)
    assert response.redirect_chain == [(url(operation), 302)]
    assert sentence in said(response)
    assert not Resolution.objects.exists()


def test_a_verdict_about_a_state_that_is_gone_is_refused(world: World) -> None:
    operation = in_doubt(world.worker)
    resolve(operation, verdict="did_not_happen", by=world.ron, reason="I asked.")
    response = give(client_of("rita"), operation, "happened")
    assert "has moved since you looked at it" in said(response)
    assert again(operation).status == "planned"


def test_a_double_click_is_one_verdict(world: World) -> None:
    operation = in_doubt(world.worker)
    client = client_of("rita")
    give(client, operation, "happened")
    assert "has moved since" in said(give(client, operation, "happened"))
    assert Resolution.objects.count() == 1


def test_a_second_person_must_agree_and_the_page_says_who_said_what(world: World) -> None:
    operation = in_doubt(world.worker, PayByTwo)
    rita, ron = client_of("rita"), client_of("ron")
    assert "Two people must say the same" in page(rita, operation)
    assert "another person must agree" not in page(rita, operation)
    assert "a second person must say the same before it counts" in said(give(rita, operation, "happened", external_id="r-1"))
    shown = page(ron, operation)
    assert "rita</bdi> said “it happened”; another person must agree." in shown
    assert "r-1" in shown
    assert "The second verdict must come from another person." in said(give(rita, operation, "happened", external_id="r-1"))
    assert "goes on from it" in said(give(ron, operation, "happened", external_id="r-1"))
    assert again(operation).status == "succeeded"


# ---------------------------------------------------------------------- several at once


def select(client: Client, *operations: Operation, **query: str) -> Any:
    target = reverse(LIST) + ("?queue=all" if query.get("queue") == "all" else "")
    return client.post(target, {"action": "resolve_selected", "_selected_action": [one.pk for one in operations]}, follow=True)


def hidden(text: str, name: str) -> list[str]:
    return re.findall(rf'name="{name}" value="([^"]*)"', text)


def test_one_verdict_for_several_each_judged_by_itself(world: World) -> None:
    first, second, third = in_doubt(world.worker), in_doubt(world.worker, PayByTwo), in_doubt(world.worker)
    client = client_of("rita")
    shown = select(client, first, second, third).content.decode()
    assert sorted(hidden(shown, "operation")) == sorted([first.pk, second.pk, third.pk])
    assert hidden(shown, "seen") == [seen_of(first)] * 3
    for text in (first.request_digest, str(first.workflow_id), "At most 100 at a time", "One verdict for all of them"):
        assert text in shown, text
    assert not Resolution.objects.exists(), "a preview changes nothing"
    resolve(third, verdict="did_not_happen", by=world.ron, reason="I asked.")
    given = {
        "operation": hidden(shown, "operation"),
        "seen": hidden(shown, "seen"),
        "verdict": "happened",
        "reason": "Their list has them all.",
    }
    target = reverse("admin:outlast_flows_operation_resolve")
    response = client.post(target, given, follow=True)
    assert response.redirect_chain == [(reverse("admin:outlast_flows_operation_resolved"), 302)]
    shown = response.content.decode()
    assert "2 recorded, 1 refused" in shown
    for text in ("accepted", "needs a second person", "The operation has moved since you looked at it; look again."):
        assert text in shown, text
    assert (again(first).status, again(second).status, again(third).status) == ("succeeded", "uncertain", "planned")
    assert set(Resolution.objects.filter(operation_id__in=[first.pk, second.pk]).values_list("reason", flat=True)) == {
        "Their list has them all."
    }
    assert sorted(LogEntry.objects.values_list("object_id", flat=True)) == sorted([first.pk, second.pk])
    world.worker.run()
    assert status(first.workflow_id)[0] == "complete"


def worn_out(world: World) -> Operation:
    """A payment in doubt whose probe could never tell."""
    operation = in_doubt(world.worker, PayMended)
    for _ in range(2):
        world.clock.move(seconds=5)
        world.worker.tick()
        world.worker.run()
    assert again(operation).due_at is None
    return again(operation)


def test_after_a_probe_was_mended_it_is_asked_again(world: World) -> None:
    operation = worn_out(world)
    client = client_of("rita")
    shown = page(client, operation)
    assert re.findall(r'name="verdict" id="[\w-]+" value="(\w+)"', shown)[-1] == "ask_again"
    assert "Ask the provider again" in shown
    assert "Recorded" in said(give(client, operation, "ask_again"))
    shown = page(client, operation)
    assert "<strong>ask again</strong>" in shown
    assert "only by a person" not in shown
    probe_says.append(Happened({"receipt": 9}))
    world.worker.run()
    assert again(operation).status == "succeeded"


def test_several_are_asked_about_again_where_somebody_can_be_asked(world: World) -> None:
    first, second, nobody = worn_out(world), worn_out(world), in_doubt(world.worker)
    client = client_of("rita")
    shown = select(client, first, second, nobody).content.decode()
    assert shown.count("Ask the provider again") == 3, "for two of them, and once on offer"
    names = hidden(shown, "operation")
    given = {"operation": names, "seen": hidden(shown, "seen"), "verdict": "ask_again", "reason": "Mended."}
    shown = client.post(reverse("admin:outlast_flows_operation_resolve"), given, follow=True).content.decode()
    assert "2 recorded, 1 refused" in shown
    assert "Nobody can be asked" in shown
    assert [again(one).due_at is not None for one in (first, second, nobody)] == [True, True, False]


def test_a_verdict_for_several_without_a_reason_is_asked_again_with_the_same_states(world: World) -> None:
    operation = in_doubt(world.worker)
    client = client_of("rita")
    given = {"operation": [operation.pk], "seen": ["uncertain:77"], "verdict": "happened", "reason": " "}
    shown = client.post(reverse("admin:outlast_flows_operation_resolve"), given).content.decode()
    assert "Say how you know" in shown
    assert hidden(shown, "seen") == ["uncertain:77"]
    assert 'value="happened" aria-describedby="oa-leads-happened" checked' in shown
    assert not Resolution.objects.exists()


def test_an_operation_that_is_not_there_is_a_refusal_of_its_own(world: World) -> None:
    operation = in_doubt(world.worker)
    given = {"operation": ["nothing", operation.pk], "seen": ["x", seen_of(operation)], "verdict": "happened", "reason": "x"}
    shown = client_of("rita").post(reverse("admin:outlast_flows_operation_resolve"), given, follow=True).content.decode()
    assert "1 recorded, 1 refused" in shown
    assert "There is no operation nothing" in shown


@pytest.mark.parametrize("given", [{}, {"operation": ["a", "b"], "seen": ["x"]}, {"operation": ["\x00"], "seen": ["x"]}])
def test_a_post_that_no_page_makes_is_not_found(world: World, given: dict[str, list[str]]) -> None:
    more = {"verdict": "happened", "reason": "x"}
    assert client_of("rita").post(reverse("admin:outlast_flows_operation_resolve"), {**given, **more}).status_code == 404


def test_too_many_at_once_are_refused(world: World) -> None:
    operation = in_doubt(world.worker)
    copy_many(operation, 101)
    client = client_of("rita")
    action = {"action": "resolve_selected", "_selected_action": [operation.pk], "select_across": "1"}
    response = client.post(reverse(LIST), action, follow=True)
    assert "At most 100 operations can be resolved at a time. Nothing was changed; select fewer." in said(response)
    ids = list(Operation.objects.values_list("pk", flat=True))
    given = {"operation": ids, "seen": ["x"] * len(ids), "verdict": "happened", "reason": "x"}
    assert client.post(reverse("admin:outlast_flows_operation_resolve"), given).status_code == 404
    remove_copies()


def copy_many(operation: Operation, count: int) -> None:
    """More operations in doubt, behind the guards of the services."""
    rows = []
    for number in range(count):
        copied = again(operation)
        copied.pk, copied.status = f"{operation.workflow_id}/copy/{number}", "planned"
        rows.append(copied)
    Operation.objects.bulk_create(rows)
    Operation.objects.filter(node="pay", pk__contains="/copy/").update(status="in_flight")
    Operation.objects.filter(pk__contains="/copy/").update(status="uncertain")


def remove_copies() -> None:
    Operation.objects.filter(pk__contains="/copy/").delete()


def test_what_needs_no_verdict_is_not_asked_about(world: World) -> None:
    run = PayPlain.start({})
    world.worker.run()
    response = select(client_of("rita"), operation_of(run), queue="all")
    assert "None of these operations needs a verdict." in said(response)


# ---------------------------------------------------------------------- text that a provider or a model made


class Elements(HTMLParser):
    """All tags of a page, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def pages_of(world: World) -> list[str]:
    """Every page that shows an operation, of one whose every word is hostile."""
    world.rita.username = "rita" + "\u202e"
    probe_says.append(Unknown(EVIL))
    operation = in_doubt(world.worker, PayProbed, request={EVIL: EVIL}, key=EVIL, goal=EVIL)
    client = client_of("rita")
    pages = [client.get(reverse(LIST), {"queue": "doubt"}).content.decode(), page(client, operation)]
    pages.append(select(client, operation, queue="all").content.decode())
    give(client, operation, "cannot_tell", reason=EVIL, evidence='"<script>alert(1)</script> \\u202eevil"')
    pages.append(give(client, operation, "happened", reason=EVIL, external_id=EVIL, evidence="{").content.decode())
    pages.append(
        give(client, operation, "happened", reason=EVIL, external_id=EVIL, evidence=f'{{"a": "{EVIL}"}}').content.decode()
    )
    pages.append(page(client, operation))
    pages.append(client.get(reverse("admin:outlast_flows_workflow_change", args=[operation.workflow_id])).content.decode())
    given = {"operation": [operation.pk, EVIL], "seen": [EVIL, "x"], "verdict": "happened", "reason": EVIL}
    resolving = reverse("admin:outlast_flows_operation_resolve")
    pages.append(client.post(resolving, {**given, "verdict": ""}).content.decode())
    pages.append(client.post(resolving, given, follow=True).content.decode())
    pages.append(client.get(reverse("admin:outlast_flows_operation_history", args=[quote(operation.pk)])).content.decode())
    assert again(operation).external_id == EVIL
    return pages


def typed(text: str) -> str:
    """The page without what the person typed into its fields, which a browser shows as the person typed it."""
    return re.sub(r"<textarea.*?</textarea>|<input[^>]*>", "", text, flags=re.DOTALL)


def test_whatever_somebody_wrote_is_escaped_and_its_hidden_characters_shown(world: World) -> None:
    pages = pages_of(world)
    for shown in pages:
        assert "<script>alert" not in shown
        assert "\u202e" not in typed(shown)
    final = pages[5]
    assert final.count(ESCAPED) >= 8, "request, key, goal, reasons, id, evidence"
    assert final.count(MARK) >= 8


def test_there_is_no_inline_script_style_or_handler_and_all_is_reachable_by_name(world: World) -> None:
    for shown in pages_of(world):
        elements = Elements(shown).tags
        ids = {attributes["id"] for _tag, attributes in elements if attributes.get("id")}
        for tag, attributes in elements:
            assert tag != "style"
            assert not [name for name in attributes if name == "style" or name.startswith("on")], (tag, attributes)
            assert tag != "script" or attributes.get("src")
            for name in ("aria-labelledby", "aria-describedby", "for"):
                for target in (attributes.get(name) or "").split():
                    assert target in ids, (tag, name, target)


# ---------------------------------------------------------------------- commitments


def test_commitments_the_live_ones_by_default_and_by_status_and_kind(world: World) -> None:
    run = PayPlain.start({})
    world.worker.run()
    operation = operation_of(run)
    common = {"workflow_id": run.id, "activity_seq": 1, "node": "pay", "releasable": True, "may_defer": False}
    moment = operation.flown_at
    names = {"a": ("seat", "active"), "b": ("window", "breached"), "c": ("seat", "released")}
    made = {
        name: Commitment.objects.create(
            **common, name=name, kind=kind, status=one, visit=1, opened_at=moment, reference=EVIL, terms={EVIL: EVIL},
            holder=EVIL, reason=EVIL, operation_id=operation.pk,
        )
        for name, (kind, one) in names.items()
    }  # fmt: skip
    client = client_of("vera")
    target = reverse("admin:outlast_flows_commitment_changelist")

    def found(**query: str) -> set[str]:
        return {one.name for one in client.get(target, query).context["cl"].result_list}

    assert (found(), found(status="all"), found(status="released")) == ({"a", "b"}, {"a", "b", "c"}, {"c"})
    assert (found(kind="seat"), found(kind="seat", status="all"), found(q=str(run.id))) == ({"a"}, {"a", "c"}, {"a", "b"})
    assert found(kind="\x00") == set()
    shown = client.get(target).content.decode()
    assert "kind=window" in shown
    assert reverse("admin:outlast_flows_workflow_change", args=[run.id]) in shown
    one = reverse("admin:outlast_flows_commitment_change", args=[made["a"].pk])
    shown = client.get(one).content.decode()
    assert shown.count(ESCAPED) >= 5
    assert "\u202e" not in shown
    assert url(operation) in shown
    assert client.post(one, {"status": "released"}).status_code == 403
    assert client_of("otto").get(target).status_code == 403
    Commitment.objects.all().delete()

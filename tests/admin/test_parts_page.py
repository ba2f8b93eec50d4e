"""Keeping a part of a list, on the decision page."""

from __future__ import annotations

import pytest

from approvals.models import Request, Review
from tests.db.approvals.test_parts import FILES, DeleteFiles
from tests.support.approving import World
from tests.support.browsing import ESCAPED, EVIL, client_of, page, said, url_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.req("F5", "F7")]


def post(name: str, request: Request, **given: object) -> object:
    data = {"digest": request.digest, "comment": "Not those.", "verdict": "narrow", **given}
    return client_of(name).post(url_of(request), data)


def test_what_is_ticked_is_kept(world: World) -> None:
    request = world.ask({**FILES, "files": ["a", EVIL, "c"]}, flow=DeleteFiles)
    shown = page(client_of("rita"), url_of(request))
    assert shown.count('name="keep"') == 3
    assert ESCAPED in shown
    assert "<script>alert" not in shown
    response = post("rita", request, keep=["0", "2"])
    assert response.status_code == 302  # type: ignore[attr-defined]
    assert world.status(request) == "superseded"
    world.worker.run()
    part = world.request_of(world.workflow(request))
    assert part.candidate["value"]["files"] == ["a", "c"]
    shown = page(client_of("ron"), url_of(part))
    assert "keep a part" in shown
    assert "Not those." in shown


@pytest.mark.parametrize("keep", [[], ["0", "1", "2"], ["7"], ["x"]])
def test_what_is_no_part_is_said_beside_the_list_and_changes_nothing(world: World, keep: list[str]) -> None:
    request = world.ask(FILES, flow=DeleteFiles)
    response = post("rita", request, keep=keep)
    assert response.status_code == 200  # type: ignore[attr-defined]
    assert "oa-keep-errors" in response.content.decode()  # type: ignore[attr-defined]
    assert response.context["form"].errors["keep"]  # type: ignore[attr-defined]
    assert (world.status(request), Review.objects.count()) == ("pending", 0)


def test_ticks_mean_nothing_to_another_answer(world: World) -> None:
    request = world.ask(FILES, flow=DeleteFiles)
    post("rita", request, keep=["0"], verdict="approve", comment="")
    assert world.status(request) == "approved"


def test_a_list_is_offered_only_where_it_is_declared(world: World) -> None:
    request = world.ask(FILES)
    shown = page(client_of("rita"), url_of(request))
    assert 'name="keep"' not in shown
    assert "Keep only what is ticked" not in shown
    response = client_of("rita").post(
        url_of(request), {"digest": request.digest, "comment": "x", "verdict": "narrow", "keep": ["0"]}, follow=True
    )
    assert "no way on" in said(response)

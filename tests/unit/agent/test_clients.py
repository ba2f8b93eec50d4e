"""Clients of providers try nothing again unseen; who cannot be told so is named by a check (O5)."""

from __future__ import annotations

from types import SimpleNamespace as Thing
from typing import Any

import pytest

from flows import COMPLETE, AgentTurn, Candidate, End
from tasks.agent.clients import clients, no_retries, retrying
from tasks.checks import check_clients
from tests import factories

pytestmark = pytest.mark.req("O5")


class Boto:
    """A client that has retries, and no way to say none."""


class Broken:
    @property
    def client(self) -> Any:
        raise RuntimeError("no key")


def test_retries_of_all_models_inside_are_switched_off() -> None:
    one, two, quiet = Thing(max_retries=2), Thing(max_retries=5), Thing(max_retries=0)
    model = Thing(wrapped=Thing(models=[Thing(client=one), Thing(_client=two), Thing(client=quiet), "openai:by-name", Broken()]))
    assert {id(client) for client in clients(model)} == {id(one), id(two), id(quiet)}
    no_retries(model)
    assert (one.max_retries, two.max_retries, quiet.max_retries) == (0, 0, 0)
    assert list(retrying(model)) == []


def test_models_that_hold_each_other_end() -> None:
    model = Thing(client=Thing(max_retries=1))
    model.wrapped = model
    no_retries(model)
    assert model.client.max_retries == 0


@pytest.mark.parametrize("model", [None, "openai:gpt", Thing(), Thing(client=None)])
def test_what_has_no_client_has_no_retries(model: Any) -> None:
    no_retries(model)
    assert list(retrying(model)) == []


def test_a_client_that_cannot_be_told_is_named_by_the_check() -> None:
    def turn(attempt: Any) -> Candidate:
        return Candidate("go")

    vars(turn)["agent"] = Thing(model=Thing(client=Boto()))
    with factories.declaring() as declare:
        declare("t-clients", think=AgentTurn(turn, choices={"go": "done"}), done=End(COMPLETE))
        (found,) = check_clients(None)
        vars(turn)["agent"] = Thing(model=Thing(client=Thing(max_retries=2)))
        assert check_clients(None) == []
    assert found.id == "outlast_flows.W132"
    assert "test_clients.Boto of its agent" in found.msg


def test_the_client_of_openai() -> None:
    openai = pytest.importorskip("openai", reason="openai comes with openai-agents")
    model = Thing(client=openai.AsyncOpenAI(api_key="none"))
    assert model.client.max_retries > 0
    no_retries(model)
    assert model.client.max_retries == 0

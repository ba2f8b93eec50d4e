"""What the execution plane checks of flows: agents of libraries, whose clients may try again where nobody sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks

from flows import AgentTurn
from flows.checks import TAG, declared_flows
from tasks.agent.clients import retrying


@checks.register(TAG)
def check_clients(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[checks.CheckMessage]:
    """Clients of models that cannot be told not to try again; the others are, when they are used."""
    found: list[checks.CheckMessage] = []
    for flow in declared_flows(app_configs):
        for name, node in flow.definition.nodes.items():
            agent = getattr(node.do, "agent", None) if isinstance(node, AgentTurn) else None
            for client in sorted(set(retrying(getattr(agent, "model", None)))):
                message = f"Node {name!r}: the client {client} of its agent may try again by itself."
                hint = (
                    "What it tries again is paid for and on no record. Switch that off where the client is made, and leave it to the node's "
                    "retry=; then silence this check."
                )
                found.append(checks.Warning(message, hint=hint, obj=flow.definition.where, id="outlast_flows.W132"))
    return found

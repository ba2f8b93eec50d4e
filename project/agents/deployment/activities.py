"""The work of the deployment agent's nodes. Each function is one attempt, and each may be killed at any line and run again.

Each change of the cloud is one call, made under the attempt's operation id. What the client raises is passed on as it is: it says
"nothing happened" only where that is known, and `AmbiguousOutcome` where it is not. Nothing is guessed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings

from project.agents.deployment.client import Cloud, Json
from project.agents.deployment.policy import canary_wanted, check_input, deployment_wanted, window_id, window_wanted

if TYPE_CHECKING:
    from flows import Attempt

PATIENCE = 5.0  # seconds, of one request


def cloud_of(run: Any) -> Cloud:
    """The cloud of an attempt's or an operation's workflow; DEPLOYMENT_AGENT_TIMEOUT is how long one answer is waited for."""
    return Cloud(run.input["cloud"], timeout=getattr(settings, "DEPLOYMENT_AGENT_TIMEOUT", PATIENCE))


def reserve_window(attempt: Attempt) -> Json:
    """A change window for the service."""
    check_input(attempt.input)
    return cloud_of(attempt).reserve(**window_wanted(attempt), key=attempt.operation_id)


def check_service(attempt: Attempt) -> Json:
    """Whether the service is healthy and the window is open, looked up and not remembered: an event only wakes."""
    cloud = cloud_of(attempt)
    window = cloud.window(window_id(attempt.results["reserve"]))
    return {"healthy": cloud.health(attempt.input["service"])["healthy"], "window": window["state"]}


def start_canary(attempt: Attempt) -> Json:
    """The new version on a few instances."""
    return cloud_of(attempt).canary(**canary_wanted(attempt), key=attempt.operation_id)


def read_slo(attempt: Attempt) -> Json:
    """How the service does with the canary in it."""
    return cloud_of(attempt).slo(attempt.input["service"])


def promote_canary(attempt: Attempt) -> Json:
    """The canary becomes what the service runs."""
    return cloud_of(attempt).promote(**deployment_wanted(attempt), key=attempt.operation_id)


def roll_back_canary(attempt: Attempt) -> Json:
    """The canary goes."""
    return cloud_of(attempt).rollback(**deployment_wanted(attempt), key=attempt.operation_id)

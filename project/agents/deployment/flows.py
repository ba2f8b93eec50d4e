from __future__ import annotations

from flows import (
    COMPLETE,
    ESCALATE,
    FAILED,
    Activity,
    Branch,
    Commits,
    Deadline,
    Effect,
    End,
    Flow,
    Retry,
    Servicing,
    Sleep,
    Visits,
    Wait,
    minutes,
    seconds,
)
from flows.errors import CapacityUnavailable, PolicyDenied, StateConflict, Transient
from project.agents.deployment.activities import (
    check_service,
    promote_canary,
    read_slo,
    reserve_window,
    roll_back_canary,
    start_canary,
)
from project.agents.deployment.policy import (
    canary_id,
    canary_wanted,
    deployed_as,
    deployment_wanted,
    ready,
    reserved_window,
    verdict,
    window_id,
    window_terms,
    window_wanted,
)
from project.agents.deployment.servicing import find_operation, find_release, find_rollback, release_window, roll_back

#: Of a change: a full or unreachable cloud has done nothing, so the same is asked for again.
CHANGE = Retry(max_attempts=8, initial=seconds(1), maximum=seconds(30), retry_on=(CapacityUnavailable,))
#: Of a question to the cloud, in an activity.
LOOK = Retry(max_attempts=5, initial=seconds(1), maximum=seconds(30))
#: Of "what became of it?", and of each mitigation: some nine minutes, then a person.
PROBES = Retry(max_attempts=10, initial=seconds(1), maximum=minutes(10))
#: A request whose sender has gone may still lie unread in the cloud's socket: nobody asks about it before it has been read.
GRACE = seconds(2)
#: What is left to do when a change could not be made at all, for certain.
ASIDE = (Transient, CapacityUnavailable, StateConflict)

UNDO = Servicing(roll_back, reconcile=find_rollback, probes=PROBES, timeout=minutes(1), grace=GRACE)
GIVE_BACK = Servicing(release_window, reconcile=find_release, probes=PROBES, timeout=minutes(1), grace=GRACE)


class DeployService(Flow):
    """Deploy one version of a service in a change window: a canary first, then all of it, or none of it."""

    class Meta:
        version = 1
        deadline = Deadline(days=1, then=ESCALATE)

    reserve = Activity(
        reserve_window,
        effect=Effect(reconcile=find_operation, request=window_wanted, probes=PROBES, grace=GRACE),
        commits=Commits(
            "window",
            kind="window",
            release=GIVE_BACK,
            reference=window_id,
            terms=window_terms,
            deadline=Deadline(hours=8, then=ESCALATE),
        ),
        timeout=minutes(1),
        retry=CHANGE,
        on=dict.fromkeys((*ASIDE, PolicyDenied), "gave_up"),
        then="opened",
    )
    opened = Wait("window.opened", key=reserved_window, deadline=Deadline(hours=4, then="gave_up"), then="check")
    check = Activity(
        check_service,
        timeout=minutes(1),
        retry=LOOK,
        on={Transient: "recover"},
        visits=Visits(5, then="gave_up"),
        then="ready",
    )
    ready = Branch(ready, choices={"go": "canary", "later": "recover", "never": "gave_up"})
    recover = Sleep(seconds(30), then="check")
    canary = Activity(
        start_canary,
        effect=Effect(reconcile=find_operation, compensate=UNDO, request=canary_wanted, probes=PROBES, grace=GRACE),
        timeout=minutes(1),
        retry=CHANGE,
        on=dict.fromkeys(ASIDE, "gave_up"),
        then="observe",
    )
    observe = Wait("deployment.observed", key=canary_id, deadline=Deadline(seconds=30, then="slo"), then="slo")
    slo = Activity(read_slo, timeout=minutes(1), retry=LOOK, on={Transient: "roll_back"}, then="verdict")
    verdict = Branch(verdict, choices={"keep": "promote", "drop": "roll_back"})
    promote = Activity(
        promote_canary,
        effect=Effect(reconcile=find_operation, compensate=UNDO, request=deployment_wanted, probes=PROBES, grace=GRACE),
        timeout=minutes(1),
        retry=CHANGE,
        on=dict.fromkeys(ASIDE, "roll_back"),
        then="done",
    )
    roll_back = Activity(
        roll_back_canary,
        effect=Effect(reconcile=find_operation, request=deployment_wanted, probes=PROBES, grace=GRACE),
        timeout=minutes(1),
        retry=CHANGE,
        on=dict.fromkeys(ASIDE, "rolled_back"),  # on the way to that end the canary's compensation sees to it
        then="rolled_back",
    )
    done = End(COMPLETE, result=deployed_as)
    rolled_back = End(FAILED)
    gave_up = End(FAILED)

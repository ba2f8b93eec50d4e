"""Many deployments at once, and the judgement on them afterwards: what Outlast recorded, against what the cloud's own ledger shows.

    ids = start_many(50, cloud, seed=7)     # starts them, or finds those that the same call has started before
    ...                                     # workers, a relay, and whatever goes wrong
    found = judge(cloud, ids)               # found["lost"] == [] and so on: empty is good, and what is there says what is wrong

The cloud's ledger is written by another process, which knows nothing of Outlast: it is the witness.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import flows
from flows import commitments
from project.agents.deployment.client import Cloud, Json
from project.agents.deployment.flows import DeployService

TERMINAL = frozenset({"complete", "failed", "cancelled", "superseded"})
#: Outcomes of a workflow that only a person lets go on.
ASKS_A_PERSON = frozenset({"HUMAN_REQUIRED", "POLICY_BLOCKED"})
#: What a workflow that ended well has done.
CLAIMS = ("reserve", "canary", "promote", "release")


# ---------------------------------------------------------------------- start


def start_many(count: int, cloud: Cloud, seed: int, *, first: int = 0, breaching: float = 0.2, latest: float = 2.0) -> list[UUID]:
    """Deployments "deploy-0", "deploy-1", … of the services "svc-0", "svc-1", …, all of one seed the same.

    Args:
        first: the number of the first of them.
        breaching: the share of services whose objectives do not hold with a canary in it. latest: when windows open, in seconds.
    Raises:
        KeyConflict: those keys were started before with another seed.
    """
    dice = random.Random(f"deployments/{seed}")
    runs = []
    for number in range(first, first + count):
        service = f"svc-{number}"
        cloud.set_slo(service, 0.2 if dice.random() < breaching else 0.001)
        given = {
            "service": service,
            "version": f"{dice.randint(1, 9)}.{number}",
            "cloud": cloud.address,
            "minutes": 60,
            "opens_in": round(dice.random() * latest, 2),
        }
        runs.append((f"deploy-{number}", given))
    return [started.id for started in DeployService.start_many(runs)]


# ---------------------------------------------------------------------- judge


@dataclass(frozen=True, slots=True)
class Witness:
    """The cloud's ledger. A key names its workflow, as each operation id does.

    made: workflow → its effects. running: the promotions that were not rolled back, newest last, by service.
    """

    keys: frozenset[str]
    made: dict[str, list[Json]]
    running: dict[str, list[str]]
    windows: frozenset[str]
    canaries: frozenset[str]

    @classmethod
    def of(cls, cloud: Cloud) -> Witness:
        ledger = cloud.ledger()
        effects, summary = ledger["effects"], ledger["summary"]
        made: dict[str, list[Json]] = defaultdict(list)
        for effect in effects:
            made[(effect["key"] or "").partition("/")[0]].append(effect)
        back = {effect["resource"] for effect in effects if effect["verb"] == "rollback"}
        running: dict[str, list[str]] = defaultdict(list)
        for effect in effects:
            if effect["verb"] == "promote" and effect["resource"] not in back:
                running[effect["service"]].append(effect["resource"])
        keys = frozenset(effect["key"] for effect in effects if effect["key"])
        return cls(keys, made, running, frozenset(summary["windows"]), frozenset(summary["canaries"]))

    def made_by(self, workflow: UUID) -> list[Json]:
        return self.made.get(str(workflow), [])

    def runs(self, deployment: str) -> bool:
        """Whether a service runs that deployment: it was promoted, and neither rolled back nor replaced since."""
        return any(promoted[-1] == deployment for promoted in self.running.values())


def judge(cloud: Cloud, ids: Sequence[UUID]) -> Json:
    """What became of these deployments.

    runs: how many. outcomes: end or state → how many. The others are lists of texts, in which each says what is wrong:
    duplicated: done more than once at the cloud. lost: claimed and not done, or held by a workflow that has ended.
    live_commitments: owed still. unfinished: neither at an end nor waiting for a person.
    """
    witness = Witness.of(cloud)
    rows = [flows.get(one) for one in ids]
    wanted = set(ids)
    owed = [f"{one.workflow_id}: {one.name} {one.reference}" for one in commitments.active() if one.workflow_id in wanted]
    return {
        "runs": len(rows),
        "outcomes": dict(Counter(_outcome(row) for row in rows)),
        "duplicated": [text for row in rows for text in _duplicated(row.pk, witness)],
        "lost": [text for row in rows for text in _lost(row, witness)],
        "live_commitments": owed,
        "unfinished": [f"{row.pk}: {_outcome(row)}" for row in rows if not _is_settled(row)],
    }


def _is_settled(row: Any) -> bool:
    """At an end, or a person's turn. A workflow that reconciles is a person's only when nobody will look at it by himself."""
    if row.status in TERMINAL or row.outcome in ASKS_A_PERSON:
        return True
    waits_for_a_look = any(one.due_at or one.worker_id or one.status == "in_flight" for one in row.operations.all())
    return row.outcome == "RECONCILIATION_REQUIRED" and not waits_for_a_look


def _outcome(row: Any) -> str:
    """complete, failed at …, or for what is under way its status, node and outcome."""
    if row.status in TERMINAL:
        return f"{row.status}/{row.node}" if row.status == "failed" else str(row.status)
    return f"{row.status}/{row.node}/{row.outcome or '-'}"


def _duplicated(workflow: UUID, witness: Witness) -> Iterable[str]:
    """One key twice; or one kind of change twice, under whatever keys: no deployment does anything a second time."""
    made = witness.made_by(workflow)
    for key, times in Counter(effect["key"] for effect in made).items():
        if times > 1:
            yield f"{key}: {times} times"
    for verb, keys in Counter(verb for _, verb in {(effect["key"], effect["verb"]) for effect in made}).items():
        if keys > 1:
            yield f"{workflow}: {verb} under {keys} keys"


def _lost(row: Any, witness: Witness) -> Iterable[str]:
    made = {effect["verb"]: effect["resource"] for effect in witness.made_by(row.pk)}
    for operation in row.operations.all():
        shown = operation.pk in witness.keys or (operation.kind != "effect" and _is_undone(operation, made, witness))
        if operation.status in {"succeeded", "compensated"} and not shown:
            yield f"{operation.pk}: {operation.status}, and not in the ledger"
    if row.status not in TERMINAL:
        return
    for held in (witness.windows & {made.get("reserve")}) | (witness.canaries & {made.get("canary")}):
        yield f"{row.pk}: {row.status}, and the cloud still holds {held}"
    if row.status == "complete":
        missing = [verb for verb in CLAIMS if verb not in made]
        yield from (f"{row.pk}: complete without a {verb}" for verb in missing)
        if "rollback" in made:
            yield f"{row.pk}: complete, and {made['rollback']} was rolled back"
    elif "promote" in made and witness.runs(made["promote"]):
        yield f"{row.pk}: {row.status}, and {made['promote']} is still promoted"


def _is_undone(operation: Any, made: Json, witness: Witness) -> bool:
    """A mitigation that found nothing to do leaves no line of its own in the ledger: then what it was for must be gone all the same."""
    if operation.kind == "release":
        return made.get("reserve") not in witness.windows
    return "canary" in made and made["canary"] not in witness.canaries and not witness.runs(made["canary"])

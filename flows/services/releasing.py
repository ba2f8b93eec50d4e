"""A run that wakes under another release than the one that it is pinned to: what the turn makes of it, and who must be told (I1).

claim   a pinned run is taken by a worker that offers its release, or by any where the flow's policy lets another release decide
decide  `flows.core.releases`: go on, be pinned to the current one, begin again, ask a person, be cancelled
pin     share the current release ──► lock the workflow ──► pin ──► the decided move         one transaction, two arrows
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from flows import registry
from flows.conf import conf
from flows.core.decide import Decided
from flows.core.releases import PARTS, RELEASE_NOT_OFFERED, digest_of, moved
from flows.dispatch import after_commit, hints_for
from flows.models import Release
from flows.services import arrows
from flows.services.owned import Owned
from flows.store import releases as store
from flows.store.move import move
from flows.store.sql import dumps

logger = logging.getLogger("outlast.releases")


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The behavioural release that an attempt works under: name → digest of each model, prompt, tool and policy."""

    name: str
    models: Mapping[str, str]
    prompts: Mapping[str, str]
    tools: Mapping[str, str]
    policies: Mapping[str, str]
    digest: str

    def has(self, part: str, name: str, value: Any) -> bool:
        """Whether the release holds exactly this value (or digest) under that name: `release.has("prompts", "propose", PROMPT)`.

        Raises:
            ValueError: there is no such part. PayloadError: the value cannot be hashed.
        """
        if part not in PARTS:
            raise ValueError(f"A release has {', '.join(PARTS)}; there is no {part!r:.60}.")
        found: str | None = getattr(self, part).get(name)
        return found is not None and found == digest_of(value, f"{part}[{name!r}]")


def behaviour(name: str, using: str) -> Behaviour | None:
    """The release of that name, as an attempt gets it; None where the run is pinned to none."""
    row = Release.objects.using(using).filter(name=name).first() if name else None
    if row is None:
        return None
    return Behaviour(row.name, row.model_hashes, row.prompt_hashes, row.tool_hashes, row.policy_hashes, row.digest)


def deciding() -> list[str]:
    """`name@version` of the flows whose policy lets another release than the pinned one decide about a run."""
    return [f"{name}@{version}" for (name, version), flow in registry.known().items() if flow.definition.release_policy.decides]


def may_run(owned: Owned, offers: Callable[[str], bool]) -> bool:
    """Whether this owner may run code of the workflow: it offers the release that the run is pinned to."""
    return not owned.row.release or offers(owned.row.release)


def is_current(owned: Owned, release: str) -> bool:
    """Whether it is still the current one, which it stays until the end of the transaction."""
    return store.share_current(owned.row.flow_name, owned.using) == release


def pin(owned: Owned, decided: Decided) -> bool:
    """Pin the run to the release that was decided on, in the transaction of the move that follows; False: somebody else moved it."""
    row = owned.row
    note: dict[str, Any] = {"release": {"from": row.release, "to": decided.release}}
    fact = owned.facts.release
    if fact is not None and fact.restart:
        note["restart"] = fact.restart
    pinned = store.pin(
        row.id,
        row.version,
        row.epoch,
        row.intent_version,
        owned.worker,
        release=decided.release,
        note=dumps(note),
        using=owned.using,
    )
    if pinned:
        row.version, row.release = row.version + 1, decided.release
        owned.facts = replace(owned.facts, release=None if fact is None else moved(fact))
    return pinned


def hand_over(owned: Owned) -> bool:
    """Give the run to a worker that offers its release; False: somebody else moved it."""
    made = move(arrows.hand_over(owned), owned.using)
    if made is not None:
        owned.hinted = True
        after_commit(hints_for([(owned.row.id, made.queue, owned.row.flow_name, owned.row.node)]), owned.using)
    return made is not None


def alert(using: str) -> list[UUID]:
    """Tell the accountable users of runs that are ready while no live worker has offered their release for RELEASE_ALERT_SECONDS, once."""
    found = store.alert(float(conf.RELEASE_ALERT_SECONDS), deciding(), RELEASE_NOT_OFFERED, int(conf.SWEEP_BATCH), using)
    for workflow, release in found:
        logger.error("workflow %s is ready, and no live worker offers its release %s", workflow, release)
    return [workflow for workflow, _ in found]


def stuck(using: str, limit: int = 100) -> list[tuple[UUID, str, str]]:
    """(workflow, node, release) of the runs that are in that state now."""
    return store.not_offered(float(conf.RELEASE_ALERT_SECONDS), deciding(), limit, using)


def not_offered(using: str) -> list[tuple[UUID, str]]:
    """(workflow, what is wrong) of them."""
    return [
        (workflow, f"ready at {node}, and no live worker offers release {release}: start one, or flows releases move")
        for workflow, node, release in stuck(using)
    ]

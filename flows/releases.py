"""Behavioural releases: which models, prompts, tools and policies runs work under.

from flows import releases

releases.register("R18", models={"planner": "m-2"}, prompts={"propose": PROMPT}, compatible_with=["R17"], by=user)
releases.make_current("R18", by=user, reason="Rolled out")      # new runs are pinned to it
releases.move(run, to="R18", by=user, reason="Looked at it")    # a run at rest, whatever its flow's policy says
"""

from asgiref.sync import sync_to_async

from flows.core.misuse import ReasonMissing
from flows.core.releases import InvalidRelease
from flows.core.releases import digest_of as digest
from flows.services.releases import (
    Code,
    Moved,
    ReleaseTaken,
    UnknownRelease,
    current,
    get,
    list_releases,
    make_current,
    move,
    register,
)
from flows.services.releasing import Behaviour

list = list_releases  # noqa: A001 - the verb's name in the documentation is flows.releases.list

aregister = sync_to_async(register)
amake_current = sync_to_async(make_current)
acurrent = sync_to_async(current)
amove = sync_to_async(move)

__all__ = [
    "Behaviour",
    "Code",
    "InvalidRelease",
    "Moved",
    "ReasonMissing",
    "ReleaseTaken",
    "UnknownRelease",
    "acurrent",
    "amake_current",
    "amove",
    "aregister",
    "current",
    "digest",
    "get",
    "list",
    "make_current",
    "move",
    "register",
]

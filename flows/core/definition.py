"""Flow and Definition: the finite graph that an author writes as a class, and its frozen, inspectable form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from flows.core import canonical
from flows.core.nodes import Activity, Node
from flows.core.nodes.waits import Approval
from flows.core.policies import Checkpoint, Deadline

#: Every flow class that was declared in this process, in order; `flows.registry` makes the look-up of it.
DECLARED: list[type[Flow]] = []

#: Names that the class itself uses; a node of that name is a check error (outlast_flows.E013).
RESERVED = frozenset({"Meta", "start", "start_many", "definition", "astart", "astart_many", "mro"})

META_OPTIONS = frozenset({"name", "version", "deadline", "checkpoint", "abstract", "verbose_name"})


def kebab(name: str) -> str:
    """`UpgradeLibrary` → `upgrade-library`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower()


@dataclass(frozen=True)
class Definition:
    """One version of a flow: its nodes in the order of the class body, the first of which is the start."""

    name: str
    version: int
    nodes: Mapping[str, Node]
    deadline: Deadline | None = None
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    verbose_name: str = ""
    doc: str = ""
    where: str = ""
    unknown_options: tuple[str, ...] = ()

    @property
    def start(self) -> str:
        """The name of the first node."""
        return next(iter(self.nodes))

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hex digits over structure: nodes, routes, kinds and function names; not over code or timing."""
        shape = {"start": self.start, "nodes": {name: dict(node.shape()) for name, node in self.nodes.items()}}
        return canonical.digest(shape, f"flow {self.name}").removeprefix("sha256:")[:16]

    @cached_property
    def approvals(self) -> frozenset[str]:
        """The approval nodes that some gate of this flow asks about."""
        named = {node.gate.approved_by for node in self.nodes.values() if node.gate and node.gate.approved_by}
        return frozenset(name for name in named if isinstance(self.nodes.get(name), Approval))

    @cached_property
    def asks_people(self) -> bool:
        """Whether some node of this flow is an approval."""
        return any(isinstance(node, Approval) for node in self.nodes.values())

    @cached_property
    def compensates(self) -> bool:
        """Whether some effect of this flow can be compensated."""
        return any(effect.compensate is not None for node in self.nodes.values() for effect in node.all_effects())

    @cached_property
    def optional_queues(self) -> frozenset[str]:
        """The queues of activities that may be dropped under overload."""
        return frozenset(node.queue for node in self.nodes.values() if isinstance(node, Activity) and node.optional)

    @cached_property
    def commits(self) -> bool:
        """Whether some node of this flow begins a commitment."""
        return any(node.commitments for node in self.nodes.values())

    def node(self, name: str) -> Node:
        """The node of that name; KeyError if there is none (the caller asks for a migration)."""
        return self.nodes[name]

    def entered_by(self, name: str) -> list[str]:
        """The names of the nodes that may lead to `name`."""
        return [node.name for node in self.nodes.values() if name in {target for _, target in node.targets()}]


class Flow:
    """Base class of definitions: a finite graph whose nodes are the attributes of the class, in order; the first is the start.

    `class Meta` may set: version (default 1), name (default: the class name in kebab-case), deadline, checkpoint, verbose_name,
    abstract. Two live versions of a flow are two classes with one name. A flow is found in `flows.py` of an installed app.
    """

    definition: ClassVar[Definition]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        meta = cls.__dict__.get("Meta")
        if getattr(meta, "__dict__", {}).get("abstract", False):
            return
        nodes: dict[str, Node] = {}
        for base in reversed(cls.__mro__):
            nodes |= {name: value for name, value in vars(base).items() if isinstance(value, Node)}
        settings = _options(meta)
        cls.definition = Definition(
            name=settings.get("name", kebab(cls.__name__)),
            version=settings.get("version", 1),
            nodes=nodes,
            deadline=settings.get("deadline"),
            checkpoint=settings.get("checkpoint", Checkpoint()),
            verbose_name=settings.get("verbose_name", ""),
            doc=(cls.__doc__ or "").strip(),
            where=f"{cls.__module__}.{cls.__qualname__}",
            unknown_options=tuple(sorted(set(settings) - META_OPTIONS)),
        )
        DECLARED.append(cls)


def _options(meta: type | None) -> dict[str, Any]:
    """What `class Meta` says, with what it inherits (`class Meta(Base.Meta)`); being abstract is not inherited."""
    found: dict[str, Any] = {}
    for base in reversed(meta.__mro__ if meta else ()):
        if base is not object:
            found.update({name: value for name, value in vars(base).items() if not name.startswith("_")})
    found.pop("abstract", None)
    return found

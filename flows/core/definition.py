"""Flow and Definition: the finite graph that an author writes as a class, and its frozen, inspectable form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from flows.core import canonical
from flows.core.admission import Admission
from flows.core.budget import MEASURED, ZERO, Budget
from flows.core.events import StartedBy
from flows.core.nodes import Activity, AgentTurn, Decision, Node
from flows.core.nodes.approval import Approval
from flows.core.nodes.fanned import Fanned
from flows.core.objectives import Objectives
from flows.core.policies import Checkpoint, Deadline
from flows.core.protocol import BudgetKind, TimerKind
from flows.core.releases import RESUME_PINNED, OnRelease, as_policy
from flows.core.requirements import Fresh
from flows.core.verdicts import Verdict

if TYPE_CHECKING:
    from flows.core.versions import Step

#: Every flow class that was declared in this process, in order; `flows.registry` makes the look-up of it.
DECLARED: list[type[Flow]] = []

#: Names that the class itself uses; a node of that name is a check error (outlast_flows.E013).
RESERVED = frozenset({"Meta", "start", "start_many", "definition", "made_for", "astart", "astart_many", "mro"})

META_OPTIONS = frozenset(
    {
        *("name", "version", "verbose_name", "abstract", "deadline", "sla", "checkpoint", "policy", "budget"),
        *("migrate_from", "migrate", "on_release", "admission", "objectives"),
        *("started_by",),
    }
)


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
    sla: Mapping[str, Deadline] = field(default_factory=dict)
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    policy: str = ""
    budget: Budget | None = None
    verbose_name: str = ""
    doc: str = ""
    where: str = ""
    unknown_options: tuple[str, ...] = ()
    migrate_from: Mapping[int, Step] = field(default_factory=dict)
    migrate: str = ""
    on_release: Any = RESUME_PINNED
    admission: Admission | None = None
    made_for: str = ""
    started_by: StartedBy | None = None
    objectives: Objectives | None = None

    @property
    def release_policy(self) -> OnRelease:
        """What a run does when it wakes under another release; what is written wrongly (E027) keeps every run with its own."""
        return self.on_release if isinstance(self.on_release, OnRelease) else RESUME_PINNED

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
        """Whether some node of this flow puts a question to people."""
        return any(node.asks_people for node in self.nodes.values())

    @cached_property
    def probes(self) -> Mapping[str, Fresh]:
        """Everything outside that some gate of this flow wants fresh, by name."""
        return {name: probe for node in self.nodes.values() if node.gate for name, probe in node.gate.probes.items()}

    @cached_property
    def deadlines(self) -> Mapping[tuple[str, str], Deadline]:
        """The deadlines that are not those of one wait or one commitment, by (kind of timer, name)."""
        found = {(TimerKind.WORKFLOW_DEADLINE.value, ""): self.deadline} if self.deadline is not None else {}
        found |= {(TimerKind.SLA.value, name): one for name, one in self.sla.items()}
        gates = [node.gate for node in self.nodes.values() if node.gate]
        for name, fresh in [item for gate in gates for item in gate.probes.items()]:
            if fresh.deadline is not None:
                found.setdefault((TimerKind.FRESHNESS.value, name), fresh.deadline)
        return found

    @cached_property
    def calendars(self) -> frozenset[str]:
        """The calendars by which some node of this flow counts when it is entered."""
        return frozenset(name for node in self.nodes.values() for name in node.calendars)

    @cached_property
    def freshness(self) -> Mapping[str, Deadline]:
        """The freshness budgets that have a policy, by the name of what must be fresh."""
        return {name: one for (kind, name), one in self.deadlines.items() if kind == TimerKind.FRESHNESS}

    @cached_property
    def wanting(self) -> Mapping[str, frozenset[str]]:
        """Name of a freshness budget → the nodes from which one is reached whose gate wants it, that node included."""
        found = {}
        for name in self.freshness:
            known = {node.name for node in self.nodes.values() if node.gate and name in node.gate.probes}
            while more := {source for one in known for source in self.entered_by(one)} - known:
                known |= more
            found[name] = frozenset(known)
        return found

    def wanted_after(self, name: str) -> frozenset[str]:
        """The freshness budgets on which a node after this one stands, if it ends well."""
        node = self.nodes[name]
        after = {target for _, target in node.targets()} - set(node.on.values())
        return frozenset(what for what, nodes in self.wanting.items() if after & nodes)

    @cached_property
    def baselines(self) -> frozenset[str]:
        """The nodes whose attempts look at all of that before their code runs: what they decide or check stands on what was seen then."""
        if not self.probes:
            return frozenset()
        gated = [node for node in self.nodes.values() if node.gate and node.gate.fresh]
        again = {target for node in gated if (target := node.route_for_verdict(Verdict.REVALIDATION_REQUIRED))}
        found = {node.name for node in self.nodes.values() if _decides(node)}
        itself = {node.name for node in gated}
        return frozenset(name for name in (found | again) - itself if isinstance(self.nodes.get(name), Activity))

    def stands_on(self, name: str) -> frozenset[str]:
        """The nodes on whose answers a node stands, or people who are asked there: that decided its candidate, and that verified it."""
        node = self.nodes.get(name)
        if isinstance(node, Approval):  # people are shown what the candidate stands on
            verified = {one.name for one in self.nodes.values() if isinstance(one, Activity) and one.verifies == node.candidate}
            return frozenset({node.candidate} | verified)
        own = {node.verifies} if isinstance(node, Activity) and node.verifies else set()
        gate = node.gate if node is not None else None
        if gate is None:
            return frozenset(own)
        asked, verifiers = self.nodes.get(gate.approved_by or ""), [self.nodes.get(one) for one in gate.verified_by]
        decided = own | ({asked.candidate} if isinstance(asked, Approval) else set())
        decided |= {one.verifies for one in verifiers if isinstance(one, Activity) and one.verifies}
        return frozenset(decided | set(gate.verified_by))

    def again_at(self, name: str) -> frozenset[str]:
        """Where a person may have a run go on that stands at this node: what its gate stands on is decided or verified anew there."""
        if not isinstance(self.nodes.get(name), Activity):
            return frozenset()  # what has arrived for a wait is decided on where it stands
        return frozenset(one for one in self._grounds(name) if isinstance(self.nodes.get(one), Activity))

    def _grounds(self, name: str) -> frozenset[str]:
        node = self.nodes.get(name)
        again = node.route_for_verdict(Verdict.REVALIDATION_REQUIRED) if node is not None else None
        return self.stands_on(name) | {again or ""}

    def baselines_of(self, name: str) -> frozenset[str]:
        """Of the baselines those that count for the gate of a node: what it stands on, and where it is looked at again. What another node
        decides renews nothing here. A gate that stands on nothing in particular stands on all of them.
        """
        return self._grounds(name) & self.baselines or self.baselines

    @cached_property
    def envelopes(self) -> Mapping[str, int]:
        """Node → how many verifications of its candidates may fail before its envelope is closed."""
        found = [node.gate.competence for node in self.nodes.values() if node.gate and node.gate.competence]
        return {one.of: one.errors for one in found}

    @cached_property
    def reservations(self) -> Mapping[str, Mapping[BudgetKind, Decimal]]:
        """Node → what one attempt of it sets aside before it begins; only nodes that draw on a budget are in it.

        A Decision calls a model, where calls are limited. Computing is measured, where it is limited: nothing is set aside for it.
        """
        limits = self.budget.amounts if self.budget is not None else {}
        found: dict[str, Mapping[BudgetKind, Decimal]] = {}
        for name, node in self.nodes.items():
            if not isinstance(node, Activity):
                continue
            one = isinstance(node, Decision) and not isinstance(node, AgentTurn) and BudgetKind.MODEL_CALLS in limits
            calls = {BudgetKind.MODEL_CALLS: Decimal(1)} if one else {}
            said = {**calls, **(node.spends.amounts if node.spends is not None else {})}
            measured = {BudgetKind.COMPUTE_SECONDS: ZERO} if BudgetKind.COMPUTE_SECONDS in limits else {}
            if wanted := {**measured, **{kind: amount for kind, amount in said.items() if amount or kind in MEASURED}}:
                found[name] = wanted
        return found

    def holds(self, name: str) -> bool:
        """Whether an attempt at this node holds something that is scarce."""
        node = self.nodes.get(name)
        return isinstance(node, Activity) and node.holds

    @cached_property
    def calls(self) -> Mapping[str, Mapping[BudgetKind, Decimal]]:
        """Agent turn → what one call of its model sets aside before it is made."""
        return {name: node.of_model for name, node in self.nodes.items() if isinstance(node, AgentTurn)}

    @cached_property
    def limits_reviews(self) -> bool:
        """Whether each request for approval is counted."""
        return self.budget is not None and BudgetKind.HUMAN_REVIEWS in self.budget.amounts

    def passes(self, name: str) -> bool:
        """Whether an attempt at this node must pass the gate before its code runs."""
        node = self.nodes[name]
        draws = name in self.reservations or name in self.calls
        return isinstance(node, Activity) and (node.gate is not None or node.holds or name in self.baselines or draws)

    @cached_property
    def looks(self) -> bool:
        """Whether some attempt leaves more than its result: a verdict, an observation, a verification."""
        return any(self.passes(name) or (isinstance(node, Activity) and node.verifies) for name, node in self.nodes.items())

    @cached_property
    def compensates(self) -> bool:
        """Whether some effect of this flow can be compensated."""
        return any(effect.compensate is not None for node in self.nodes.values() for effect in node.all_effects())

    @cached_property
    def optional_queues(self) -> frozenset[str]:
        """The queues of activities that may be dropped under overload."""
        return frozenset(node.queue for node in self.nodes.values() if isinstance(node, Activity) and node.optional)

    @cached_property
    def has_children(self) -> bool:
        """Whether some node of this flow starts other runs."""
        return any(isinstance(node, Fanned) for node in self.nodes.values())

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


def _decides(node: Node) -> bool:
    return isinstance(node, Decision) or (isinstance(node, Activity) and bool(node.verifies))


def declare_bodies(cls: type[Flow]) -> None:
    """Declare the flows that its nodes make for functions: FLOW.NODE, in its version, which their runs keep to as any other."""
    definition = cls.definition
    for node in definition.nodes.values():
        for suffix, nodes in node.bodies().items() if isinstance(node, Fanned) else ():
            name = ".".join(part for part in (str(definition.name), node.name, suffix) if part)
            older: Any = definition.migrate_from
            same: Mapping[int, Step] = {source: {} for source in older} if isinstance(older, Mapping) else {}
            meta = {"name": name, "version": definition.version, "migrate_from": same, "migrate": definition.migrate}
            options = type("Meta", (), meta)
            place = {
                "__module__": cls.__module__,
                "__doc__": definition.doc,
                "made_for": f"{definition.where}, node {node.name!r}",
            }
            type(f"{cls.__name__}_{node.name}_{suffix}".rstrip("_"), (Flow,), {"Meta": options, **place, **nodes})


class Flow:
    """Base class of definitions: a finite graph whose nodes are the attributes of the class, in order; the first is the start.

    `class Meta` may set: version (default 1), name (default: the class name in kebab-case), deadline, sla (a Deadline towards somebody
    outside, or several by name), checkpoint, verbose_name, abstract, policy (the name of the policy that runs are bound to), budget (what one
    run may use in all), migrate_from and migrate (how runs of older versions come here), on_release (what a run does when it wakes under
    another release), admission (which new runs are let in), objectives (what is promised about
    its time). Two live versions of a flow are two classes with one name. A flow is found in
    `flows.py` of an installed app.
    """

    definition: ClassVar[Definition]
    made_for: ClassVar[str] = ""

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
            sla=_slas(settings.get("sla")),
            checkpoint=settings.get("checkpoint", Checkpoint()),
            policy=settings.get("policy", ""),
            budget=settings.get("budget"),
            verbose_name=settings.get("verbose_name", ""),
            doc=(cls.__doc__ or "").strip(),
            where=cls.__dict__.get("made_for", "") or f"{cls.__module__}.{cls.__qualname__}",
            unknown_options=tuple(sorted(set(settings) - META_OPTIONS)),
            migrate_from=settings.get("migrate_from", {}),
            migrate=settings.get("migrate", ""),
            on_release=as_policy(settings.get("on_release", RESUME_PINNED)),
            admission=settings.get("admission"),
            made_for=cls.__dict__.get("made_for", ""),
            started_by=settings.get("started_by"),
            objectives=settings.get("objectives"),
        )
        DECLARED.append(cls)
        declare_bodies(cls)


def _slas(given: Any) -> Any:
    """By name; one alone has none. What is neither is left to the checks."""
    if given is None:
        return {}
    return {"": given} if isinstance(given, Deadline) else given


def _options(meta: type | None) -> dict[str, Any]:
    """What `class Meta` says, with what it inherits (`class Meta(Base.Meta)`).

    Being abstract is not inherited, and no way from an older version: it leads to the nodes of that one.
    """
    found: dict[str, Any] = {}
    for base in reversed(meta.__mro__ if meta else ()):
        if base is not object:
            found.pop("migrate_from", None)
            found.update({name: value for name, value in vars(base).items() if not name.startswith("_")})
    found.pop("abstract", None)
    return found

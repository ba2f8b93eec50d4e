"""The node kinds. Each is one class; a later kind is one more file here."""

from flows.core.nodes.activity import Activity, Candidate, Decision, candidate_of
from flows.core.nodes.agent import AgentTurn
from flows.core.nodes.approval import Approval
from flows.core.nodes.ask import Ask
from flows.core.nodes.audience import Escalation, Reviewers
from flows.core.nodes.base import Node
from flows.core.nodes.child import Child
from flows.core.nodes.continued import ContinueAsNew
from flows.core.nodes.fanned import Fanned
from flows.core.nodes.job import Job, Pending
from flows.core.nodes.map import Map
from flows.core.nodes.parallel import Parallel
from flows.core.nodes.pipeline import Pipeline, Step
from flows.core.nodes.plain import COMPLETE, FAILED, Branch, End
from flows.core.nodes.several import On
from flows.core.nodes.sleep import Sleep
from flows.core.nodes.waits import Wait
from flows.core.nodes.windows import Window

__all__ = [
    "COMPLETE",
    "FAILED",
    "Activity",
    "AgentTurn",
    "Approval",
    "Ask",
    "Branch",
    "Candidate",
    "Child",
    "ContinueAsNew",
    "Decision",
    "End",
    "Escalation",
    "Fanned",
    "Job",
    "Map",
    "Node",
    "On",
    "Parallel",
    "Pending",
    "Pipeline",
    "Reviewers",
    "Sleep",
    "Step",
    "Wait",
    "Window",
    "candidate_of",
]

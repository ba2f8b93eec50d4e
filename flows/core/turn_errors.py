"""What ends an agent turn, or is told to its model: branches of the taxonomy in `flows.core.errors`."""

from __future__ import annotations

from flows.core.errors import ActivityError, Route


class ToolFailed(ActivityError):
    """A tool of an agent turn raised: its code and text are an answer to the model, now and whenever the journal is read again.

    Attributes:
        tool: its name. said: its text; data from outside, for a model too.
    """

    code = "TOOL_FAILED"
    route = Route.HUMAN

    def __init__(self, tool: str = "", code: str = "TOOL_FAILED", said: str = "") -> None:
        super().__init__(f"{tool} failed: {code}")
        self.tool, self.said = tool, said
        self.code = code  # type: ignore[misc]  # of what the tool raised, not of the class


class TurnStopped(ActivityError):
    """A stopping rule of an agent turn holds (`Stop`): the way of `stopped=`, else a person, whose resume grants as much again."""

    code = "TURN_STOPPED"
    route = Route.HUMAN


class TurnCalls(TurnStopped):
    """So many calls of the model were made."""

    code = "TURN_CALLS"


class TurnTools(TurnStopped):
    """So many calls of tools were made."""

    code = "TURN_TOOLS"


class TurnTokens(TurnStopped):
    """So many tokens were used."""

    code = "TURN_TOKENS"


class TurnTime(TurnStopped):
    """So long was computed."""

    code = "TURN_TIME"


class TurnRepeats(TurnStopped):
    """The same call was made so often, with the same answer."""

    code = "TURN_REPEATS"


class TurnEntries(TurnStopped):
    """The journal of the visit has as many entries as it may (`MAX_JOURNAL_ENTRIES`)."""

    code = "TURN_ENTRIES"

"""Adapters for agent libraries: an agent that exists becomes the code of an `AgentTurn`. Each needs its extra; none is imported from here."""

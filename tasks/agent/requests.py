"""A request of a library to a model, through the journal: on record as what it means, and for the library as its client raised it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from flows import Paid
from tasks.agent.errors import translate

if TYPE_CHECKING:
    from flows.services.attempt import Attempt


async def request(attempt: Attempt, name: str, ask: Callable[[], Awaitable[Paid]], *, prompt: Any, model: str) -> Any:
    """The answer of the model, recorded before or just now.

    Args:
        ask: makes the request; its answer is without reasoning. prompt: JSON, of which the hash is kept. model: its name.

    Raises:
        What the client raises, so that a library's own fallbacks work; what the journal raises.
    """
    raised: list[Exception] = []

    async def call() -> Paid:
        try:
            return await ask()
        except Exception as error:
            raised.append(error)
            meaning = translate(error)
            if meaning is error:
                raise
            raise meaning from error

    try:
        return await attempt.journal.amodel(name, call, prompt=prompt, model=model)
    except Exception as error:
        if not raised or error.__cause__ is not raised[0]:
            raise
    raise raised[0]

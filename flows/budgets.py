"""What runs may use: limits of intents, more of what is used up, and how the ledgers stand.

from flows import budgets

budgets.limit(run.intent_id, model_calls=100, cost="20.00", by=user, reason="So much for all of it")
budgets.raise_(run, "model_calls", by_amount=20, by=user, reason="The second library is larger")
budgets.of(run)
"""

from flows.services.budgets import BadAmount, Code, NobodyRaises, NotLimited, Raised, limit, of, raise_

__all__ = ["BadAmount", "Code", "NobodyRaises", "NotLimited", "Raised", "limit", "of", "raise_"]

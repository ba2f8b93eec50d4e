"""Policies as versioned records that runs are bound to.

from flows import policies

policies.publish("payments", {"limit": "500.00"}, note="Tighter after the audit", by=user)    # older runs stop at their next wake-up
policies.adopt(run, by=user, reason="Checked against the new limit")    # a user needs outlast_flows.publish_policy, and a reason
policies.current("payments").body
"""

from flows.services.policies import NotBound, NotNewest, Published, UnknownPolicy, adopt, current, publish

__all__ = ["NotBound", "NotNewest", "Published", "UnknownPolicy", "adopt", "current", "publish"]

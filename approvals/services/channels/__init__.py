"""The ways by which people are told: e-mail, webhooks, and what a project adds by the setting `NOTICE_CHANNELS`."""

from approvals.services.channels.base import BadChannel, Channel, Note, configured
from approvals.services.channels.mail import Mail
from approvals.services.channels.webhook import Webhook

__all__ = ["BadChannel", "Channel", "Mail", "Note", "Webhook", "configured"]

"""The verbs of an application, each with an async twin. They delegate to the use cases in `flows.services`."""

from __future__ import annotations

from asgiref.sync import sync_to_async

from flows.services.children.shown import ChildShown, children, retry_failed
from flows.services.control import Answer, Controlled, Superseded, cancel, cancel_intent, pause, resume, supersede
from flows.services.describe import Description, describe
from flows.services.describe import list_workflows as list  # noqa: A004 - the verb's name in the documentation is flows.list
from flows.services.events import Received, Reception, signal
from flows.services.holds import Held, hold, holds, lift
from flows.services.identify import get
from flows.services.migrate import Migration, migrate
from flows.services.preview import Ending, preview
from flows.services.redelivering import redeliver
from flows.services.start import Started, link, start, start_many

astart = sync_to_async(start)
astart_many = sync_to_async(start_many)
asignal = sync_to_async(signal)
acancel = sync_to_async(cancel)
acancel_intent = sync_to_async(cancel_intent)
asupersede = sync_to_async(supersede)
apause = sync_to_async(pause)
aresume = sync_to_async(resume)
adescribe = sync_to_async(describe)
amigrate = sync_to_async(migrate)
ahold = sync_to_async(hold)
alift = sync_to_async(lift)
apreview = sync_to_async(preview)
aredeliver = sync_to_async(redeliver)

__all__ = [
    "Answer",
    "ChildShown",
    "Controlled",
    "Description",
    "Ending",
    "Held",
    "Migration",
    "Received",
    "Reception",
    "Started",
    "Superseded",
    "acancel",
    "acancel_intent",
    "adescribe",
    "ahold",
    "alift",
    "amigrate",
    "apause",
    "apreview",
    "aredeliver",
    "aresume",
    "asignal",
    "astart",
    "astart_many",
    "asupersede",
    "cancel",
    "cancel_intent",
    "children",
    "describe",
    "get",
    "hold",
    "holds",
    "lift",
    "link",
    "list",
    "migrate",
    "pause",
    "preview",
    "redeliver",
    "resume",
    "retry_failed",
    "signal",
    "start",
    "start_many",
    "supersede",
]

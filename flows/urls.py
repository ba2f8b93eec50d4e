"""What comes in over HTTP, and what is asked for. It answers only where the project mounts it:

path("flows/", include("flows.urls"))
"""

from __future__ import annotations

from django.urls import path

from flows.views.metrics import shown
from flows.views.webhooks import hook

app_name = "outlast_flows"

urlpatterns = [
    path("hooks/<slug:name>", hook, name="hook"),
    path("metrics", shown, name="metrics"),
]

"""The JSON API of approvals, for a front end of the project's own. It answers only where the project mounts it:

path("approvals/", include("approvals.urls"))
"""

from __future__ import annotations

from django.urls import path

from approvals.views import delegations, description, requests
from approvals.views.endpoint import endpoint, unknown

app_name = "outlast_approvals_api"

urlpatterns = [
    path("openapi.json", endpoint(get=description.shown), name="openapi"),
    path("requests", endpoint(get=requests.listed), name="requests"),
    path("requests/<str:number>", endpoint(get=requests.shown), name="request"),
    path("requests/<str:number>/decide", endpoint(post=requests.decided), name="decide"),
    path("requests/<str:number>/answer", endpoint(post=requests.answered), name="answer"),
    path("requests/<str:number>/assign", endpoint(post=requests.assigned), name="assign"),
    path("requests/<str:number>/revoke", endpoint(post=requests.revoked), name="revoke"),
    path("delegations", endpoint(get=delegations.listed, post=delegations.made), name="delegations"),
    path("delegations/<str:number>/end", endpoint(post=delegations.ended), name="end"),
    path("", endpoint(get=unknown, post=unknown)),
    path("<path:rest>", endpoint(get=unknown, post=unknown)),
]

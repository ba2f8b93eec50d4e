"""A project that mounts the API of approvals beside the admin."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

urlpatterns = [path("admin/", admin.site.urls), path("approvals/", include("approvals.urls"))]

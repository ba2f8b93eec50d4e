"""A list takes only what its filters offer: whatever else stands in the address finds nothing, and breaks nothing."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from tests.factories import Line
from tests.support.approving import PASSWORD, World

pytestmark = pytest.mark.req("Q3")

FILTERS = [
    (model, getattr(one, "parameter_name", ""))
    for model, shown in admin.site._registry.items()
    if model._meta.app_label.startswith("outlast")
    for one in shown.list_filter
]


@pytest.fixture
def root(world: World) -> Client:
    get_user_model().objects.create_superuser("root", password=PASSWORD)
    Line.start({}, key="shown")
    world.worker.run()
    client = Client()
    assert client.login(username="root", password=PASSWORD)
    return client


def test_there_are_filters() -> None:
    assert len(FILTERS) >= 12
    assert all(name for _, name in FILTERS)


@pytest.mark.parametrize("value", ["%00", "%ED%A0%80", "nothing", "%C3%A9" * 500, ""], ids=lambda value: value[:12])
@pytest.mark.parametrize(("model", "name"), FILTERS, ids=lambda part: part if isinstance(part, str) else part.__name__)
def test_what_is_not_offered_finds_nothing(root: Client, model: Any, name: str, value: str) -> None:
    url = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    page, whole = root.get(f"{url}?{name}={value}"), root.get(url)
    assert page.status_code == 200
    shown = page.context["cl"]
    assert shown.queryset.count() == (0 if value else whole.context["cl"].queryset.count())
    (used,) = [one for one in shown.filter_specs if one.parameter_name == name]
    assert any(one["selected"] for one in used.choices(shown)) == (not value)


def test_what_is_offered_filters(root: Client) -> None:
    url = reverse("admin:outlast_flows_workflow_changelist")
    assert root.get(f"{url}?status=complete").context["cl"].queryset.count() == 1
    assert root.get(f"{url}?status=failed").context["cl"].queryset.count() == 0
    assert root.get(f"{url}?flow=t-line").context["cl"].queryset.count() == 1

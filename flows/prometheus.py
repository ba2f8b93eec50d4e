"""For a process that has a registry of prometheus_client already (extra `outlast[prometheus]`): the same metrics as a collector.

from prometheus_client import REGISTRY
from flows.prometheus import Collector

REGISTRY.register(Collector())
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector as _Collector

from flows.core.metrics import METRICS
from flows.services import exposing


class Collector(_Collector):
    """The metrics of one database alias (None: that of the settings). Nothing is read before it is asked."""

    def __init__(self, using: str | None = None) -> None:
        self._using = using

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """The names, without a look at the database."""
        return iter(self._families().values())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Every metric with its samples, not older than ten seconds."""
        families = self._families()
        for one in exposing.samples(self._using):
            families[one.metric].add_metric(list(one.labels), one.value)
        yield from families.values()

    @staticmethod
    def _families() -> dict[str, GaugeMetricFamily]:
        return {one.name: GaugeMetricFamily(one.name, one.help, labels=list(one.labels)) for one in METRICS.values()}

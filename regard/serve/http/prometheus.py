"""Metrics of a server for Prometheus, in a registry of its own.

https://prometheus.github.io/client_python
"""

from collections.abc import Iterator
from dataclasses import fields

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Info,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from regard import __version__
from regard.serve.served_models import ServedModels
from regard.serve.worker import WorkerCounts

TEXT_FORMAT = CONTENT_TYPE_LATEST

WORKER_METRICS: dict[str, tuple[type[CounterMetricFamily | GaugeMetricFamily], str]] = {
    "texts": (CounterMetricFamily, "Texts that were predicted"),
    "batches": (CounterMetricFamily, "Batches that were predicted"),
    "failures": (CounterMetricFamily, "Texts that the model could not read"),
    "calls": (CounterMetricFamily, "Traces, attention steps and completions"),
    "abandoned": (
        CounterMetricFamily,
        "Requests whose clients disconnected before the model finished",
    ),
    "seconds": (CounterMetricFamily, "Time that the model was in use"),
    "waiting": (GaugeMetricFamily, "Texts that wait for the model"),
    "largest": (GaugeMetricFamily, "Texts in the largest batch so far"),
}
"""The metric of each field of `WorkerCounts`."""


class WorkerCollector(Collector):
    """The counts of each model's worker, read when Prometheus asks for them."""

    def __init__(self, models: ServedModels) -> None:
        self.models = models

    def collect(self) -> Iterator[Metric]:
        """One metric per count, with one sample per model."""
        for field in fields(WorkerCounts):
            family_type, description = WORKER_METRICS[field.name]
            family = family_type(f"regard_model_{field.name}", description, labels=["model"])
            for model in self.models:
                family.add_metric([model.id], getattr(model.worker.counts, field.name))
            yield family


class ServerMetrics:
    """Requests by route and status, the time they took, and what the models' workers did."""

    running: int = 0
    """Requests that are being handled."""
    large_bodies: int = 0
    """Large bodies that are being received."""
    event_streams: int = 0
    """Event streams that are open."""

    def __init__(self, models: ServedModels) -> None:
        registry = self.registry = CollectorRegistry()
        Info("regard", "Version", registry=registry).info({"version": __version__})
        self._requests = Counter(
            "regard_requests",
            "Requests that were answered",
            ["method", "route", "status"],
            registry=registry,
        )
        self._seconds = Counter(
            "regard_request_seconds",
            "Time that requests took",
            ["method", "route"],
            registry=registry,
        )
        self.errors = Counter(
            "regard_errors", "Requests that ended in an internal error", registry=registry
        )
        running = Gauge(
            "regard_requests_running", "Requests that are being handled", registry=registry
        )
        running.set_function(lambda: self.running)
        event_streams = Gauge(
            "regard_event_streams", "Event streams that are open", registry=registry
        )
        event_streams.set_function(lambda: self.event_streams)
        registry.register(WorkerCollector(models))
        ProcessCollector(registry=registry)

    def count_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count one request that was answered."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).inc(seconds)

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self.registry)

"""Counts and durations of requests, in Prometheus' text format."""

from __future__ import annotations

import os
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # where several workers share their counts; read when the library is imported
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE")


class RequestMetrics:
    """Requests by route, method and status, failures, and a histogram of their durations."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "ranksieve_requests", "Requests", ("route", "method", "status"), registry=self._registry
        )
        self._errors = Counter(
            "ranksieve_errors", "Requests that the service failed to answer (5xx)", ("route",), registry=self._registry
        )
        self._seconds = Histogram(
            "ranksieve_request_duration_seconds",
            "Durations of requests",
            ("route",),
            buckets=BUCKETS,
            registry=self._registry,
        )

    def add(self, scope: Any, status: int, seconds: float) -> None:
        """Count a request; paths without a route share one label, so that requests cannot fill the memory."""
        route = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in METHODS else "other"
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        if status >= 500:
            self._errors.labels(route).inc()

    def text(self) -> bytes:
        """All counts; of all workers where there are several."""
        if FOLDER not in os.environ:
            return generate_latest(self._registry)
        shared = CollectorRegistry()
        MultiProcessCollector(shared)
        return generate_latest(shared)

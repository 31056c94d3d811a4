"""Who gets the metrics without scraping them: for `metric.reporters`; docs/metrics.md."""

from __future__ import annotations

from sinks.notify.push_gateway import PushGatewayReporter
from sinks.notify.reporters import MetricsReporter

__all__ = ["MetricsReporter", "PushGatewayReporter"]

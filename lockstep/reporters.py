"""Reporters, which get the metrics without scraping: for `metric.reporters`; see docs/plugins.md."""

from __future__ import annotations

from sinks.notify.metrics_reporting import MetricsReporter
from sinks.notify.push_gateway import PushGatewayReporter

__all__ = ["MetricsReporter", "PushGatewayReporter"]

"""A small web server that tells how a deployment is: Prometheus text, and the two probes of an orchestrator."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final, cast

from jmsapi.cli._terminal import printable
from jmsapi.listener import EndpointState

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from jmsapi.listener import Deployment, DeploymentHealth

__all__ = ["serving"]

_GAUGES: Final = {
    "consumers": "Consumers of the endpoint",
    "busy": "Consumers that run the callback",
    "waiting": "Messages that wait here for a consumer",
    "awaiting_redelivery": "Messages that wait for their redelivery delay",
}
_COUNTERS: Final = {
    "delivered": "How often the callback has returned or raised",
    "failed": "How often that led to a rollback or a redelivery",
    "given_up": "Messages that were forwarded, deleted or rejected",
}
_LONGEST_REQUEST_S: Final = 10


class _Collector:
    """The numbers of a deployment, read when they are asked for."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment

    def describe(self) -> list[Metric]:
        """Return nothing: what there is must not be asked for before the deployment runs."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Return the numbers of all endpoints."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        endpoints = self._deployment.health.endpoints
        state = GaugeMetricFamily("jmsapi_endpoint_state", "1 for the state of the endpoint", labels=["endpoint", "state"])
        healthy = GaugeMetricFamily("jmsapi_endpoint_healthy", "1 while the endpoint takes messages", labels=["endpoint"])
        for one in endpoints:
            healthy.add_metric([one.name], one.healthy)
            for which in EndpointState:
                state.add_metric([one.name, which.value], one.state is which)
        yield state
        yield healthy
        for field, text in _GAUGES.items():
            gauge = GaugeMetricFamily(f"jmsapi_endpoint_{field}", text, labels=["endpoint"])
            for one in endpoints:
                gauge.add_metric([one.name], getattr(one, field))
            yield gauge
        for field, text in _COUNTERS.items():
            counter = CounterMetricFamily(f"jmsapi_endpoint_{field}", text, labels=["endpoint"])
            for one in endpoints:
                counter.add_metric([one.name], getattr(one, field))
            yield counter


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, host: str, port: int, deployment: Deployment) -> None:
        from prometheus_client import GCCollector, PlatformCollector, ProcessCollector
        from prometheus_client.registry import CollectorRegistry

        self.deployment = deployment
        self.registry = CollectorRegistry(auto_describe=False)
        for add in (ProcessCollector, PlatformCollector, GCCollector):
            add(registry=self.registry)
        self.registry.register(_Collector(deployment))
        super().__init__((host, port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Leave a client that goes amid its answer to itself."""


class _Handler(BaseHTTPRequestHandler):
    timeout = _LONGEST_REQUEST_S

    def do_GET(self) -> None:
        """Answer a request."""
        path, server = self.path.partition("?")[0], cast("_Server", self.server)
        if path == "/metrics":
            from prometheus_client.exposition import choose_encoder

            encode, kind = choose_encoder(self.headers.get("Accept", ""))
            self._answer(200, kind, encode(server.registry))
            return
        verdict = _verdict(path, server.deployment.health)
        if verdict is None:
            self._answer(404, "text/plain; charset=utf-8", b"/metrics, /health/live, /health/ready\n")
            return
        well, lines = verdict
        text = "\n".join(lines or ("ok",)) + "\n"
        self._answer(200 if well else 503, "text/plain; charset=utf-8", printable(text).encode())

    do_HEAD = do_GET

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep probes out of the log."""


def _verdict(path: str, health: DeploymentHealth) -> tuple[bool, tuple[str, ...]] | None:
    """Return whether all is well by one of the probes, and why not."""
    if path == "/health/live":
        failed = tuple(f"{one.name}: {one.reason}" for one in health.endpoints if one.state is EndpointState.FAILED)
        return not failed, failed
    if path == "/health/ready":
        return health.healthy, health.reasons
    return None


@contextmanager
def serving(deployment: Deployment, host: str, port: int) -> Generator[int]:
    """Serve in a thread of its own while a block runs; gives the port, which is another one where 0 was asked for.

    Raises:
        OSError: The address is taken, or is none of this machine.
    """
    server = _Server(host, port, deployment)
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="jmsapi-health-server", daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

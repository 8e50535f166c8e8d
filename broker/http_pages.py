"""The pages on ``http.listen``: ``/metrics`` for Prometheus, ``/healthz`` and ``/readyz`` for supervisors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import TYPE_CHECKING

from walrusmq.broker.http import HttpRequest, HttpResponse, Page

if TYPE_CHECKING:
    from walrusmq.metrics import Metrics
    from walrusmq.metrics.exporter import Exporter

EXPORTER_MODULE = "walrusmq.metrics.exporter"


def node_pages(metrics: Metrics, unready: Callable[[], list[str]]) -> dict[str, Page]:
    """The pages of one node, by path. ``unready`` says why clients can't be served, a line each; none: they can."""
    return {"/metrics": MetricsPage(metrics), "/healthz": health, "/readyz": Readiness(unready)}


class MetricsPage:
    """A scrape. The first one loads the exporter in a thread, since its imports would hold the loop for tens of ms."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._exporter: Exporter | None = None

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        exporter = self._exporter
        if exporter is None:
            await import_in_thread(EXPORTER_MODULE)
            from walrusmq.metrics.exporter import Exporter

            exporter = self._exporter = Exporter(self._metrics)
        body, content_type = exporter.render(request.headers.get("accept", ""))
        return HttpResponse(200, body, content_type)


async def health(request: HttpRequest) -> HttpResponse:
    """200 whenever the event loop runs: whoever gets no answer here may restart the node."""
    return HttpResponse(200, b"ok\n")


class Readiness:
    """200 when a client would be served, else 503 with the reasons."""

    def __init__(self, unready: Callable[[], list[str]]) -> None:
        self._unready = unready

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        reasons = self._unready()
        if reasons:
            return HttpResponse(503, "".join(f"{reason}\n" for reason in reasons).encode())
        return HttpResponse(200, b"ready\n")


async def import_in_thread(module: str) -> None:
    """Import ``module`` without holding the loop, and leave no thread behind."""
    with ThreadPoolExecutor(1, thread_name_prefix="walrusmq-import") as executor:
        await asyncio.get_running_loop().run_in_executor(executor, import_module, module)

"""The same request again and again over plain sockets, one in flight on each of some connections.

No client library stands between: what is timed is the broker and as little Python as an asyncio protocol needs.
Where ``client_busy`` nears 1, this driver was the limit, not the broker.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from benchmarks.process import Meter
from benchmarks.target import Target
from benchmarks.throughput import Figure

CONNECT_TIMEOUT_S = 10.0
SIZE_BYTES = 4


@dataclass(frozen=True, slots=True)
class Request:
    """A whole frame, and where its answer's frame has the error code (an int16, 0 is success)."""

    frame: bytes
    error_at: int


class OneInFlight(asyncio.Protocol):
    """Sends a request, and again after each answer, noting how long each took."""

    def __init__(self, request: Request, latencies_ns: list[int]) -> None:
        self._request = request
        self._latencies_ns = latencies_ns
        self._received = bytearray()
        self._sent_ns = 0
        self._transport: asyncio.WriteTransport
        self._is_stopping = False
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def begin(self) -> None:
        """Send the first request."""
        self._sent_ns = time.perf_counter_ns()
        self._transport.write(self._request.frame)

    def stop(self) -> None:
        """Finish after the answer that is awaited."""
        self._is_stopping = True

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        received = self._received
        received += data
        if len(received) < SIZE_BYTES + int.from_bytes(received[:SIZE_BYTES], "big") or len(received) < SIZE_BYTES:
            return
        self._latencies_ns.append(time.perf_counter_ns() - self._sent_ns)
        at = self._request.error_at
        error = int.from_bytes(received[at : at + 2], "big", signed=True)
        received.clear()
        if error:
            self._finish(RuntimeError(f"a request was answered with error {error}"))
        elif self._is_stopping:
            self._finish(None)
        else:
            self.begin()

    def connection_lost(self, error: Exception | None) -> None:
        self._finish(error or ConnectionError("the broker closed the connection"))

    def _finish(self, error: Exception | None) -> None:
        if self.finished.done():
            return
        if error is None:
            self.finished.set_result(None)
        else:
            self.finished.set_exception(error)


def repeat(target: Target, requests: list[Request], connections: int, seconds: float) -> Figure:
    """Requests per second and their latency; the connections take ``requests`` in turn."""
    return asyncio.run(_repeat(target, requests, connections, seconds))


async def _repeat(target: Target, requests: list[Request], connections: int, seconds: float) -> Figure:
    loop = asyncio.get_running_loop()
    host, port = target.bootstrap.rsplit(":", 1)
    latencies_ns: list[int] = []
    clients = [OneInFlight(requests[number % len(requests)], latencies_ns) for number in range(connections)]
    for client in clients:
        connecting = loop.create_connection(lambda client=client: client, host, int(port))  # type: ignore[misc]
        await asyncio.wait_for(connecting, CONNECT_TIMEOUT_S)
    meter = Meter(target.pid)
    meter.start()
    for client in clients:
        client.begin()
        loop.call_later(seconds, client.stop)
    await asyncio.gather(*(client.finished for client in clients))
    usage = meter.stop()
    for client in clients:
        client.close()
    latencies_ns.sort()
    count = len(latencies_ns)
    return {
        "requests_per_s": count / usage.wall_s,
        "p50_us": latencies_ns[count // 2] / 1000,
        "p99_us": latencies_ns[count * 99 // 100] / 1000,
        "broker_cpu_us_per_request": None if usage.broker_s is None else usage.broker_s / count * 1e6,
        "client_busy": usage.client_s / usage.wall_s,
    }

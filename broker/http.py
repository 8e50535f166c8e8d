"""A small HTTP/1.1 server for the few pages that a node shows: GET and HEAD, no request bodies, everything bounded.

Written against RFC 9110 and 9112. What it doesn't understand it refuses, and then closes: nothing is guessed, so no
byte is ever taken for a request that a proxy in front took for something else.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

logger = logging.getLogger("walrusmq.http")

#: A request's line and headers. Prometheus sends some 300 bytes; proxies add a few hundred.
MAX_HEAD_BYTES = 8 << 10
#: Open connections. Scrapers and probes need a handful; past this a new one is told so and closed.
MAX_CONNECTIONS = 64
#: From the connect to the end of the first request's head.
HEAD_TIMEOUT_S = 10.0
#: From an answer to the end of the next request's head: longer than the usual scrape interval of 60 s.
IDLE_TIMEOUT_S = 90.0
#: How long a refused client may still send before it is cut off: closing at once could take the answer away from it.
DRAIN_TIMEOUT_S = 1.0

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_REQUEST_LINE = re.compile(rb"(%s) ([\x21-\x7e]+) HTTP/(\d)\.(\d)" % _TOKEN)
_HEADER_LINE = re.compile(rb"(%s):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*" % _TOKEN)
_ABSOLUTE_TARGET = re.compile(r"(?i)https?://[^/?]*")
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}
_METHODS = ("GET", "HEAD")


@dataclass(slots=True)
class HttpRequest:
    """A request's head. Header names are in lower case; ``path`` has no query."""

    method: str
    path: str
    headers: Mapping[str, str]
    keeps_alive: bool


@dataclass(slots=True)
class HttpResponse:
    """What a page answers."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)


class BadHttpRequest(Exception):
    """What came is no request that this server understands; ``status`` is the answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


Page = Callable[[HttpRequest], Awaitable[HttpResponse]]


def parse_head(head: bytes) -> HttpRequest:
    """The request whose line and headers are ``head``, without the empty line at its end. Raises ``BadHttpRequest``."""
    line, *header_lines = head.split(b"\r\n")
    parts = _REQUEST_LINE.fullmatch(line)
    if parts is None:
        raise BadHttpRequest(400, "not an HTTP request")
    method, target, major, minor = (part.decode("ascii") for part in parts.groups())
    if major != "1":
        raise BadHttpRequest(505, "this server speaks HTTP/1.1")
    headers: dict[str, str] = {}
    for header_line in header_lines:
        header = _HEADER_LINE.fullmatch(header_line)
        if header is None:
            raise BadHttpRequest(400, "malformed header line")
        name, value = header[1].decode("ascii").lower(), header[2].decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    if minor != "0" and "host" not in headers:
        raise BadHttpRequest(400, "no Host header")
    path = _ABSOLUTE_TARGET.sub("", target, count=1).partition("?")[0] or "/"
    return HttpRequest(method, path, headers, _keeps_alive(minor, headers))


def _keeps_alive(minor: str, headers: Mapping[str, str]) -> bool:
    """Whether another request may follow: what has a body may not, since no body is read."""
    if "transfer-encoding" in headers or headers.get("content-length", "0") != "0":
        return False
    options = {option.strip().lower() for option in headers.get("connection", "").split(",")}
    return "keep-alive" in options if minor == "0" else "close" not in options


def encode_response(response: HttpResponse, *, with_body: bool, keeps_alive: bool) -> bytes:
    """The response's bytes; ``with_body`` is false for an answer to HEAD, which has the headers only."""
    lines = [
        f"HTTP/1.1 {response.status} {_REASONS[response.status]}",
        f"Date: {http_date(time.time())}",
        f"Content-Type: {response.content_type}",
        f"Content-Length: {len(response.body)}",
        "Cache-Control: no-store",
        f"Connection: {'keep-alive' if keeps_alive else 'close'}",
        *(f"{name}: {value}" for name, value in response.headers.items()),
    ]
    head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
    return head + response.body if with_body else head


def http_date(seconds: float) -> str:
    """A time in seconds since 1970 in HTTP's form, whatever the process's locale is."""
    moment = time.gmtime(seconds)
    return (
        f"{_WEEKDAYS[moment.tm_wday]}, {moment.tm_mday:02} {_MONTHS[moment.tm_mon - 1]} {moment.tm_year:04}"
        f" {moment.tm_hour:02}:{moment.tm_min:02}:{moment.tm_sec:02} GMT"
    )


class HttpConnection(asyncio.Protocol):
    """One connection: requests are answered one after the other; while one is, at most one head's bytes are kept."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._peer = ""
        self._received = bytearray()
        self._is_answering = False
        self._is_draining = False
        self._is_write_paused = False
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._peer = "{}:{}".format(*(transport.get_extra_info("peername") or ("?", 0))[:2])
        self._server.connections.add(self)
        if self._server.is_stopping:
            transport.abort()
            return
        self._set_deadline(HEAD_TIMEOUT_S)
        if len(self._server.connections) > MAX_CONNECTIONS:
            self._refuse(BadHttpRequest(503, f"more than {MAX_CONNECTIONS} connections"))

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._cancel_deadline()
        self._server.forget(self)

    def data_received(self, data: bytes) -> None:
        if self._is_draining:
            return
        self._received += data
        if len(self._received) > MAX_HEAD_BYTES and self._transport is not None:
            self._transport.pause_reading()
        self._go_on()

    def eof_received(self) -> bool:
        """A client that has said all may still read: its last answer goes out before the close."""
        if not self._is_answering:
            return False
        self._is_draining = True
        return True

    def pause_writing(self) -> None:
        self._is_write_paused = True

    def resume_writing(self) -> None:
        self._is_write_paused = False
        self._go_on()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def _go_on(self) -> None:
        """Begin the next request if it is all there and nothing stands before it."""
        if self._is_answering or self._is_draining or self._is_write_paused or self._transport is None:
            return
        try:
            request = self._next_request()
        except BadHttpRequest as refusal:
            self._refuse(refusal)
            return
        if request is None:
            return
        self._is_answering = True
        self._cancel_deadline()
        self._server.spawn(self._answer(request))

    def _next_request(self) -> HttpRequest | None:
        received = self._received
        while received.startswith(b"\r\n"):  # RFC 9112, 2.2: empty lines before a request are ignored
            del received[:2]
        if received and not received[:1].isalpha():
            raise BadHttpRequest(400, "not an HTTP request")
        end = received.find(b"\r\n\r\n", 0, MAX_HEAD_BYTES)
        if end < 0:
            if len(received) >= MAX_HEAD_BYTES:
                raise BadHttpRequest(431, f"a request's head may have {MAX_HEAD_BYTES} bytes")
            return None
        head = bytes(received[:end])
        del received[: end + 4]
        return parse_head(head)

    async def _answer(self, request: HttpRequest) -> None:
        response = await self._server.respond(request)
        self._is_answering = False
        if self._transport is None:
            return
        keeps_alive = request.keeps_alive and not self._is_draining
        self._transport.write(encode_response(response, with_body=request.method != "HEAD", keeps_alive=keeps_alive))
        if not keeps_alive:
            self._finish()
            return
        self._set_deadline(IDLE_TIMEOUT_S)
        self._transport.resume_reading()
        self._go_on()

    def _refuse(self, refusal: BadHttpRequest) -> None:
        logger.info("refused what %s sent to the HTTP port: %s", self._peer, refusal)
        assert self._transport is not None
        response = HttpResponse(refusal.status, f"{refusal}\n".encode())
        self._transport.write(encode_response(response, with_body=True, keeps_alive=False))
        self._finish()

    def _finish(self) -> None:
        """End our half; the client has a moment to end its own."""
        assert self._transport is not None
        self._received.clear()
        if self._is_draining:  # the client has ended its half already
            self._transport.close()
            return
        self._is_draining = True
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._transport.resume_reading()
        self._set_deadline(DRAIN_TIMEOUT_S)

    def _set_deadline(self, seconds: float) -> None:
        self._cancel_deadline()
        self._deadline = self._server.loop.call_later(seconds, self.abort)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()


class HttpServer:
    """Serves ``pages`` by path on one address, in the running event loop."""

    def __init__(self, address: tuple[str, int], pages: Mapping[str, Page]) -> None:
        """``address`` is host and port; port 0 takes a free one."""
        self._host, self._port = address
        self._pages = pages
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_empty = asyncio.Event()
        self.loop: asyncio.AbstractEventLoop
        self.connections: set[HttpConnection] = set()
        self.is_stopping = False

    async def start(self) -> None:
        """Listen. Raises OSError if the address can't be had; ``stop`` clears up then too, and after a cancellation."""
        self.loop = asyncio.get_running_loop()
        # one that starts serving at once suspends before it is handed out, and a cancelled caller could never close it
        self._server = await self.loop.create_server(
            lambda: HttpConnection(self), self._host, self._port, start_serving=False
        )
        await self._server.start_serving()
        self._host, self._port = self._server.sockets[0].getsockname()[:2]

    async def stop(self) -> None:
        """Listen no more, drop all connections, and return when nothing of the server is left."""
        if self._server is None:
            return
        self.is_stopping = True
        self._server.close()
        for connection in tuple(self.connections):
            connection.abort()
        if self._tasks:
            await asyncio.wait(self._tasks)
        while self.connections:
            self._is_empty.clear()
            await self._is_empty.wait()
        await self._server.wait_closed()
        self._server = None

    @property
    def address(self) -> tuple[str, int]:
        """Host and port; after ``start`` the port that was really taken."""
        return self._host, self._port

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` for a connection; ``stop`` waits for it."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def forget(self, connection: HttpConnection) -> None:
        """A connection is gone."""
        self.connections.discard(connection)
        if not self.connections:
            self._is_empty.set()

    async def respond(self, request: HttpRequest) -> HttpResponse:
        """The page that is asked for, or the reason why not."""
        page = self._pages.get(request.path)
        if page is None:
            listing = "\n".join(sorted(self._pages))
            return HttpResponse(404, f"no such page; there are:\n{listing}\n".encode())
        if request.method not in _METHODS:
            return HttpResponse(405, b"GET and HEAD only\n", headers={"Allow": ", ".join(_METHODS)})
        try:
            return await page(request)
        except Exception:
            logger.exception("the page %s failed", request.path)
            return HttpResponse(500, b"the page failed; the node's log says why\n")

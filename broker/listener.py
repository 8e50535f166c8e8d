"""The client port: accepts connections within the limits, drops idle ones, and closes all in order at a stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections import Counter, deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from walrusmq.broker.buffers import FIRST_BUFFER_BYTES, BufferPool
from walrusmq.broker.connection import Connection
from walrusmq.broker.tasks import end_task

if TYPE_CHECKING:
    from walrusmq.broker.clock import Clock
    from walrusmq.broker.dispatcher import Dispatcher
    from walrusmq.metrics.counters import Metrics

logger = logging.getLogger("walrusmq.listener")

#: One receive buffer serves all connections: what it holds is handled before the next is read.
RECEIVE_BUFFER_BYTES = 1 << 20
#: What is taken from one connection at a time while max.buffered.bytes is exceeded: it may have to be kept.
SHORT_RECEIVE_BYTES = 1 << 14
#: While memory is short, a request that has been in the making for so long gives way.
SHORT_MEMORY_PATIENCE_S = 5.0
#: Wanted for each socket, where the kernel allows it: fewer wake-ups for large batches.
SOCKET_BUFFER_BYTES = 1 << 22
#: Turns of the loop in which an aborted connection must have told that it is gone: it takes one or two.
ABORT_TURNS = 10
#: Connections that the kernel may hold before they are accepted.
ACCEPT_BACKLOG = 1024
#: How often idle connections are looked for.
IDLE_CHECK_S = 1.0
#: A connection whose request comes so long after the last one is served by itself; others may have come meanwhile.
ALONE_FOR_S = 50e-6
#: At the most one line a second about refused connections: a flood mustn't become a flood of lines.
REFUSAL_LOG_S = 1.0


@dataclass(slots=True, frozen=True)
class ConnectionLimits:
    """What one client, one address and all together may take; each is a setting."""

    connections: int
    connections_per_address: int
    idle_ms: int
    unanswered_requests: int
    unanswered_bytes: int
    buffered_bytes: int


class Listener:
    """One listening address: ``bind``, then ``accept``; ``stop`` closes it and every connection."""

    def __init__(
        self,
        name: str,
        dispatcher: Dispatcher,
        limits: ConnectionLimits,
        max_frame_bytes: int,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self.name = name
        self.limits = limits
        self.max_frame_bytes = max_frame_bytes
        self.first_buffer_bytes = FIRST_BUFFER_BYTES
        self.clock = clock
        self.metrics = metrics
        #: The buffer that all connections share; when memory is short a small part of it, since what comes may stay.
        self.receive_view = memoryview(bytearray(RECEIVE_BUFFER_BYTES))
        self._views = (self.receive_view, self.receive_view[:SHORT_RECEIVE_BYTES])
        self.backlog_bytes = 0
        self.connections: set[Connection] = set()
        self.loop: asyncio.AbstractEventLoop
        self._dispatcher = dispatcher
        self._pool = BufferPool()
        self._by_address: Counter[str] = Counter()
        self._socket: socket.socket | None = None
        self._server: asyncio.Server | None = None
        self._is_empty = asyncio.Event()
        self._idle_task: asyncio.Task[None] | None = None
        self._sending: list[Connection] = []
        self._is_alone = True
        self._last_alone_at = float("-inf")
        self._waiting_for_memory: deque[Connection] = deque()
        self._refusals_since_log = 0
        self._last_refusal_log_s = float("-inf")

    def bind(self, host: str, port: int) -> tuple[str, int]:
        """Take the address; returns it with its real port. Raises OSError if it isn't to be had."""
        self._socket = _bind(host, port)
        address = self._socket.getsockname()
        return address[0], address[1]

    async def accept(self) -> None:
        """Begin to take connections at the bound address."""
        assert self._socket is not None
        self.loop = asyncio.get_running_loop()
        # one that starts serving at once suspends before it is handed out, and a cancelled caller could never close it
        self._server = await self.loop.create_server(
            lambda: Connection(self, self._dispatcher, self._pool),
            sock=self._socket,
            backlog=ACCEPT_BACKLOG,
            start_serving=False,
        )
        await self._server.start_serving()
        self._idle_task = asyncio.create_task(self._close_idle_connections(), name="idle connections")

    def stop_accepting(self) -> None:
        """Take no further connection; those that are there go on."""
        if self._server is not None:
            self._server.close()
        elif self._socket is not None:
            self._socket.close()

    async def stop(self, grace_s: float) -> None:
        """Close every connection, waiting up to ``grace_s`` for answers to leave."""
        self.stop_accepting()
        await end_task(self._idle_task)
        for connection in list(self.connections):
            connection.close_in_turn(None)
        self._is_empty.clear()
        if self.connections:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._is_empty.wait(), grace_s)
        for connection in list(self.connections):
            connection.abort()
        for _ in range(ABORT_TURNS):
            if not self.connections:
                return
            await asyncio.sleep(0)

    # --- called by connections

    def opened(self, connection: Connection) -> None:
        """Admit a new connection, or drop it at once if it is one too many."""
        self.connections.add(connection)
        self._by_address[connection.peer_host] += 1
        self.metrics.connections_opened += 1
        if len(self.connections) > self.limits.connections:
            self._turn_away(connection, "max.connections", self.limits.connections)
        elif self._by_address[connection.peer_host] > self.limits.connections_per_address:
            self._turn_away(connection, "max.connections.per.ip", self.limits.connections_per_address)

    def closed(self, connection: Connection) -> None:
        """A connection is gone, whoever closed it."""
        self.connections.discard(connection)
        self._by_address[connection.peer_host] -= 1
        if not self._by_address[connection.peer_host]:
            del self._by_address[connection.peer_host]
        if not self.connections:
            self._is_empty.set()
        self._give_memory()

    def send_soon(self, connection: Connection) -> None:
        """Have the answers of a connection sent: now if it is the only one, else with those of all others of this turn.

        A client that is woken for each of its answers costs the broker more than all else that it does for them.
        """
        requested_at = connection.last_request_at
        if self._is_alone and requested_at - self._last_alone_at > ALONE_FOR_S:
            self._last_alone_at = requested_at
            connection.flush()
            return
        sending = self._sending
        if not sending:
            self.loop.call_soon(self._send_all)
        sending.append(connection)

    def _send_all(self) -> None:
        sending, self._sending = self._sending, []
        self._is_alone = len(sending) == 1
        for connection in sending:
            try:
                connection.flush()
            except Exception:
                logger.exception("sending to %s failed", connection.peer)
                connection.abort()

    def memory_changed(self) -> None:
        """More or less is kept for connections than before."""
        self.receive_view = self._views[self.memory_is_short()]

    def memory_is_short(self) -> bool:
        """Whether half-received requests already take all that they may."""
        return self._pool.lent_bytes + self.backlog_bytes > self.limits.buffered_bytes

    @property
    def buffered_bytes(self) -> int:
        """Bytes of requests that have come but could not be handled yet, over all connections."""
        return self._pool.lent_bytes + self.backlog_bytes

    def wait_for_memory(self, connection: Connection) -> None:
        """``connection`` has stopped reading until others have given up their buffers."""
        self._waiting_for_memory.append(connection)

    # --- inside

    def _turn_away(self, connection: Connection, setting: str, limit: int) -> None:
        self.metrics.count_refusal(setting)
        self._refusals_since_log += 1
        now_s = self.clock.monotonic()
        if now_s - self._last_refusal_log_s >= REFUSAL_LOG_S:
            logger.warning(
                "refused %d connection(s), the last from %s: %s is %d",
                self._refusals_since_log,
                connection.peer,
                setting,
                limit,
            )
            self._refusals_since_log = 0
            self._last_refusal_log_s = now_s
        connection.abort()

    def _give_memory(self) -> None:
        self.memory_changed()
        while self._waiting_for_memory and not self.memory_is_short():
            self._waiting_for_memory.popleft().resume_after_memory()

    async def _close_idle_connections(self) -> None:
        idle_s = self.limits.idle_ms / 1000
        while True:
            await asyncio.sleep(min(IDLE_CHECK_S, idle_s / 4))
            now_s = self.clock.monotonic()
            for connection in list(self.connections):
                if now_s - connection.last_request_at > idle_s:
                    self._close_idle(connection)
            if self.memory_is_short():
                self._drop_slowest(now_s)
            self._give_memory()

    def _drop_slowest(self, now_s: float) -> None:
        """Memory is short: those that have been sending one request for the longest give theirs up."""
        for connection in sorted(self.connections, key=lambda each: each.last_request_at):
            if not self.memory_is_short() or now_s - connection.last_request_at < SHORT_MEMORY_PATIENCE_S:
                return
            if connection.is_mid_frame:
                logger.warning(
                    "closed the connection from %s: max.buffered.bytes (%d) is used up and its request didn't get on",
                    connection.peer,
                    self.limits.buffered_bytes,
                )
                connection.abort()

    def _close_idle(self, connection: Connection) -> None:
        if connection.is_sending:
            logger.warning("closed the connection from %s: it doesn't read its answers", connection.peer)
        elif connection.has_unanswered:
            return
        elif connection.is_mid_frame:
            logger.warning(
                "closed the connection from %s: a request was begun and not finished in %d ms",
                connection.peer,
                self.limits.idle_ms,
            )
        connection.abort()


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol must be said: asyncio sets TCP_NODELAY only on sockets that name it, and accepted ones inherit it.
    server_socket = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        server_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if _kernel_allows(SOCKET_BUFFER_BYTES):
            server_socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BUFFER_BYTES)
            server_socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER_BYTES)
        server_socket.bind((host, port))
        server_socket.setblocking(False)
    except BaseException:
        server_socket.close()
        raise
    return server_socket


def _kernel_allows(size_bytes: int) -> bool:
    """Whether fixed socket buffers of this size are to be had: smaller ones do worse than the kernel's own tuning."""
    try:
        return all(int(Path(f"/proc/sys/net/core/{which}mem_max").read_text()) >= size_bytes for which in ("r", "w"))
    except (OSError, ValueError):
        return False

"""One client's connection: frames in, answers out in the order of their requests, everything bounded.

Frames are taken where they lie in the receive buffer; only one that arrives in pieces gets a buffer of its own.
Reading stops while answers can't leave or too much is unanswered: the client's own socket then holds it back.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Any

from walrusmq.broker.answers import Slot, release
from walrusmq.broker.first_bytes import describe_first_bytes
from walrusmq.protocol.frames import FileRegion

if TYPE_CHECKING:
    from walrusmq.broker.buffers import BufferPool
    from walrusmq.broker.context import Context
    from walrusmq.broker.dispatcher import Dispatcher, Repeated
    from walrusmq.broker.listener import Listener

logger = logging.getLogger("walrusmq.connection")

_SIZE = Struct(">i")
_API_KEY = Struct(">h")
PREFIX_BYTES = 4
#: The shortest request header: key, version, correlation id, a null client id. A shorter frame is no request.
LEAST_FRAME_BYTES = 10
PRODUCE_KEY = 0
#: What one turn of the event loop sends from files: a long answer delays nobody by more than a millisecond or so.
MAX_SENT_PER_TURN_BYTES = 1 << 22
#: A client that has sent many requests at once gets so much of the loop's time for them before others get theirs.
MAX_TURN_S = 0.005
#: Regions up to this are read and sent together with what stands round them: one call instead of three.
COPIED_REGION_BYTES = 1 << 15
#: What is read from files at a time: so much is in memory for a client that doesn't read, and when it leaves the
#: transport's buffer, that says that there is room again.
REFILL_BYTES = 1 << 17
#: Answers that are ready go out together, and at the latest when there are so many pieces.
FLUSH_AT_PARTS = 256
HAS_SENDFILE = hasattr(os, "sendfile") and os.uname().sysname == "Linux"


class Connection(asyncio.BufferedProtocol):
    """Server side of one Kafka connection. Everything runs on the event loop's thread."""

    def __init__(self, listener: Listener, dispatcher: Dispatcher, pool: BufferPool) -> None:
        self._listener = listener
        self._metrics = listener.metrics
        self._dispatcher = dispatcher
        self._pool = pool
        self._transport: asyncio.Transport | None = None
        self._socket_fd = -1
        self.peer = ""
        self.peer_host = ""
        self.local_host = ""
        self.local_port = 0
        self.listener_name = listener.name
        self.software = ""
        #: What the handler of the last request was told: the next one mostly gets the same.
        self.context: Context | None = None
        self.client_id_bytes = b""
        #: What serves the next request if it begins like the last one.
        self.repeated: Repeated | None = None
        #: monotonic second of the last whole request or, before one, of the connect
        self.last_request_at = 0.0
        self.is_closing = False
        #: Called if the connection is lost: the one request that waits for more than its turn gives up its wait.
        self.when_lost: Callable[[], None] | None = None
        self._is_ending = False
        self._frame: bytearray | None = None
        self._frame_have = 0
        self._frame_need = 0
        self._backlog: bytearray | None = None
        self._is_parsing = False
        self._is_reading = True
        self._is_write_paused = False
        self._slots: deque[Slot] = deque()
        self._unanswered_bytes = 0
        self._produce_only = False
        self._is_exclusive = False
        self._outgoing: deque[Any] = deque()
        self._turn_is_scheduled = False

    # --- the transport's calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=0)
        peer = transport.get_extra_info("peername") or ("?", 0)
        local = transport.get_extra_info("sockname") or ("127.0.0.1", 0)
        self.peer_host = peer[0]
        self.peer = f"[{peer[0]}]:{peer[1]}" if ":" in peer[0] else f"{peer[0]}:{peer[1]}"
        self.local_host, self.local_port = local[0], local[1]
        self._socket_fd = transport.get_extra_info("socket").fileno()
        self.last_request_at = self._listener.clock.monotonic()
        self._listener.opened(self)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_closing = True
        self._transport = None
        self._socket_fd = -1
        self._drop_frame()
        self._forget_backlog()
        for slot in self._slots:
            release(slot.parts)
        self._slots.clear()
        release(self._outgoing)
        self._outgoing.clear()
        self._listener.closed(self)
        if self.when_lost is not None:
            self.when_lost()

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._frame is None:
            return self._listener.receive_view
        return memoryview(self._frame)[self._frame_have : min(self._frame_need, len(self._frame))]

    def buffer_updated(self, count: int) -> None:
        self._metrics.bytes_received += count
        if self._frame is None:
            self._take(self._listener.receive_view, count)
        else:
            self._frame_have += count
            self._frame_grew()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._is_write_paused = True

    def resume_writing(self) -> None:
        self._is_write_paused = False
        self._pump()
        self._go_on()

    # --- frames

    def _take(self, view: memoryview, end: int) -> None:
        """Handle each whole frame in ``view[:end]``; keep what is left over."""
        position = 0
        began_s = 0.0
        self._is_parsing = True
        while end - position >= PREFIX_BYTES:
            (size,) = _SIZE.unpack_from(view, position)
            if not LEAST_FRAME_BYTES <= size <= self._listener.max_frame_bytes:
                self._is_parsing = False
                self._refuse_frame(view[position:end])
                return
            frame_end = position + PREFIX_BYTES + size
            if frame_end > end:
                break
            if position:
                began_s = began_s or self.last_request_at
                if self.last_request_at - began_s > MAX_TURN_S:
                    self._go_on_next_turn()
            is_busy = self._slots or self._outgoing or self._is_write_paused or self._turn_is_scheduled
            if is_busy and not self._may_handle(view, position + PREFIX_BYTES):
                self._stash(view[position:end])
                self._is_parsing = False
                self.flush()
                return
            self._dispatcher.handle(self, view[position + PREFIX_BYTES : frame_end])
            if self.is_closing or self._is_ending:
                self._is_parsing = False
                return
            position = frame_end
        self._is_parsing = False
        if position < end:
            self._begin_frame(view[position:end])
        if self._outgoing:
            self._listener.send_soon(self)

    def _refuse_frame(self, start: memoryview) -> None:
        """Close for a frame of a size that no request has."""
        self.refuse(
            describe_first_bytes(bytes(start[:64]), self._listener.max_frame_bytes, is_first=self.context is None)
        )

    def _may_handle(self, view: memoryview, position: int) -> bool:
        """Whether the next request may be begun: one at a time, but produce requests may follow produce requests."""
        if len(self._outgoing) >= FLUSH_AT_PARTS:
            self._pump()
        if self._is_write_paused or self._is_exclusive or self._turn_is_scheduled:
            return False
        if not self._slots:
            return True
        limits = self._listener.limits
        if len(self._slots) >= limits.unanswered_requests or self._unanswered_bytes >= limits.unanswered_bytes:
            return False
        return self._produce_only and _API_KEY.unpack_from(view, position)[0] == PRODUCE_KEY

    def _begin_frame(self, start: memoryview) -> None:
        """Give a frame that has not come whole a buffer of its own, no larger than what has come justifies."""
        have = len(start)
        need = PREFIX_BYTES + _SIZE.unpack_from(start)[0] if have >= PREFIX_BYTES else PREFIX_BYTES
        first = 0 if self._listener.memory_is_short() else self._listener.first_buffer_bytes
        self._frame = self._pool.take(min(need, max(first, 2 * have)))
        self._frame[:have] = start
        self._frame_have, self._frame_need = have, need
        self._pause_if_memory_is_short()

    def _frame_grew(self) -> None:
        frame = self._frame
        assert frame is not None
        if self._frame_have < self._frame_need:
            if self._frame_have == len(frame):
                self._enlarge_frame(min(self._frame_need, 2 * len(frame)))
            return
        view = memoryview(frame)
        if self._frame_need == PREFIX_BYTES:
            self._size_is_known(frame, view)
            return
        have, self._frame = self._frame_have, None
        self._frame_have = self._frame_need = 0
        self._take(view, have)
        view.release()
        self._pool.give_back(frame)
        self._listener.memory_changed()

    def _size_is_known(self, frame: bytearray, view: memoryview) -> None:
        (size,) = _SIZE.unpack_from(frame)
        if not LEAST_FRAME_BYTES <= size <= self._listener.max_frame_bytes:
            self._refuse_frame(view[:PREFIX_BYTES])
            return
        self._frame_need += size
        if self._frame_need > len(frame):
            self._enlarge_frame(min(self._frame_need, self._listener.first_buffer_bytes))

    def _enlarge_frame(self, size_bytes: int) -> None:
        old = self._frame
        assert old is not None
        self._frame = self._pool.take(size_bytes)
        self._frame[: self._frame_have] = memoryview(old)[: self._frame_have]
        self._pool.give_back(old)
        self._pause_if_memory_is_short()

    def _drop_frame(self) -> None:
        if self._frame is not None:
            self._pool.give_back(self._frame)
            self._frame = None

    # --- holding back

    def _stash(self, rest: memoryview) -> None:
        """Keep bytes that came while no further request may begin, and read no more until one may."""
        if self._backlog is None:
            self._backlog = bytearray(rest)
        else:
            self._backlog += rest
        self._listener.backlog_bytes += len(rest)
        self._pause_reading()

    def _forget_backlog(self) -> bytearray | None:
        backlog, self._backlog = self._backlog, None
        if backlog is not None:
            self._listener.backlog_bytes -= len(backlog)
        return backlog

    def _pause_reading(self) -> None:
        if self._is_reading and self._transport is not None and not self.is_closing:
            self._is_reading = False
            self._transport.pause_reading()

    def _pause_if_memory_is_short(self) -> None:
        self._listener.memory_changed()
        if self._listener.memory_is_short():
            self._pause_reading()
            self._listener.wait_for_memory(self)

    def resume_after_memory(self) -> None:
        """The node's buffers have room again."""
        if self._backlog is None:
            self._resume_reading()

    def _resume_reading(self) -> None:
        if not self._is_reading and self._transport is not None and not (self.is_closing or self._is_ending):
            self._is_reading = True
            self._transport.resume_reading()

    def _go_on(self) -> None:
        """Something was answered or left: take up what had to wait."""
        if self._is_parsing or self.is_closing or self._is_ending or self._backlog is None:
            return
        view = memoryview(self._backlog)
        if len(view) >= PREFIX_BYTES + 2 and not self._may_handle(view, PREFIX_BYTES):
            return
        self._forget_backlog()
        self._take(view, len(view))
        if self._backlog is None:
            self._resume_reading()

    # --- answers

    def answer_frame(self, frame: bytes) -> None:
        """An answer of one piece."""
        if self._slots:
            self.answer([frame])
        else:
            self._outgoing.append(frame)

    def answer(self, parts: list[Any]) -> None:
        """An answer that is ready: out at once if none waits before it."""
        if self._slots:
            slot = Slot(0)
            slot.parts, slot.is_ready = parts, True
            self._slots.append(slot)
        else:
            self._outgoing.extend(parts)

    def reserve(self, request_bytes: int, is_produce: bool) -> Slot:
        """A place in the queue for an answer that comes later."""
        self._produce_only = is_produce and (self._produce_only or not self._slots)
        self._is_exclusive = not is_produce
        slot = Slot(request_bytes)
        self._slots.append(slot)
        self._unanswered_bytes += request_bytes
        return slot

    def fill(self, slot: Slot, parts: list[Any]) -> None:
        """The answer for a reserved place; an empty one means that the request gets none."""
        if self.is_closing:
            release(parts)
            return
        slot.parts, slot.is_ready = parts, True
        if self._slots and self._slots[0] is slot:
            self._advance()

    def close_in_turn(self, slot: Slot | None) -> None:
        """Close once all earlier answers are out; what else the client sends is not read."""
        self._pause_reading()
        self._is_ending = True
        if slot is None:
            slot = Slot(0)
            self._slots.append(slot)
        slot.closes = slot.is_ready = True
        if self._slots and self._slots[0] is slot:
            self._advance()

    def _advance(self) -> None:
        slots = self._slots
        while slots and slots[0].is_ready:
            slot = slots.popleft()
            if slot.closes:
                self.flush()
                self.close()
                return
            self._unanswered_bytes -= slot.request_bytes
            self._outgoing.extend(slot.parts)
        if not slots:
            self._is_exclusive = self._produce_only = False
        if not self._is_parsing:
            if self._outgoing:
                self._listener.send_soon(self)
            if self._backlog is not None:
                self._listener.loop.call_soon(self._go_on)

    def flush(self) -> None:
        """Send what is ready, as far as the socket takes it."""
        outgoing = self._outgoing
        if outgoing and not self._is_write_paused:
            if len(outgoing) == 1 and type(outgoing[0]) is bytes:
                self._send(outgoing.popleft())
            else:
                self._pump()

    def _pump(self) -> None:
        """Send what may go out now: small pieces together in one call, large file regions without a copy."""
        outgoing = self._outgoing
        budget = MAX_SENT_PER_TURN_BYTES
        while outgoing and self._transport is not None and not self._is_write_paused:
            head = outgoing[0]
            if type(head) is FileRegion and head.size > COPIED_REGION_BYTES:
                budget -= self._send_region(head)
            else:
                budget -= self._send_small_pieces()
            if budget <= 0 and outgoing:
                self._go_on_next_turn()
                return

    def _send_small_pieces(self) -> int:
        """Send what stands before the next large region; returns how much of it was read from files."""
        outgoing = self._outgoing
        pieces = []
        copied = 0
        while outgoing and copied < REFILL_BYTES:
            piece = outgoing[0]
            if type(piece) is FileRegion:
                if piece.size > COPIED_REGION_BYTES:
                    break
                piece = self._read_region(piece, piece.size)
                if piece is None:
                    return copied
                copied += len(piece)
            else:
                outgoing.popleft()
            pieces.append(piece)
        self._send(b"".join(pieces))
        return copied

    def _send(self, data: bytes) -> None:
        size = len(data)
        self._metrics.bytes_sent += size
        try:  # the transport's buffer is empty, or writing would be paused: spare the way through it
            sent = os.write(self._socket_fd, data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self._drop(f"sending failed: {error}")
            return
        if sent < size:
            assert self._transport is not None
            self._transport.write(data[sent:])

    def _send_region(self, region: FileRegion) -> int:
        """Send from the head region; returns the bytes that left it."""
        sent = 0
        if HAS_SENDFILE:
            count = min(region.size, MAX_SENT_PER_TURN_BYTES)
            try:
                sent = os.sendfile(self._socket_fd, region.handle.fd, region.position, count)
            except BlockingIOError:
                sent = 0
            except OSError as error:
                self._drop(f"sending failed: {error}")
                return 0
        if sent:
            self._metrics.bytes_sent += sent
            self._has_left(region, sent)
            return sent
        data = self._read_region(region, REFILL_BYTES)
        if data is None:
            return 0
        self._metrics.bytes_sent += len(data)
        assert self._transport is not None
        self._transport.write(data)
        return len(data)

    def _read_region(self, region: FileRegion, size: int) -> bytes | None:
        """Take up to ``size`` bytes from the head region; None if its file has lost them, which ends the connection."""
        try:
            data = os.pread(region.handle.fd, min(region.size, size), region.position)
        except OSError as error:
            self._drop(f"a log file couldn't be read: {error}")
            return None
        if not data:
            self._drop("a log file ended before its region did")
            return None
        self._has_left(region, len(data))
        return data

    def _has_left(self, region: FileRegion, count: int) -> None:
        region.position += count
        region.size -= count
        if region.size == 0:
            self._outgoing.popleft()
            region.handle.unpin()

    def _go_on_next_turn(self) -> None:
        if not self._turn_is_scheduled:
            self._turn_is_scheduled = True
            self._listener.loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._turn_is_scheduled = False
        self._pump()
        self._go_on()

    # --- the end

    @property
    def has_unanswered(self) -> bool:
        """Whether a request has not been answered or an answer has not left."""
        return bool(self._slots or self._outgoing)

    @property
    def is_sending(self) -> bool:
        """Whether an answer waits for the client to read."""
        return self._is_write_paused or bool(self._outgoing)

    @property
    def is_mid_frame(self) -> bool:
        """Whether part of a request has come."""
        return self._frame is not None

    def refuse(self, why: str) -> None:
        """Close for what the client sent, with one log line."""
        logger.warning("closed the connection from %s: %s", self.peer, why)
        self._metrics.count_refusal("bad_request")
        self.close_in_turn(None)

    def close(self) -> None:
        """Close once what was handed to the socket has left."""
        if not self.is_closing:
            self.is_closing = True
            if self._transport is not None:
                self._transport.close()

    def abort(self) -> None:
        """Close at once, dropping what has not left."""
        self.is_closing = True
        if self._transport is not None:
            self._transport.abort()

    def _drop(self, why: str) -> None:
        logger.info("dropped the connection from %s: %s", self.peer, why)
        self.abort()

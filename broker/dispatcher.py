"""From a frame to its handler and back: decode, call, encode. Handlers know no bytes, connections know no requests."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from walrusmq.broker.context import Context
from walrusmq.broker.deferred import Deferred
from walrusmq.broker.error_codes import count_errors
from walrusmq.protocol.codec import codec
from walrusmq.protocol.errors import MalformedMessage
from walrusmq.protocol.frames import decode_request_header, request_header_version, response_header_version
from walrusmq.protocol.messages import API_BY_KEY

if TYPE_CHECKING:
    from walrusmq.broker.answers import Slot
    from walrusmq.broker.connection import Connection
    from walrusmq.broker.node import Node

logger = logging.getLogger("walrusmq.dispatcher")

Function = Callable[[Any, Context], Any]
Remember = Callable[[Any, memoryview, Context, Any], Any]
FunctionType = TypeVar("FunctionType", bound=Function)

PRODUCE_KEY = 0
FETCH_KEY = 1
API_VERSIONS_KEY = 18
#: Key and version together, correlation id, length of the client id: how every request begins.
_START = Struct(">Iih")
HEADER_START_BYTES = 10
_PLAIN_HEADER = Struct(">ii")
_FLEXIBLE_HEADER = Struct(">iix")

#: What a handler returns for a request that gets no answer (Produce with acks=0).
NO_ANSWER = object()
#: What a handler returns to have the connection closed once earlier answers are out (an error with acks=0).
CLOSE_CONNECTION = object()

#: The module of ``walrusmq.broker.handlers`` that serves each API: imported when the first such request comes.
HANDLER_MODULES: dict[int, str] = {
    0: "produce",
    1: "fetch",
    2: "list_offsets",
    3: "metadata",
    8: "offset_commit",
    9: "offset_fetch",
    10: "find_coordinator",
    11: "join_group",
    12: "heartbeat",
    13: "leave_group",
    14: "sync_group",
    15: "describe_groups",
    16: "list_groups",
    18: "api_versions",
    19: "create_topics",
    20: "delete_topics",
    21: "delete_records",
    22: "init_producer_id",
    23: "offset_for_leader_epoch",
    29: "acls",
    30: "acls",
    31: "acls",
    32: "describe_configs",
    33: "alter_configs",
    35: "describe_log_dirs",
    37: "create_partitions",
    42: "delete_groups",
    44: "alter_configs",
    46: "list_partition_reassignments",
    47: "offset_delete",
    48: "describe_client_quotas",
    50: "describe_user_scram_credentials",
    55: "describe_quorum",
    60: "describe_cluster",
    61: "describe_producers",
    74: "list_config_resources",
    75: "describe_topic_partitions",
}
_functions: dict[type, Function] = {}
_remember: dict[type, Remember] = {}


def handles(request: type) -> Callable[[FunctionType], FunctionType]:
    """Make a function the handler of a request class.

    It takes the request and a Context and returns the response (or an EncodedResponse), a Deferred of it, or is a
    coroutine function. Views into
    the request's bytes (``records``) are valid until it returns or first awaits.
    """

    def register(function: FunctionType) -> FunctionType:
        _functions[request] = function
        return function

    return register


class Repeated(Protocol):
    """Serves requests of one connection that begin like one that was decoded."""

    correlation_id: int
    route: Route

    def outcome(self, frame: memoryview) -> Any:
        """The answer's whole frame, or what the handler would return; None for a request that isn't alike."""


def remembers(request: type) -> Callable[[Remember], Remember]:
    """Make a function the one that says what serves further requests like one, of that class."""

    def register(function: Remember) -> Remember:
        _remember[request] = function
        return function

    return register


class EncodedResponse:
    """A response without errors that its handler has encoded already, to be sent to many."""

    __slots__ = ("body",)

    def __init__(self, body: bytes) -> None:
        self.body = body


class Route:
    """All that is needed to serve one version of one API."""

    __slots__ = (
        "api_key",
        "counts_errors",
        "decode",
        "encode_parts",
        "function",
        "header_tail",
        "header_tail_bytes",
        "is_produce",
        "pack_header",
        "prefix_bytes",
        "remember",
        "response",
        "version",
    )

    def __init__(self, api_key: int, version: int) -> None:
        api = API_BY_KEY[api_key]
        importlib.import_module(f"walrusmq.broker.handlers.{HANDLER_MODULES[api_key]}")
        is_flexible = response_header_version(api_key, version) == 1
        self.api_key = api_key
        self.version = version
        #: What follows the client id in the header of nearly every request: no tagged fields, where there may be some.
        self.header_tail = b"\0" if request_header_version(api_key, version) == 2 else b""
        self.header_tail_bytes = len(self.header_tail)
        self.function = _functions[api.request]
        self.remember = _remember.get(api.request)
        self.response = api.response
        self.decode = codec(api.request, version).decode
        self.encode_parts = codec(api.response, version).encode_parts
        self.is_produce = api_key == PRODUCE_KEY
        self.counts_errors = api_key not in (PRODUCE_KEY, FETCH_KEY)
        self.pack_header = (_FLEXIBLE_HEADER if is_flexible else _PLAIN_HEADER).pack
        self.prefix_bytes = 5 if is_flexible else 4


class Dispatcher:
    """Serves the requests of a node's connections."""

    __slots__ = ("_monotonic", "_node", "_request_counts", "_routes", "_tasks")

    def __init__(self, node: Node) -> None:
        self._node = node
        self._monotonic = node.clock.monotonic
        self._request_counts = node.metrics.requests
        self._routes: dict[int, Route] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    def handle(self, connection: Connection, frame: memoryview) -> None:
        """Serve one request: answer it, queue it for a later answer, or close the connection."""
        connection.last_request_at = self._monotonic()
        repeated = connection.repeated
        if repeated is not None:
            try:
                outcome = repeated.outcome(frame)
            except Exception:
                self._failed(connection, repeated.route, None)
                return
            if outcome is not None:
                self._request_counts[PRODUCE_KEY] += 1
                if type(outcome) is bytes:
                    connection.answer_frame(outcome)
                    return
                self._deliver(connection, repeated.route, repeated.correlation_id, outcome, len(frame))
                return
        self._serve(connection, frame)

    def _serve(self, connection: Connection, frame: memoryview) -> None:
        key, correlation_id, client_id_bytes = _START.unpack_from(frame)
        route = self._routes.get(key)
        context = connection.context
        position = HEADER_START_BYTES + client_id_bytes
        if (
            route is None
            or context is None
            or not 0 <= client_id_bytes <= len(frame) - HEADER_START_BYTES
            or route.header_tail != frame[position : position + route.header_tail_bytes]
            or connection.client_id_bytes != frame[HEADER_START_BYTES:position]
        ):
            prepared = self._prepare(connection, frame)
            if prepared is None:
                return
            route, context, position = prepared
        else:
            position += route.header_tail_bytes
            if context.api_version != route.version:
                context = connection.context = Context(self._node, connection, route.version, context.client_id)
        self._request_counts[route.api_key] += 1
        try:
            request, _ = route.decode(frame, position)
        except MalformedMessage as error:
            connection.refuse(f"a malformed {API_BY_KEY[route.api_key].name} v{route.version} request: {error}")
            return
        try:
            outcome = route.function(request, context)
            if route.remember is not None:
                connection.repeated = route.remember(request, frame, context, route)
        except Exception:
            self._failed(connection, route, None)
            return
        self._deliver(connection, route, correlation_id, outcome, len(frame))

    def _deliver(
        self, connection: Connection, route: Route, correlation_id: int, outcome: Any, request_bytes: int
    ) -> None:
        """Do what a handler's outcome asks for."""
        kind = type(outcome)
        if kind is EncodedResponse:
            body = outcome.body
            connection.answer([route.pack_header(route.prefix_bytes + len(body), correlation_id), body])
        elif kind is Deferred:
            self._answer_later(connection, route, correlation_id, outcome, request_bytes)
        elif kind is route.response:
            try:
                connection.answer(self._encode(route, correlation_id, outcome))
            except Exception:
                self._failed(connection, route, None)
        elif asyncio.iscoroutine(outcome):
            self._run(connection, route, correlation_id, outcome, request_bytes)
        elif outcome is CLOSE_CONNECTION:
            connection.close_in_turn(None)
        else:
            assert outcome is NO_ANSWER, f"a {API_BY_KEY[route.api_key].name} handler returned {outcome!r}"

    def _prepare(self, connection: Connection, frame: memoryview) -> tuple[Route, Context, int] | None:
        """Read a header that isn't like the connection's last one; None if there is no serving it."""
        try:
            header, position = decode_request_header(frame, 0)
        except MalformedMessage as error:
            connection.refuse(f"no Kafka request: {error}")
            return None
        route = self._find_route(connection, header.api_key, header.api_version, header.correlation_id)
        if route is None:
            return None
        context = connection.context = Context(self._node, connection, header.api_version, header.client_id)
        connection.client_id_bytes = b"" if header.client_id is None else header.client_id.encode()
        return route, context, position

    def _find_route(self, connection: Connection, api_key: int, version: int, correlation_id: int) -> Route | None:
        api = API_BY_KEY.get(api_key)
        if api is None or api_key not in HANDLER_MODULES:
            connection.refuse(f"API key {api_key} isn't served here")
            return None
        if not api.min_version <= version <= api.max_version:
            if api_key == API_VERSIONS_KEY:
                self._answer_unknown_version(connection, correlation_id)
            else:
                connection.refuse(
                    f"{api.name} v{version} isn't served here, v{api.min_version} to v{api.max_version} are"
                )
            return None
        key = api_key << 16 | version
        route = self._routes.get(key)
        if route is None:
            route = self._routes[key] = Route(api_key, version)
        return route

    def _answer_unknown_version(self, connection: Connection, correlation_id: int) -> None:
        """An ApiVersions request from the future gets its own range in the oldest form (KIP-511)."""
        from walrusmq.broker.handlers.api_versions import unsupported_version

        self._request_counts[API_VERSIONS_KEY] += 1
        connection.answer(self._encode(Route(API_VERSIONS_KEY, 0), correlation_id, unsupported_version()))

    def _encode(self, route: Route, correlation_id: int, response: Any) -> list[Any]:
        if type(response) is EncodedResponse:
            body = response.body
            return [route.pack_header(route.prefix_bytes + len(body), correlation_id), body]
        if route.counts_errors:
            count_errors(response, route.api_key, self._node.metrics)
        parts: list[Any] = [b""]
        route.encode_parts(response, parts)
        size = route.prefix_bytes
        for part in parts:
            size += len(part)
        parts[0] = route.pack_header(size, correlation_id)
        return parts

    def _answer_later(
        self, connection: Connection, route: Route, correlation_id: int, deferred: Deferred, request_bytes: int
    ) -> None:
        slot = connection.reserve(request_bytes, route.is_produce)

        def answer(response: Any) -> None:
            self._fill(connection, slot, route, correlation_id, response)

        deferred.when_done(answer)

    def _run(
        self, connection: Connection, route: Route, correlation_id: int, coroutine: Any, request_bytes: int
    ) -> None:
        slot = connection.reserve(request_bytes, route.is_produce)
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)

        def done(task: asyncio.Task[Any]) -> None:
            self._tasks.discard(task)
            if task.cancelled():
                connection.close_in_turn(slot)
                return
            error = task.exception()
            if error is None:
                self._fill(connection, slot, route, correlation_id, task.result())
            else:
                logger.error("a %s request failed", API_BY_KEY[route.api_key].name, exc_info=error)
                connection.close_in_turn(slot)

        task.add_done_callback(done)

    def _fill(self, connection: Connection, slot: Slot, route: Route, correlation_id: int, response: Any) -> None:
        if type(response) is bytes:
            connection.fill(slot, [response])
        elif response is NO_ANSWER:
            connection.fill(slot, [])
        elif response is CLOSE_CONNECTION:
            connection.close_in_turn(slot)
        else:
            try:
                parts = self._encode(route, correlation_id, response)
            except Exception:
                self._failed(connection, route, slot)
                return
            connection.fill(slot, parts)

    def _failed(self, connection: Connection, route: Route, slot: Slot | None) -> None:
        """A defect of ours must not take the node down: it costs this connection, and the log says where it was."""
        logger.exception("a %s request failed", API_BY_KEY[route.api_key].name)
        connection.close_in_turn(slot)

    async def finish(self, grace_s: float) -> None:
        """Wait for running handlers; cancel what isn't done after ``grace_s``."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace_s)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

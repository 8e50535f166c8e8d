"""A node: one data folder, its listeners, and everything between. An ordinary object: several live in one process."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
import os
from typing import TYPE_CHECKING, Any

import walrusmq
from walrusmq.broker.cleaner import Cleaner
from walrusmq.broker.clock import Clock, SystemClock
from walrusmq.broker.commands import ALL_NODES, CommandListener, RegisterNode, encode_command
from walrusmq.broker.config_locks import ConfigLocks
from walrusmq.broker.data_folder import DataFolder, MetadataMissing
from walrusmq.broker.deadlines import GRAIN_S, Deadlines
from walrusmq.broker.dispatcher import Dispatcher, EncodedResponse
from walrusmq.broker.fetch_sessions import FetchSessions
from walrusmq.broker.held_appends import HeldAppends
from walrusmq.broker.image import ClusterImage
from walrusmq.broker.image_cache import MAX_ENCODED_ANSWERS, ImageCache
from walrusmq.broker.led_partitions import LedPartitions
from walrusmq.broker.listener import ConnectionLimits, Listener
from walrusmq.broker.monitor import Monitor
from walrusmq.broker.node_metrics import node_metrics
from walrusmq.broker.producer_ids import ProducerIds
from walrusmq.broker.rollovers import Rollovers
from walrusmq.broker.topics import OFFSETS_TOPIC
from walrusmq.consensus.metadata_log import MetadataLog
from walrusmq.segments.files import Files, OsFiles
from walrusmq.segments.store import SegmentStore

if TYPE_CHECKING:
    from walrusmq.broker.connection import Connection
    from walrusmq.broker.groups.coordinator import GroupCoordinator
    from walrusmq.broker.handlers.fetch import Fetch
    from walrusmq.broker.http import HttpServer
    from walrusmq.broker.settings import Settings
    from walrusmq.protocol.messages.metadata import MetadataResponseTopic

logger = logging.getLogger("walrusmq.node")

#: The one client listener's name; clients never see it, other nodes match addresses by it.
CLIENT_LISTENER = "CLIENT"
#: How long a stop waits for requests in work, then for answers to leave.
STOP_GRACE_S = 5.0
#: Peers that are warned about: enough to see the pattern, few enough to be no flood.
MAX_LOOPBACK_WARNINGS = 16
#: Lines of /readyz about partitions that can't be written.
MAX_REASONS = 20
LOOPBACK_PREFIXES = ("127.", "::1", "localhost", "::ffff:127.")


class Node:
    """Started and stopped in a running event loop. Its settings, clock and files are given to it.

    ``start`` raises OSError for an address that can't be had and the errors of ``data_folder`` for a folder that can't
    be used; after that the node serves until ``stop``.
    """

    def __init__(self, settings: Settings, *, files: Files | None = None, clock: Clock | None = None) -> None:
        #: A copy: what is changed at run time changes it.
        self.settings = copy.copy(settings)
        settings = self.settings
        self.clock: Clock = clock if clock is not None else SystemClock()
        self.files: Files = files if files is not None else OsFiles()
        self.node_id = -1
        self.incarnation = -1
        self.cluster_id = ""
        self.image = ClusterImage()
        self.listen_address: tuple[str, int] = ("", 0)
        self.http_address: tuple[str, int] = ("", 0)
        self.internal_address: tuple[str, int] | None = None
        self.is_stopping = False
        self.is_serving = False
        #: Set when this node can't follow the metadata log any more: whoever runs it stops it.
        self.failure: BaseException | None = None
        self.has_failed = asyncio.Event()
        self.deadlines = Deadlines()
        self.held_appends = HeldAppends()
        self.fetch_sessions = FetchSessions(settings.max_incremental_fetch_session_cache_slots)
        self.producer_ids = ProducerIds()
        self.config_locks = ConfigLocks()
        self.metadata_entries: ImageCache[MetadataResponseTopic] = ImageCache(self.image)
        self.encoded_answers: ImageCache[EncodedResponse] = ImageCache(self.image, MAX_ENCODED_ANSWERS)
        self.waiting_fetches: set[Fetch] = set()
        self.store: SegmentStore
        self.metrics, self.loop_lag = node_metrics(self)
        self.rollovers = Rollovers(self)
        self.led = LedPartitions(self)
        self.partitions_by_id = self.led.by_id
        self.partitions_by_name = self.led.by_name
        self._coordinator: GroupCoordinator | None = None
        self._dispatcher = Dispatcher(self)
        self._monitor = Monitor(self)
        self.cleaner = Cleaner(self)
        self.listener = Listener(
            CLIENT_LISTENER,
            self._dispatcher,
            _limits(settings),
            settings.socket_request_max_bytes,
            self.clock,
            self.metrics,
        )
        self._folder = DataFolder(settings.data_dir, self.files)
        self._log: MetadataLog
        self._http: HttpServer | None = None
        self._deadline_timer: asyncio.TimerHandle | None = None
        self._loopback_warned: set[str] = set()
        self._opened = contextlib.AsyncExitStack()

    async def start(self) -> None:
        """Open the data folder, recover what is in it, register, and serve."""
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> None:
        settings = self.settings
        identity = self._folder.open(settings.node_id, settings.cluster_id)
        self._opened.callback(self._folder.close)
        self.node_id, self.cluster_id = identity.node_id, identity.cluster_id
        await self._open_logs()
        self._refuse_to_forget()
        self.listen_address = self.listener.bind(settings.listen.host, settings.listen.port)
        self._opened.push_async_callback(self.listener.stop, STOP_GRACE_S)
        await self._serve_http()
        self.incarnation = await self.propose(self._registration())
        self.led.open_all()
        self.image.subscribe(self.led.follow)
        if OFFSETS_TOPIC in self.image.topics_by_name:
            self._start_coordinator()
        self._monitor.start()
        self._opened.push_async_callback(self._monitor.stop)
        self.cleaner.start()
        self._opened.push_async_callback(self.cleaner.stop)
        self._expire_deadlines()
        self.loop_lag.start()
        self._opened.callback(self.loop_lag.stop)
        await self.listener.accept()
        self.is_serving = True

    async def stop(self) -> None:
        """Take no more, answer what is in work, sync, and let go of everything."""
        self.is_stopping = True
        self.is_serving = False
        self.listener.stop_accepting()
        for fetch in list(self.waiting_fetches):
            fetch.end()
        await self._dispatcher.finish(STOP_GRACE_S)
        await self._opened.aclose()
        if self._deadline_timer is not None:
            self._deadline_timer.cancel()
        self.deadlines.expire_all()

    async def propose(self, command: Any) -> Any:
        """Have the metadata log take a command; returns what applying it gave.

        Raises the KafkaError by which the image refused it, or one that says that its outcome isn't known.
        """
        return await self._log.propose(encode_command(command, self.image.feature_level))

    def take_changed_settings(self) -> None:
        """Go by the settings that the image has for all nodes and for this one."""
        configs = self.image.node_configs
        self.settings.change(configs.get(ALL_NODES, {}), configs.get(str(self.node_id), {}))
        self.listener.limits = _limits(self.settings)
        self.store.forget_producers_after(self.settings.producer_id_expiration_ms)

    @property
    def coordinator(self) -> GroupCoordinator:
        """What looks after consumer groups: started with the node if there have been any, else when first asked for."""
        return self._coordinator or self._start_coordinator()

    def advertised_address(self, connection: Connection) -> tuple[str, int]:
        """The address that a client is told for this node: the setting's, else the one by which it reached us."""
        advertised = self.settings.advertised_listener
        if advertised is None:
            return connection.local_host, connection.local_port
        if advertised.host.startswith(LOOPBACK_PREFIXES) and not connection.peer_host.startswith(LOOPBACK_PREFIXES):
            self._warn_of_loopback(connection)
        return advertised.host, advertised.port

    def unready_reasons(self) -> list[str]:
        """Why clients can't be served, a line each; none: they can."""
        if not self.is_serving:
            if self.failure is not None:
                return [f"the metadata log can't be followed: {self.failure}"]
            return ["stopping" if self.is_stopping else "starting"]
        problems = self.store.write_failures()[:MAX_REASONS]
        if self.is_metadata_refused:
            problems.append("the metadata log can't be written")
        return problems

    @property
    def metadata_term(self) -> int:
        """The term in which the metadata log takes commands now."""
        return self._log.term

    @property
    def is_metadata_refused(self) -> bool:
        """Whether the disk refused the last command of the metadata log; the next one tries again."""
        return self._log.is_disk_failing

    # --- inside

    def _start_coordinator(self) -> GroupCoordinator:
        from walrusmq.broker.groups.coordinator import GroupCoordinator

        self._coordinator = coordinator = GroupCoordinator(self)
        coordinator.start()
        self._opened.push_async_callback(coordinator.stop)
        return coordinator

    def _refuse_to_forget(self) -> None:
        """A folder that the image doesn't know is removed: so an image that knows nothing must not be a mistake."""
        if not self.image.applied_index and self.store.has_folders:
            raise MetadataMissing(
                f"{self._folder.path} holds topics but no metadata that knows them: put its metadata folder back, or"
                " move its topics folder away to begin anew"
            )

    async def _open_logs(self) -> None:
        settings = self.settings
        self.store = SegmentStore(
            str(self._folder.path),
            self.files,
            self.clock,
            max_open_files=settings.max_open_files,
            fsync_interval_ms=settings.fsync_interval_ms,
            producer_id_expiration_ms=settings.producer_id_expiration_ms,
        )
        self.store.start()
        self._opened.push_async_callback(self.store.stop)
        self._log = MetadataLog(
            os.path.join(self._folder.path, "metadata"),
            self.files,
            apply=self.image.apply_entry,
            take_snapshot=self.image.snapshot,
            restore=self.image.load,
            on_failure=self._log_failed,
        )
        self._opened.push_async_callback(self._stop_log)
        await self._log.start()
        self.take_changed_settings()

    async def _stop_log(self) -> None:
        await self.rollovers.finish()
        await self._log.stop()

    async def _serve_http(self) -> None:
        from walrusmq.broker.http import HttpServer
        from walrusmq.broker.http_pages import node_pages

        address = self.settings.http_listen
        self._http = HttpServer((address.host, address.port), node_pages(self.metrics, self.unready_reasons))
        self._opened.push_async_callback(self._http.stop)
        await self._http.start()
        self.http_address = self._http.address

    def _registration(self) -> RegisterNode:
        host, port = self.listen_address
        if self.settings.advertised_listener is not None:
            host, port = self.settings.advertised_listener.host, self.settings.advertised_listener.port
        return RegisterNode(
            node_id=self.node_id,
            rack=self.settings.broker_rack,
            listeners=[CommandListener(name=CLIENT_LISTENER, host=host, port=port)],
            software_version=walrusmq.__version__,
        )

    def _log_failed(self, error: BaseException) -> None:
        self.failure = error
        self.is_serving = False
        self.has_failed.set()

    def _expire_deadlines(self) -> None:
        self.deadlines.expire(self.clock.monotonic())
        self._deadline_timer = asyncio.get_running_loop().call_later(GRAIN_S, self._expire_deadlines)

    def _warn_of_loopback(self, connection: Connection) -> None:
        if connection.peer_host in self._loopback_warned or len(self._loopback_warned) >= MAX_LOOPBACK_WARNINGS:
            return
        self._loopback_warned.add(connection.peer_host)
        advertised = self.settings.advertised_listener
        logger.warning(
            "%s connected from elsewhere and is told to come back to %s, which is its own machine: "
            "set advertised.listener to an address of this node that it can reach",
            connection.peer,
            advertised,
        )


def _limits(settings: Settings) -> ConnectionLimits:
    return ConnectionLimits(
        connections=settings.max_connections,
        connections_per_address=settings.max_connections_per_ip,
        idle_ms=settings.connections_max_idle_ms,
        unanswered_requests=settings.max_unanswered_requests,
        unanswered_bytes=settings.max_unanswered_bytes,
        buffered_bytes=settings.max_buffered_bytes,
    )

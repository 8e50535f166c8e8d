"""Every setting of a node: name, type, default, allowed values and meaning, in one table.

One rule gives all spellings: the setting ``x.y.z`` is the flag ``--x-y-z``, the variable ``WALRUS_X_Y_Z``, the key
``x.y.z`` in a TOML file and the attribute ``x_y_z`` of :class:`Settings`. What Kafka has too bears Kafka's name and
meaning; sizes are bytes, durations milliseconds.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from walrusmq.broker.compression_types import AS_PRODUCED, COMPRESSION_TYPE, missing_codec
from walrusmq.broker.setting_names import (
    CONFIG_VARIABLE,
    Setting,
    SettingError,
    Source,
    named,
    origin_in_words,
    unknown_setting,
)
from walrusmq.broker.setting_types import (
    MAX_INT32,
    MAX_INT64,
    Address,
    AddressText,
    Boolean,
    Choice,
    Integer,
    Share,
    Text,
    ValueType,
    WordList,
)

logger = logging.getLogger("walrusmq.settings")

LOOPBACK = "127.0.0.1"
#: More handles than this gain nothing, even where the system has no limit.
MAX_DEFAULT_OPEN_FILES = 16_384


def ours(value_type: ValueType, default: Any, meaning: str, *, is_changeable: bool = False) -> Any:
    """A setting that works differently from any of Kafka's, or that Kafka doesn't have."""
    row = (value_type, default, meaning, False, is_changeable)
    return dataclasses.field(default=default, metadata={"row": row})


def kafkas(value_type: ValueType, default: Any, meaning: str, *, is_changeable: bool = False) -> Any:
    """A setting with Kafka's name and Kafka's meaning."""
    row = (value_type, default, meaning, True, is_changeable)
    return dataclasses.field(default=default, metadata={"row": row})


def _open_file_share() -> int:
    """Half of the files that this process may open: the other half is for connections."""
    import resource

    soft_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = soft_limit == resource.RLIM_INFINITY
    return MAX_DEFAULT_OPEN_FILES if unlimited else max(16, min(soft_limit // 2, MAX_DEFAULT_OPEN_FILES))


@dataclasses.dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Settings:
    """The settings of one node, checked; :meth:`load` makes them from text."""

    # Where the node lives
    data_dir: str = ours(Text("a folder"), "./walrus-data", "Folder that holds everything this node stores.")
    node_id: int | None = kafkas(
        Integer(0), None, "This node's id. Unset: the one stored in the data folder, 1 in a new folder."
    )
    cluster_id: str | None = kafkas(
        Text("22 letters, digits, - or _ (a UUID in URL-safe base64)", r"[A-Za-z0-9_-]{22}"),
        None,
        "The cluster's id. Unset: the one stored in the data folder, a random one in a new folder.",
    )
    broker_rack: str | None = kafkas(Text(), None, "Rack or zone of this node, told to clients.")

    # Addresses (an Address is immutable, which the linter can't know)
    listen: Address = ours(  # noqa: RUF009
        AddressText(bare_port_host=LOOPBACK), Address(LOOPBACK, 9092), "Where Kafka clients connect."
    )
    advertised_listener: Address | None = ours(  # noqa: RUF009
        AddressText(least_port=1),
        None,
        "Address that clients are told, e.g. for mapped ports. Unset: the one by which each client reached us.",
    )
    internal_listen: Address = ours(  # noqa: RUF009
        AddressText(bare_port_host=LOOPBACK),
        Address(LOOPBACK, 9093),
        "Where other nodes connect; a node that is alone opens nothing there.",
    )
    http_listen: Address = ours(  # noqa: RUF009
        AddressText(bare_port_host=LOOPBACK),
        Address(LOOPBACK, 9094),
        "Serves /metrics, /healthz and /readyz over HTTP.",
    )

    # Topics
    auto_create_topics_enable: bool = kafkas(Boolean(), True, "Create a topic when a client first asks for it.")
    num_partitions: int = kafkas(Integer(1), 1, "Partitions of a topic that is created without a number.")
    default_replication_factor: int = kafkas(
        Integer(1, 32767), 1, "Replicas of a topic that is created without a number."
    )
    message_max_bytes: int = kafkas(
        Integer(0),
        1048588,
        "Largest record batch, as sent (compressed). Topics: max.message.bytes.",
        is_changeable=True,
    )
    compression_type: str = kafkas(
        COMPRESSION_TYPE,
        AS_PRODUCED,
        "Codec that batches are stored in; producer: the one they came in. Topics: compression.type.",
        is_changeable=True,
    )
    log_message_timestamp_type: Literal["CreateTime", "LogAppendTime"] = kafkas(
        Choice("CreateTime", "LogAppendTime"),
        "CreateTime",
        "Keep the producer's timestamps, or stamp batches on arrival. Topics: message.timestamp.type.",
        is_changeable=True,
    )
    log_message_timestamp_before_max_ms: int = kafkas(
        Integer(0, MAX_INT64),
        MAX_INT64,
        "How far a producer's timestamp may lie in the past. Topics: message.timestamp.before.max.ms.",
        is_changeable=True,
    )
    log_message_timestamp_after_max_ms: int = kafkas(
        Integer(0, MAX_INT64),
        3_600_000,
        "How far a producer's timestamp may lie in the future. Topics: message.timestamp.after.max.ms.",
        is_changeable=True,
    )

    # Segments and retention
    max_segment_entries: int = ours(
        Integer(1, MAX_INT64),
        1_000_000,
        "Entries after which a segment is sealed. Topics: walrus.segment.entries.",
        is_changeable=True,
    )
    log_segment_bytes: int = kafkas(
        Integer(1 << 20), 1 << 30, "Bytes after which a segment is sealed. Topics: segment.bytes.", is_changeable=True
    )
    log_roll_ms: int = kafkas(
        Integer(1, MAX_INT64),
        604_800_000,
        "Age at which a segment that isn't empty is sealed. Topics: segment.ms.",
        is_changeable=True,
    )
    monitor_check_ms: int = ours(
        Integer(1), 10_000, "How often the open segments are looked at; full ones are sealed then, if not before."
    )
    log_retention_ms: int = kafkas(
        Integer(-1, MAX_INT64),
        604_800_000,
        "Age at which sealed segments are removed; -1: never. Topics: retention.ms.",
        is_changeable=True,
    )
    log_retention_bytes: int = kafkas(
        Integer(-MAX_INT64 - 1, MAX_INT64),
        -1,
        "Size of a partition above which its oldest sealed segments are removed; -1: any. Topics: retention.bytes.",
        is_changeable=True,
    )
    log_retention_check_interval_ms: int = kafkas(
        Integer(1, MAX_INT64), 300_000, "How often retention looks for segments to remove."
    )

    # Compaction
    log_cleanup_policy: tuple[str, ...] = kafkas(
        WordList("compact", "delete"),
        ("delete",),
        "What becomes of old segments: removed, or compacted to each key's last value. Topics: cleanup.policy.",
        is_changeable=True,
    )
    log_cleaner_backoff_ms: int = kafkas(
        Integer(0, MAX_INT64), 15_000, "How often compaction looks for something to do.", is_changeable=True
    )
    log_cleaner_delete_retention_ms: int = kafkas(
        Integer(0, MAX_INT64),
        86_400_000,
        "How long a key without a value stays after its compaction. Topics: delete.retention.ms.",
        is_changeable=True,
    )
    log_cleaner_max_compaction_lag_ms: int = kafkas(
        Integer(1, MAX_INT64),
        MAX_INT64,
        "Age at which a record is compacted in any case. Topics: max.compaction.lag.ms.",
        is_changeable=True,
    )
    log_cleaner_min_cleanable_ratio: float = kafkas(
        Share(),
        0.5,
        "Share of a log that must be new for it to be compacted. Topics: min.cleanable.dirty.ratio.",
        is_changeable=True,
    )
    log_cleaner_min_compaction_lag_ms: int = kafkas(
        Integer(0, MAX_INT64),
        0,
        "Age before which a record isn't compacted. Topics: min.compaction.lag.ms.",
        is_changeable=True,
    )

    # Durability
    fsync: Literal["batch", "interval", "never"] = ours(
        Choice("batch", "interval", "never"),
        "batch",
        "batch: acknowledge what is on disk; interval: sync each fsync.interval.ms; never: leave it to the system.",
    )
    fsync_interval_ms: int = ours(Integer(1), 1000, "How often files are synced where fsync is interval.")
    log_flush_interval_messages: int = kafkas(
        Integer(1, MAX_INT64),
        MAX_INT64,
        "Sync a log whenever it has gained so many records. Topics: flush.messages.",
        is_changeable=True,
    )
    log_flush_interval_ms: int = kafkas(
        Integer(0, MAX_INT64),
        MAX_INT64,
        "Sync a log when its oldest unsynced record is so old. Topics: flush.ms.",
        is_changeable=True,
    )

    # Consumer groups
    group_min_session_timeout_ms: int = kafkas(
        Integer(1), 6000, "Shortest session timeout that a member of a consumer group may ask for."
    )
    group_max_session_timeout_ms: int = kafkas(
        Integer(1), 1_800_000, "Longest session timeout that a member of a consumer group may ask for."
    )
    group_initial_rebalance_delay_ms: int = kafkas(
        Integer(0), 0, "How long the first rebalance of an empty group waits for more members."
    )
    group_max_size: int = kafkas(Integer(1), MAX_INT32, "Most members of one consumer group.")
    offset_metadata_max_bytes: int = kafkas(Integer(0), 4096, "Longest text that a client may store beside an offset.")
    offsets_retention_minutes: int = kafkas(
        Integer(1), 10_080, "How long the offsets of a group without members, or that nobody reads any more, are kept."
    )
    offsets_retention_check_interval_ms: int = kafkas(
        Integer(1, MAX_INT64), 600_000, "How often expired offsets are looked for."
    )
    offsets_commit_timeout_ms: int = kafkas(
        Integer(1), 5000, "How long a commit may take to be on disk; then the client is told to try again."
    )
    offsets_topic_num_partitions: int = kafkas(
        Integer(1), 50, "Partitions of __consumer_offsets, when it is made; they never change."
    )
    offsets_topic_segment_bytes: int = kafkas(
        Integer(1_048_576), 104_857_600, "segment.bytes of __consumer_offsets, when it is made."
    )

    # Limits
    socket_request_max_bytes: int = kafkas(
        Integer(1), 104_857_600, "Largest request; a larger one closes its connection."
    )
    fetch_max_bytes: int = kafkas(Integer(1024), 57_671_680, "Most record bytes in one answer to a Fetch request.")
    max_connections: int = kafkas(Integer(0), 10_000, "Client connections at one time.", is_changeable=True)
    max_connections_per_ip: int = kafkas(
        Integer(0), MAX_INT32, "Client connections at one time from one address.", is_changeable=True
    )
    connections_max_idle_ms: int = kafkas(
        Integer(1, MAX_INT64), 600_000, "Idle time after which a client's connection is closed."
    )
    max_unanswered_requests: int = ours(
        Integer(1), 256, "Requests of one connection in work at a time; it isn't read further until some are answered."
    )
    max_unanswered_bytes: int = ours(
        Integer(1), 33_554_432, "Bytes of one connection in work or unsent at a time; it isn't read further until then."
    )
    max_buffered_bytes: int = ours(
        Integer(1, MAX_INT64), 268_435_456, "Bytes of all connections held in memory; no connection is read above that."
    )
    max_incremental_fetch_session_cache_slots: int = kafkas(Integer(0), 1000, "Fetch sessions kept (KIP-227).")
    producer_id_expiration_ms: int = kafkas(
        Integer(1),
        86_400_000,
        "How long the sequence numbers of an idle idempotent producer are remembered.",
        is_changeable=True,
    )
    max_open_files: int = dataclasses.field(
        default_factory=_open_file_share,
        metadata={
            "row": (
                Integer(16),
                None,
                "Segment files held open. Unset: half of what the system lets this process open.",
                False,
            )
        },
    )

    # The process
    log_level: Literal["debug", "info", "warning", "error"] = ours(
        Choice("debug", "info", "warning", "error"), "info", "Least severity of what is logged on standard error."
    )
    ready_file: str | None = ours(
        Text("a file"),
        None,
        "File to write, as JSON with pid and addresses, once the node serves; removed at its stop.",
    )

    #: Where each value that isn't a default came from, by dotted name.
    sources: dict[str, Source] = dataclasses.field(default_factory=dict)
    #: The file that was read, if any.
    file: str | None = None
    #: What was set for all nodes at run time, and what for this one, by dotted name.
    for_all_nodes: dict[str, Any] = dataclasses.field(default_factory=dict)
    for_this_node: dict[str, Any] = dataclasses.field(default_factory=dict)
    _at_start: dict[str, Any] = dataclasses.field(default_factory=dict)

    @classmethod
    def load(
        cls,
        given: Mapping[str, str] | None = None,
        environ: Mapping[str, str] | None = None,
        file: str | None = None,
    ) -> Settings:
        """Settings from flags, else variables, else a TOML file, else the defaults.

        ``given`` maps dotted names to text, as flags do; ``file`` wins over ``WALRUS_CONFIG`` in ``environ``.
        Raises :class:`SettingError`.
        """
        environ = environ or {}
        settings = cls(file=file or environ.get(CONFIG_VARIABLE))
        if settings.file:
            from walrusmq.broker.settings_file import read_settings_file

            settings._take(read_settings_file(settings.file), Source.FILE)
        settings._take(named(environ, SETTINGS), Source.ENVIRONMENT)
        settings._take((given or {}).items(), Source.FLAG)
        settings._refuse_contradictions()
        return settings

    def source(self, name: str) -> Source:
        """Where the value of the setting with this dotted name came from."""
        if name in self.for_this_node:
            return Source.THIS_NODE
        if name in self.for_all_nodes:
            return Source.ALL_NODES
        return self.source_at_start(name)

    def source_at_start(self, name: str) -> Source:
        """Where the value that the node was started with came from."""
        return self.sources.get(name, Source.DEFAULT)

    def is_given(self, name: str) -> bool:
        """Whether anybody set it, even to its default."""
        return name in self.sources or name in self.for_all_nodes or name in self.for_this_node

    def origin(self, name: str) -> str:
        """The source in words, with the flag, variable or file that said so."""
        return origin_in_words(name, self.source(name), self.file)

    def value(self, name: str) -> Any:
        """The value of the setting with this dotted name."""
        return getattr(self, SETTINGS[name].attribute)

    def value_at_start(self, name: str) -> Any:
        """The value that the node was started with."""
        return self._at_start[name] if name in self._at_start else self.value(name)

    def text(self, name: str) -> str | None:
        """The value as text, None if it is unset."""
        return SETTINGS[name].render(self.value(name))

    def change(self, for_all_nodes: Mapping[str, str], for_this_node: Mapping[str, str]) -> None:
        """Take what is set at run time, in place of all that was before; the node's own wins.

        A value that this version can't take, which another one has stored, is left out with a warning.
        """
        for name, value in self._at_start.items():
            setattr(self, SETTINGS[name].attribute, value)
        self.for_all_nodes = _changes(for_all_nodes)
        self.for_this_node = _changes(for_this_node)
        changed = self.for_all_nodes | self.for_this_node
        self._at_start = {name: self.value(name) for name in changed}
        for name, value in changed.items():
            setattr(self, SETTINGS[name].attribute, value)

    def _take(self, items: Iterable[tuple[str, str]], source: Source) -> None:
        for name, text in items:
            setting = SETTINGS.get(name)
            if setting is None:
                raise unknown_setting(name, source, SETTINGS, self.file)
            try:
                value = setting.type.parse(text)
            except ValueError:
                where = origin_in_words(name, source, self.file)
                raise SettingError(f"{name} is {text!r} ({where}), but must be {setting.type.allowed}") from None
            setattr(self, setting.attribute, value)
            self.sources[name] = source

    def _refuse_contradictions(self) -> None:
        self._refuse_flushes_beside_batch()
        self._refuse_shared_addresses()
        missing = missing_codec(self.compression_type)
        if missing is not None:
            raise SettingError(
                f"compression.type is {self.compression_type} ({self.origin('compression.type')}): {missing}"
            )

    def _refuse_flushes_beside_batch(self) -> None:
        if self.fsync != "batch" or not self.is_given("fsync"):
            return
        for name, would_matter in (
            ("log.flush.interval.messages", self.log_flush_interval_messages != 1),
            ("log.flush.interval.ms", True),
        ):
            if self.is_given(name) and would_matter:
                raise SettingError(
                    f"{name} is {self.text(name)} ({self.origin(name)}) and fsync is batch ({self.origin('fsync')}): "
                    f"batch syncs before each acknowledgement anyway, so leave one of the two out"
                )

    def _refuse_shared_addresses(self) -> None:
        owners: dict[Address, str] = {}
        for name in ("listen", "http.listen"):
            address: Address = self.value(name)
            other = owners.setdefault(address, name)
            if address.port != 0 and other != name:
                raise SettingError(
                    f"{name} ({self.origin(name)}) and {other} ({self.origin(other)}) are both {address}: "
                    f"each needs a port of its own; port 0 takes a free one"
                )


SETTINGS: dict[str, Setting] = {
    name: Setting(name, *field.metadata["row"])
    for field in dataclasses.fields(Settings)
    if field.metadata
    for name in (field.name.replace("_", "."),)
}


def _changes(texts: Mapping[str, str]) -> dict[str, Any]:
    """The values of the changeable settings among these."""
    values = {}
    for name, text in texts.items():
        setting = SETTINGS.get(name)
        try:
            if setting is None or not setting.is_changeable:
                raise ValueError(text)
            values[name] = setting.type.parse(text)
        except ValueError:
            logger.warning("%s was set to %r at run time, which this version can't take: left out", name, text)
    return values

"""The scenarios with kafka-python."""

from __future__ import annotations

import queue
import threading
import uuid
from collections.abc import Callable, Collection, Sequence
from typing import Any

from kafka import (
    ConsumerRebalanceListener,
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    OffsetAndMetadata,
    TopicPartition,
)
from kafka.admin import (
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    ConfigResourceType,
    NewTopic,
    OffsetSpec,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import CommitFailedError, RebalanceInProgressError, SecurityDisabledError
from scenarios import PATIENCE_S, Client, Member, Record, drained, new_name, require, run

#: Longer than a join takes: a poll that ends in the middle of one can leave the consumer without its partitions.
POLL_MS = 500


def recorded(found: dict[TopicPartition, list[Any]]) -> list[Record]:
    return [Record(each.partition, each.offset, each.value) for records in found.values() for each in records]


def commit(consumer: KafkaConsumer) -> None:
    try:
        consumer.commit()
    except (CommitFailedError, RebalanceInProgressError):
        return  # a rebalance that the member learns of by its commit: what isn't committed comes again


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, member: Member) -> None:
        self._member = member

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        self._member.loses(each.partition for each in revoked)

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        self._member.gains(each.partition for each in assigned)


class PythonMember(Member):
    """A consumer in a thread of its own: members that one thread polls in turn keep each other rebalancing."""

    def __init__(self, consumer: KafkaConsumer, topic: str) -> None:
        super().__init__()
        self._consumer = consumer
        self._records: queue.Queue[Record] = queue.Queue()
        self._is_closing = threading.Event()
        self._failure: Exception | None = None
        consumer.subscribe([topic], listener=Listener(self))
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    def _live(self) -> None:
        try:
            while not self._is_closing.is_set():
                records = recorded(self._consumer.poll(timeout_ms=POLL_MS))
                for record in records:
                    self._records.put(record)
                if records:
                    commit(self._consumer)
            self._consumer.close()
        except Exception as error:
            self._failure = error

    def poll(self) -> list[Record]:
        if self._failure:
            raise self._failure
        return drained(self._records)

    def commit(self) -> None:
        """The thread commits what it has read."""

    def close(self) -> None:
        self._is_closing.set()
        self._thread.join(PATIENCE_S)
        require(not self._thread.is_alive(), f"the end of the consumer within {PATIENCE_S:.0f} s")


class PythonClient(Client):
    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap)

    def create_topic(self, topic: str, partitions: int) -> None:
        self._admin.create_topics([NewTopic(topic, partitions, 1)], wait_for_metadata=True)

    def produce(
        self, topic: str, partition: int, values: Sequence[bytes], codec: str = "none", first_timestamp_ms: int = 0
    ) -> None:
        compression = None if codec == "none" else codec
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap, acks="all", compression_type=compression, linger_ms=5
        )
        sent = [
            producer.send(
                topic,
                value,
                partition=partition,
                timestamp_ms=first_timestamp_ms + 1000 * number if first_timestamp_ms else None,
            )
            for number, value in enumerate(values)
        ]
        for each in sent:
            each.get(PATIENCE_S)
        producer.close()

    def _consumer(self, **settings: Any) -> KafkaConsumer:
        return KafkaConsumer(
            bootstrap_servers=self.bootstrap, enable_auto_commit=False, auto_offset_reset="earliest", **settings
        )

    def member(self, group: str, topic: str, instance: str | None = None, is_cooperative: bool = False) -> Member:
        consumer = self._consumer(
            group_id=group,
            session_timeout_ms=10_000,
            heartbeat_interval_ms=300,
            partition_assignment_strategy=[CooperativeStickyAssignor if is_cooperative else RangePartitionAssignor],
            **({"group_instance_id": instance} if instance else {}),
        )
        return PythonMember(consumer, topic)

    def read(self, topic: str, start: int, count: int) -> list[Record]:
        consumer = self._consumer()
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        consumer.poll(timeout_ms=5000, max_records=5)
        consumer.seek(partition, start)
        records: list[Record] = []
        while len(records) < count and (found := recorded(consumer.poll(timeout_ms=10_000, max_records=count))):
            records += found
        consumer.close()
        return records[:count]

    def offset_for_time(self, topic: str, timestamp_ms: int) -> int | None:
        consumer = self._consumer()
        partition = TopicPartition(topic, 0)
        found = consumer.offsets_for_times({partition: timestamp_ms})[partition]
        consumer.close()
        return None if found is None else int(found.offset)

    def _offset(self, topic: str, spec: OffsetSpec) -> int:
        partition = TopicPartition(topic, 0)
        return int(self._admin.list_partition_offsets({partition: spec})[partition].offset)

    def _committed(self, group: str, topic: str) -> int:
        partition = TopicPartition(topic, 0)
        return int(self._admin.list_group_offsets({group: [partition]})[group][partition].offset)

    def lag(self, group: str, topic: str) -> int:
        return self._offset(topic, OffsetSpec.LATEST) - self._committed(group, topic)

    def admin_calls(self, topic: str, group: str) -> dict[str, Callable[[], object]]:
        admin = self._admin
        other, second = new_name("made"), new_name("made")
        partition = TopicPartition(topic, 0)

        def config(resource_type: ConfigResourceType, resource: str, name: str) -> str:
            found = admin.describe_configs([ConfigResource(resource_type, resource)], config_filter="all")
            return str(found[resource_type.name.lower()][resource][name]["value"])

        def alter_configs(value: str, is_incremental: bool) -> None:
            admin.alter_configs(
                [ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": value})], incremental=is_incremental
            )
            require(config(ConfigResourceType.TOPIC, topic, "retention.ms") == value, "the altered value")

        def create_partitions() -> None:
            admin.create_partitions({other: 3})
            (found,) = admin.describe_topics([other])
            require(len(found["partitions"]) == 3, "three partitions")

        def reset_configs() -> None:
            admin.reset_configs([ConfigResource(ConfigResourceType.TOPIC, topic, ["retention.ms"])])
            require(config(ConfigResourceType.TOPIC, topic, "retention.ms") != "8000000", "the default value")

        def describe_topic_partitions() -> None:
            (found,) = admin.describe_topic_partitions([topic])["topics"]
            require(len(found["partitions"]) == 1, "one partition")

        def describe_log_dirs() -> None:
            (found,) = admin.describe_log_dirs([topic])
            (size,) = [part["partition_size"] for part in found["log_dirs"][0]["topics"][0]["partitions"]]
            require(size > 0, f"the size of the log, not {size}")

        def describe_groups() -> None:
            state = str(admin.describe_groups([group])[group]["group_state"])
            require(state == "Empty", f"state Empty, not {state}")

        def alter_group_offsets() -> None:
            admin.alter_group_offsets(group, {partition: OffsetAndMetadata(7, "", None)})
            require(self._committed(group, topic) == 7, "the altered offset")

        def reset_group_offsets() -> None:
            admin.reset_group_offsets(group, {partition: OffsetSpec.LATEST})
            require(self._committed(group, topic) == self._offset(topic, OffsetSpec.LATEST), "the end as offset")

        def delete_records() -> None:
            admin.delete_records({partition: 5})
            require(self._offset(topic, OffsetSpec.EARLIEST) == 5, "5 as the first offset")

        def delete_topics_by_id() -> None:
            self.create_topic(second, 1)
            (found,) = admin.describe_topics([second])
            admin.delete_topics([uuid.UUID(str(found["topic_id"]))])
            require(second not in admin.list_topics(), "a deleted topic")

        def describe_acls() -> None:
            anything = ACLFilter(
                None,
                "*",
                ACLOperation.ANY,
                ACLPermissionType.ANY,
                ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY),
            )
            try:
                admin.describe_acls(anything)
            except SecurityDisabledError:
                return

        (node,) = [each["broker_id"] for each in admin.describe_cluster()["brokers"]]
        return {
            "create_topics": lambda: self.create_topic(other, 1),
            "list_topics": lambda: require(other in admin.list_topics(), "the topic among those listed"),
            "create_partitions": create_partitions,
            "describe_topics": lambda: admin.describe_topics([topic]),
            "describe_topic_partitions": describe_topic_partitions,
            "describe_configs": lambda: config(ConfigResourceType.TOPIC, topic, "cleanup.policy"),
            "describe_configs of a broker": lambda: config(ConfigResourceType.BROKER, str(node), "log.retention.ms"),
            "incremental alter_configs": lambda: alter_configs("7000000", True),
            "alter_configs": lambda: alter_configs("8000000", False),
            "reset_configs": reset_configs,
            "list_config_resources": admin.list_config_resources,
            "list_groups": lambda: require(
                group in [each["group_id"] for each in admin.list_groups()], "the group among those listed"
            ),
            "describe_groups": describe_groups,
            "list_partition_offsets": lambda: require(self._offset(topic, OffsetSpec.LATEST) == 20, "20 as the end"),
            "list_group_offsets": lambda: require(self._committed(group, topic) == 20, "20 as the committed offset"),
            "alter_group_offsets": alter_group_offsets,
            "reset_group_offsets": reset_group_offsets,
            "delete_group_offsets": lambda: admin.delete_group_offsets(group, [partition]),
            "delete_groups": lambda: admin.delete_groups([group]),
            "delete_records": delete_records,
            "describe_log_dirs": describe_log_dirs,
            "describe_features": admin.describe_features,
            "describe_metadata_quorum": admin.describe_metadata_quorum,
            "describe_producers": lambda: admin.describe_producers([partition]),
            "list_partition_reassignments": admin.list_partition_reassignments,
            "describe_acls": describe_acls,
            "describe_user_scram_credentials": admin.describe_user_scram_credentials,
            "delete_topics by id": delete_topics_by_id,
            "delete_topics": lambda: admin.delete_topics([other, topic]),
        }


run(PythonClient)

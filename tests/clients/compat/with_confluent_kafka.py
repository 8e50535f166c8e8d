"""The scenarios with confluent-kafka (librdkafka)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)
from scenarios import PATIENCE_S, Client, Member, Record, new_name, require, run

POLL_S = 0.1


def checked(message: Any) -> Any:
    if message.error() is not None:
        raise KafkaException(message.error())
    return message


class ConfluentMember(Member):
    def __init__(self, settings: dict[str, Any], topic: str) -> None:
        super().__init__()
        self._consumer = Consumer(settings)
        self._is_cooperative = settings["partition.assignment.strategy"] == "cooperative-sticky"
        self._consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked)

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if self._is_cooperative:
            consumer.incremental_assign(partitions)
        else:
            consumer.assign(partitions)
        self.gains(each.partition for each in partitions)

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if self._is_cooperative:
            consumer.incremental_unassign(partitions)
        else:
            consumer.unassign()
        self.loses(each.partition for each in partitions)

    def poll(self) -> list[Record]:
        messages = [checked(each) for each in self._consumer.consume(500, POLL_S)]
        return [Record(each.partition(), each.offset(), each.value()) for each in messages]

    def commit(self) -> None:
        try:
            self._consumer.commit(asynchronous=False)
        except KafkaException as error:
            # a rebalance that the member learns of by its commit: what isn't committed comes again
            if error.args[0].code() not in (
                KafkaError.REBALANCE_IN_PROGRESS,
                KafkaError.ILLEGAL_GENERATION,
                KafkaError._NO_OFFSET,
            ):
                raise

    def close(self) -> None:
        self._consumer.close()


class ConfluentClient(Client):
    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._settings = {"bootstrap.servers": bootstrap}
        self._admin = AdminClient(self._settings)

    def create_topic(self, topic: str, partitions: int) -> None:
        done(self._admin.create_topics([NewTopic(topic, partitions, 1)]))

    def produce(
        self, topic: str, partition: int, values: Sequence[bytes], codec: str = "none", first_timestamp_ms: int = 0
    ) -> None:
        failed = []
        producer = Producer({**self._settings, "compression.type": codec, "linger.ms": 5})
        for number, value in enumerate(values):
            timestamp_ms = first_timestamp_ms + 1000 * number if first_timestamp_ms else 0
            producer.produce(
                topic,
                value,
                partition=partition,
                timestamp=timestamp_ms,
                on_delivery=lambda error, _: failed.append(error) if error else None,
            )
        require(producer.flush(PATIENCE_S) == 0 and not failed, f"answers to what was produced {failed[:1]}")

    def _consumer_settings(self, group: str) -> dict[str, Any]:
        return {
            **self._settings,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 10_000,
            "heartbeat.interval.ms": 300,
            "partition.assignment.strategy": "range",
        }

    def member(self, group: str, topic: str, instance: str | None = None, is_cooperative: bool = False) -> Member:
        settings = self._consumer_settings(group)
        if instance:
            settings["group.instance.id"] = instance
        if is_cooperative:
            settings["partition.assignment.strategy"] = "cooperative-sticky"
        return ConfluentMember(settings, topic)

    def read(self, topic: str, start: int, count: int) -> list[Record]:
        consumer = Consumer(self._consumer_settings(new_name("reader")))
        consumer.assign([TopicPartition(topic, 0, 5)])
        if consumer.poll(PATIENCE_S) is None:
            return []
        consumer.seek(TopicPartition(topic, 0, start))
        messages: list[Any] = []
        while len(messages) < count and (message := consumer.poll(PATIENCE_S)) is not None:
            messages.append(checked(message))
        consumer.close()
        return [Record(each.partition(), each.offset(), each.value()) for each in messages]

    def offset_for_time(self, topic: str, timestamp_ms: int) -> int | None:
        consumer = Consumer(self._consumer_settings(new_name("reader")))
        (found,) = consumer.offsets_for_times([TopicPartition(topic, 0, timestamp_ms)], PATIENCE_S)
        consumer.close()
        return None if found.offset < 0 else found.offset

    def _end(self, topic: str) -> int:
        return int(only(self._admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.latest()})).offset)

    def _committed(self, group: str, topic: str) -> int:
        wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])
        return int(only(self._admin.list_consumer_group_offsets([wanted])).topic_partitions[0].offset)

    def lag(self, group: str, topic: str) -> int:
        return self._end(topic) - self._committed(group, topic)

    def admin_calls(self, topic: str, group: str) -> dict[str, Callable[[], object]]:
        admin = self._admin
        other = new_name("made")

        def config(name: str) -> Any:
            found = only(admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]))
            return found[name].value

        def incremental_alter_configs() -> None:
            entry = ConfigEntry("retention.ms", "7000000", incremental_operation=AlterConfigOpType.SET)
            done(
                admin.incremental_alter_configs(
                    [ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])]
                )
            )
            require(config("retention.ms") == "7000000", "the altered value")

        def alter_configs() -> None:
            done(
                admin.alter_configs(
                    [ConfigResource(ConfigResource.Type.TOPIC, topic, set_config={"retention.ms": "8000000"})]
                )
            )
            require(config("retention.ms") == "8000000", "the altered value")

        def describe_configs_of_a_broker() -> None:
            (node,) = admin.list_topics(timeout=PATIENCE_S).brokers
            found = only(admin.describe_configs([ConfigResource(ConfigResource.Type.BROKER, str(node))]))
            require("log.retention.ms" in found, "log.retention.ms")

        def create_partitions() -> None:
            done(admin.create_partitions([NewPartitions(other, 3)]))
            require(len(only(admin.describe_topics(TopicCollection([other]))).partitions) == 3, "three partitions")

        def list_consumer_groups() -> None:
            found = admin.list_consumer_groups().result(PATIENCE_S)
            require(group in [each.group_id for each in found.valid], "the group among those listed")

        def describe_consumer_groups() -> None:
            found = only(admin.describe_consumer_groups([group]))
            require(found.state.name == "EMPTY", f"state Empty, not {found.state.name}")

        def alter_consumer_group_offsets() -> None:
            wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 7)])
            done(admin.alter_consumer_group_offsets([wanted]))
            require(self._committed(group, topic) == 7, "the altered offset")

        def delete_records() -> None:
            require(only(admin.delete_records([TopicPartition(topic, 0, 5)])).low_watermark == 5, "low watermark 5")
            first = only(admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.earliest()})).offset
            require(first == 5, "5 as the first offset")

        def describe_acls() -> None:
            anything = AclBindingFilter(
                ResourceType.ANY,
                None,
                ResourcePatternType.ANY,
                None,
                None,
                AclOperation.ANY,
                AclPermissionType.ANY,
            )
            try:
                admin.describe_acls(anything).result(PATIENCE_S)
            except KafkaException as error:
                require(error.args[0].code() == KafkaError.SECURITY_DISABLED, str(error))

        return {
            "describe_cluster": lambda: admin.describe_cluster().result(PATIENCE_S),
            "create_topics": lambda: self.create_topic(other, 1),
            "list_topics": lambda: require(other in admin.list_topics(timeout=PATIENCE_S).topics, "the topic"),
            "create_partitions": create_partitions,
            "describe_topics": lambda: only(admin.describe_topics(TopicCollection([topic]))),
            "list_offsets": lambda: require(self._end(topic) == 20, "20 as the end"),
            "describe_configs": lambda: config("cleanup.policy"),
            "describe_configs of a broker": describe_configs_of_a_broker,
            "incremental_alter_configs": incremental_alter_configs,
            "alter_configs": alter_configs,
            "list_consumer_groups": list_consumer_groups,
            "list_groups": lambda: require(
                group in [each.id for each in admin.list_groups(timeout=PATIENCE_S)], "the group among those listed"
            ),
            "describe_consumer_groups": describe_consumer_groups,
            "list_consumer_group_offsets": lambda: require(
                self._committed(group, topic) == 20, "20 as the committed offset"
            ),
            "alter_consumer_group_offsets": alter_consumer_group_offsets,
            "delete_consumer_groups": lambda: done(admin.delete_consumer_groups([group])),
            "delete_records": delete_records,
            "describe_acls": describe_acls,
            "describe_user_scram_credentials": lambda: admin.describe_user_scram_credentials().result(PATIENCE_S),
            "delete_topics": lambda: done(admin.delete_topics([other, topic])),
        }


def done(futures: dict[Any, Any]) -> None:
    for future in futures.values():
        future.result(PATIENCE_S)


def only(futures: dict[Any, Any]) -> Any:
    (future,) = futures.values()
    return future.result(PATIENCE_S)


run(ConfluentClient)

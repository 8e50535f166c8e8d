"""The scenarios with aiokafka, its loop turned from outside."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import CommitFailedError, IllegalStateError
from scenarios import PATIENCE_S, Client, Member, NotInClient, Record, new_name, require, run, until

POLL_MS = 100
LOOP = asyncio.new_event_loop()


def wait(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Turn the loop until the coroutine ends."""
    return LOOP.run_until_complete(asyncio.wait_for(coroutine, PATIENCE_S))


def wait_a_little() -> None:
    wait(asyncio.sleep(POLL_MS / 1000))


def recorded(found: dict[TopicPartition, list[Any]]) -> list[Record]:
    return [Record(each.partition, each.offset, each.value) for records in found.values() for each in records]


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, member: Member) -> None:
        self._member = member

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        self._member.loses(each.partition for each in revoked)

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        self._member.gains(each.partition for each in assigned)


class AioMember(Member):
    def __init__(self, topic: str, **settings: Any) -> None:
        super().__init__()
        self._consumer = wait(self._started(topic, settings))

    async def _started(self, topic: str, settings: dict[str, Any]) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(**settings)
        consumer.subscribe([topic], listener=Listener(self))
        # with one loop for all members, a start that waited for its assignment would hold up the others
        self._start = asyncio.ensure_future(consumer.start())
        return consumer

    def poll(self) -> list[Record]:
        if not self._start.done():
            wait_a_little()
            return []
        self._start.result()
        return recorded(wait(self._consumer.getmany(timeout_ms=POLL_MS)))

    def commit(self) -> None:
        try:
            wait(self._consumer.commit())
        except (CommitFailedError, IllegalStateError):
            return  # a rebalance that the member learns of by its commit: what isn't committed comes again

    def close(self) -> None:
        wait(self._consumer.stop())


class AioClient(Client):
    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._admin: AIOKafkaAdminClient = wait(self._started_admin())

    async def _started_admin(self) -> AIOKafkaAdminClient:
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        await admin.start()
        return admin

    def create_topic(self, topic: str, partitions: int) -> None:
        (error,) = wait(self._admin.create_topics([NewTopic(topic, partitions, 1)])).topic_errors
        require(error[1] == 0, f"the topic {topic}: {error}")

    def produce(
        self, topic: str, partition: int, values: Sequence[bytes], codec: str = "none", first_timestamp_ms: int = 0
    ) -> None:
        async def all_sent() -> None:
            compression = None if codec == "none" else codec
            async with AIOKafkaProducer(
                bootstrap_servers=self.bootstrap, acks="all", compression_type=compression, linger_ms=5
            ) as producer:
                sent = [
                    await producer.send(
                        topic,
                        value,
                        partition=partition,
                        timestamp_ms=first_timestamp_ms + 1000 * number if first_timestamp_ms else None,
                    )
                    for number, value in enumerate(values)
                ]
                await asyncio.gather(*sent)

        wait(all_sent())

    def member(self, group: str, topic: str, instance: str | None = None, is_cooperative: bool = False) -> Member:
        if is_cooperative:
            raise NotInClient("aiokafka has no cooperative assignor")
        return AioMember(
            topic,
            bootstrap_servers=self.bootstrap,
            group_id=group,
            group_instance_id=instance,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=10_000,
            heartbeat_interval_ms=300,
            partition_assignment_strategy=[RangePartitionAssignor],
        )

    def read(self, topic: str, start: int, count: int) -> list[Record]:
        async def read() -> list[Record]:
            partition = TopicPartition(topic, 0)
            async with AIOKafkaConsumer(bootstrap_servers=self.bootstrap, auto_offset_reset="earliest") as consumer:
                consumer.assign([partition])
                await consumer.getmany(timeout_ms=5000, max_records=5)
                consumer.seek(partition, start)
                records: list[Record] = []
                while len(records) < count and (
                    found := recorded(await consumer.getmany(timeout_ms=10_000, max_records=count))
                ):
                    records += found
                return records[:count]

        return list(wait(read()))

    def _asked(self, ask: Callable[[AIOKafkaConsumer, TopicPartition], Coroutine[Any, Any, Any]], topic: str) -> Any:
        async def asked() -> Any:
            async with AIOKafkaConsumer(bootstrap_servers=self.bootstrap) as consumer:
                partition = TopicPartition(topic, 0)
                return (await ask(consumer, partition))[partition]

        return wait(asked())

    def offset_for_time(self, topic: str, timestamp_ms: int) -> int | None:
        found = self._asked(lambda consumer, partition: consumer.offsets_for_times({partition: timestamp_ms}), topic)
        return None if found is None else int(found.offset)

    def lag(self, group: str, topic: str) -> int:
        end = self._asked(lambda consumer, partition: consumer.end_offsets([partition]), topic)
        return int(end) - self._committed(group, topic)

    def _committed(self, group: str, topic: str) -> int:
        return int(wait(self._admin.list_consumer_group_offsets(group))[TopicPartition(topic, 0)].offset)

    def admin_calls(self, topic: str, group: str) -> dict[str, Callable[[], object]]:
        admin = self._admin
        other = new_name("made")
        partition = TopicPartition(topic, 0)

        def config(resource_type: ConfigResourceType, resource: str, name: str) -> str:
            (response,) = wait(admin.describe_configs([ConfigResource(resource_type, resource)]))
            ((error, text, _, _, entries),) = response.resources
            require(error == 0, str(text))
            return {str(entry[0]): str(entry[1]) for entry in entries}[name]

        def alter_configs() -> None:
            wait(admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "8000000"})]))
            until(
                lambda: config(ConfigResourceType.TOPIC, topic, "retention.ms") == "8000000",
                wait_a_little,
                "the altered value",
            )

        def create_partitions() -> None:
            wait(admin.create_partitions({other: NewPartitions(3)}))
            until(
                lambda: len(wait(admin.describe_topics([other]))[0]["partitions"]) == 3,
                wait_a_little,
                "three partitions",
            )

        def list_consumer_groups() -> None:
            require(group in [each[0] for each in wait(admin.list_consumer_groups())], "the group among those listed")

        def describe_consumer_groups() -> None:
            (response,) = wait(admin.describe_consumer_groups([group]))
            state = response.groups[0][2]
            require(state == "Empty", f"state Empty, not {state}")

        def delete_records() -> None:
            wait(admin.delete_records({partition: RecordsToDelete(before_offset=5)}))
            first = self._asked(lambda consumer, partition: consumer.beginning_offsets([partition]), topic)
            require(first == 5, "5 as the first offset")

        def delete_topics() -> None:
            codes = [code for _, code in wait(admin.delete_topics([other, topic])).topic_error_codes]
            require(codes == [0, 0], f"no errors, not {codes}")

        (node,) = [each["node_id"] for each in wait(admin.describe_cluster())["brokers"]]
        return {
            "create_topics": lambda: self.create_topic(other, 1),
            "list_topics": lambda: require(other in wait(admin.list_topics()), "the topic among those listed"),
            "create_partitions": create_partitions,
            "describe_topics": lambda: wait(admin.describe_topics([topic])),
            "describe_configs": lambda: config(ConfigResourceType.TOPIC, topic, "cleanup.policy"),
            "describe_configs of a broker": lambda: config(ConfigResourceType.BROKER, str(node), "log.retention.ms"),
            "alter_configs": alter_configs,
            "find_coordinator": lambda: wait(admin.find_coordinator(group)),
            "list_consumer_groups": list_consumer_groups,
            "describe_consumer_groups": describe_consumer_groups,
            "list_consumer_group_offsets": lambda: require(
                self._committed(group, topic) == 20, "20 as the committed offset"
            ),
            "delete_records": delete_records,
            "delete_topics": delete_topics,
        }


run(AioClient)

"""Whether a cluster image agrees with itself: what every sequence of commands must leave true."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from walrusmq.broker.image import ClusterImage
    from walrusmq.broker.image_parts import PartitionImage
    from walrusmq.segments.facts import OpenSegment, SealedSegment


def check_image(image: ClusterImage) -> None:
    """Raise AssertionError, saying what and where, for the first contradiction found."""
    by_name = {topic.name: topic for topic in image.topics.values()}
    assert image.topics_by_name == by_name, "topics by name and by id differ"
    assert all(topic_id == topic.id for topic_id, topic in image.topics.items()), "a topic has another id than its key"
    assert all(topic.partitions for topic in image.topics.values()), "a topic has no partitions"
    assert all(node_id == node.id for node_id, node in image.nodes.items()), "a node has another id than its key"
    assert all(0 < node.incarnation <= image.applied_index for node in image.nodes.values()), (
        "an incarnation is to come"
    )
    assert 0 <= image.next_producer_id < 2**63, f"next producer id {image.next_producer_id}"
    assert all(image.node_configs.values()), "a node's configs are kept though empty"
    for topic, index, partition in image.partitions():
        check_partition(partition, image, f"{topic.name}-{index}")
    _check_counts(image)


def check_partition(partition: PartitionImage, image: ClusterImage, name: str) -> None:
    """Raise AssertionError unless the partition's segments are one chain, and its nodes are known."""
    chain: list[SealedSegment | OpenSegment] = [*partition.sealed, partition.open]
    assert chain[0].id >= 1, f"{name}: segment ids begin at {chain[0].id}"
    assert chain[0].id > 1 or chain[0].first_offset == 0, f"{name}: segment 1 doesn't begin at 0"
    if partition.sealed:
        assert partition.sealed[0].end_offset >= partition.log_start_offset, f"{name}: the log starts behind a segment"
    for segment in partition.sealed:
        assert segment.first_offset <= segment.end_offset, f"{name}: segment {segment.id} has a negative count"
    for before, after in zip(partition.sealed, chain[1:], strict=True):
        where = f"{name}: segment {after.id}"
        assert after.id > before.id, f"{where} follows {before.id}"
        # where compaction has left nothing of a segment, the next one doesn't follow on the one before
        is_next = after.id == before.id + 1
        assert after.first_offset == before.end_offset or (not is_next and after.first_offset > before.end_offset), (
            f"{where} doesn't begin where {before.id} ends"
        )
        assert after.leader_epoch in (before.leader_epoch, after.id - 1) or (
            not is_next and before.leader_epoch < after.leader_epoch < after.id
        ), f"{where} has epoch {after.leader_epoch}"
        kept = after.leader_epoch == before.leader_epoch
        assert not kept or after.leader == before.leader, f"{where} has another leader in the same epoch"
    opened = partition.open
    assert opened.leader in opened.members, f"{name}: the leader {opened.leader} is none of {opened.members}"
    assert {*opened.members, *partition.assigned} <= image.nodes.keys(), f"{name}: has nodes that aren't registered"
    assert len(partition.member_incarnations) == len(opened.members), f"{name}: members and incarnations differ"


def _check_counts(image: ClusterImage) -> None:
    partitions = [partition for _, _, partition in image.partitions()]
    sealed = sum(len(partition.sealed) for partition in partitions)
    assert image.partition_count == len(partitions), f"{image.partition_count} partitions counted"
    assert image.sealed_segment_count == sealed, f"{image.sealed_segment_count} sealed segments counted"
    assert image.led_counts == Counter(partition.open.leader for partition in partitions), "leaders are counted wrong"

"""The exceptions that stand for Kafka's error codes, and those of the codecs.

An error is raised where it is found, as a type with its code, and turned into a response in one place.
"""

from __future__ import annotations

from typing import ClassVar

from walrusmq.protocol.error_codes import ErrorCode as ErrorCode


class MalformedMessage(ValueError):
    """Bytes that aren't the message they should be. Kafka closes the connection on them."""


class UnencodableMessage(ValueError):
    """A message holds something that its version can't carry: a fault of the caller, never of a peer."""


class UnsupportedField(UnencodableMessage):
    """A field that the version doesn't have, and that may not be dropped silently, holds a value."""


class ValueOutOfRange(UnencodableMessage):
    """A value doesn't fit its field: too large, too long, null or of another type."""


class KafkaError(Exception):
    """An error that a client gets as a code, with the message where the response has room for one."""

    code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR


class OffsetOutOfRange(KafkaError):
    """The offset lies outside what the partition holds."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE


class CorruptMessage(KafkaError):
    """A batch fails its CRC, or its lengths don't fit."""

    code = ErrorCode.CORRUPT_MESSAGE


class UnknownTopicOrPartition(KafkaError):
    """This node hosts no such topic or partition."""

    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class LeaderNotAvailable(KafkaError):
    """The partition has no leader now; the client should ask again."""

    code = ErrorCode.LEADER_NOT_AVAILABLE


class NotLeaderOrFollower(KafkaError):
    """This node doesn't lead the partition, and nothing was written; the client should refresh its metadata."""

    code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class RequestTimedOut(KafkaError):
    """The outcome wasn't known in the time that the request gave."""

    code = ErrorCode.REQUEST_TIMED_OUT


class BrokerNotAvailable(KafkaError):
    """The asked node isn't part of the cluster."""

    code = ErrorCode.BROKER_NOT_AVAILABLE


class ReplicaNotAvailable(KafkaError):
    """The replica that the request names isn't there."""

    code = ErrorCode.REPLICA_NOT_AVAILABLE


class MessageTooLarge(KafkaError):
    """A batch is larger than ``max.message.bytes``."""

    code = ErrorCode.MESSAGE_TOO_LARGE


class CoordinatorLoadInProgress(KafkaError):
    """The coordinator is still reading its state."""

    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class CoordinatorNotAvailable(KafkaError):
    """There is no coordinator for the key now."""

    code = ErrorCode.COORDINATOR_NOT_AVAILABLE


class NotCoordinator(KafkaError):
    """This node doesn't coordinate the key."""

    code = ErrorCode.NOT_COORDINATOR


class InvalidTopic(KafkaError):
    """The topic's name is illegal, or the topic may not be used so."""

    code = ErrorCode.INVALID_TOPIC_EXCEPTION


class RecordListTooLarge(KafkaError):
    """A batch is larger than a segment may be."""

    code = ErrorCode.RECORD_LIST_TOO_LARGE


class NotEnoughReplicas(KafkaError):
    """Fewer replicas than ``min.insync.replicas``; nothing was written."""

    code = ErrorCode.NOT_ENOUGH_REPLICAS


class NotEnoughReplicasAfterAppend(KafkaError):
    """Appended, but not known to be on enough replicas."""

    code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


class InvalidRequiredAcks(KafkaError):
    """``acks`` is none of -1, 0, 1."""

    code = ErrorCode.INVALID_REQUIRED_ACKS


class InvalidTimestamp(KafkaError):
    """A record's timestamp is too far from the broker's clock."""

    code = ErrorCode.INVALID_TIMESTAMP


class UnsupportedVersion(KafkaError):
    """The API, or this version of it, isn't known here."""

    code = ErrorCode.UNSUPPORTED_VERSION


class TopicAlreadyExists(KafkaError):
    """A topic of that name exists."""

    code = ErrorCode.TOPIC_ALREADY_EXISTS


class InvalidPartitions(KafkaError):
    """The number of partitions isn't possible."""

    code = ErrorCode.INVALID_PARTITIONS


class InvalidReplicationFactor(KafkaError):
    """The replication factor is below 1 or above the number of nodes."""

    code = ErrorCode.INVALID_REPLICATION_FACTOR


class InvalidReplicaAssignment(KafkaError):
    """The given assignment of replicas isn't possible."""

    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT


class InvalidConfig(KafkaError):
    """A config's name or value isn't allowed."""

    code = ErrorCode.INVALID_CONFIG


class NotController(KafkaError):
    """This node isn't the controller."""

    code = ErrorCode.NOT_CONTROLLER


class InvalidRequest(KafkaError):
    """The request contradicts itself or the protocol."""

    code = ErrorCode.INVALID_REQUEST


class UnsupportedForMessageFormat(KafkaError):
    """The format of the batch (magic 0 or 1) isn't served any more (KIP-724)."""

    code = ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


class PolicyViolation(KafkaError):
    """The request breaks a policy of this cluster."""

    code = ErrorCode.POLICY_VIOLATION


class OutOfOrderSequenceNumber(KafkaError):
    """A producer's sequence leaves a gap (KIP-98)."""

    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class DuplicateSequenceNumber(KafkaError):
    """A producer's batch is older than those remembered (KIP-98)."""

    code = ErrorCode.DUPLICATE_SEQUENCE_NUMBER


class InvalidProducerEpoch(KafkaError):
    """The producer's epoch is older than the one known (KIP-98)."""

    code = ErrorCode.INVALID_PRODUCER_EPOCH


class InvalidTxnState(KafkaError):
    """The transaction isn't in a state that allows this."""

    code = ErrorCode.INVALID_TXN_STATE


class InvalidProducerIdMapping(KafkaError):
    """The producer id isn't that of the transactional id."""

    code = ErrorCode.INVALID_PRODUCER_ID_MAPPING


class InvalidTransactionTimeout(KafkaError):
    """The transaction timeout is above the cluster's maximum."""

    code = ErrorCode.INVALID_TRANSACTION_TIMEOUT


class ConcurrentTransactions(KafkaError):
    """The transaction before this one isn't finished yet."""

    code = ErrorCode.CONCURRENT_TRANSACTIONS


class KafkaStorageError(KafkaError):
    """The disk refused, and nothing was written."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class UnknownProducerId(KafkaError):
    """The partition remembers nothing of the producer."""

    code = ErrorCode.UNKNOWN_PRODUCER_ID


class FetchSessionIdNotFound(KafkaError):
    """The fetch session isn't known; the client should start a new one (KIP-227)."""

    code = ErrorCode.FETCH_SESSION_ID_NOT_FOUND


class InvalidFetchSessionEpoch(KafkaError):
    """The fetch session's epoch isn't the next one (KIP-227)."""

    code = ErrorCode.INVALID_FETCH_SESSION_EPOCH


class FencedLeaderEpoch(KafkaError):
    """The client's leader epoch is older than the partition's (KIP-320)."""

    code = ErrorCode.FENCED_LEADER_EPOCH


class UnknownLeaderEpoch(KafkaError):
    """The client's leader epoch is newer than this node knows (KIP-320)."""

    code = ErrorCode.UNKNOWN_LEADER_EPOCH


class UnsupportedCompressionType(KafkaError):
    """The version of the request doesn't know the batch's compression."""

    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


class OffsetNotAvailable(KafkaError):
    """The high watermark isn't certain yet."""

    code = ErrorCode.OFFSET_NOT_AVAILABLE


class InvalidRecord(KafkaError):
    """A record breaks the rules of its topic or format."""

    code = ErrorCode.INVALID_RECORD


class ThrottlingQuotaExceeded(KafkaError):
    """A quota is used up (KIP-599)."""

    code = ErrorCode.THROTTLING_QUOTA_EXCEEDED


class ProducerFenced(KafkaError):
    """A newer producer with the same transactional id exists."""

    code = ErrorCode.PRODUCER_FENCED


class ResourceNotFound(KafkaError):
    """The named resource doesn't exist."""

    code = ErrorCode.RESOURCE_NOT_FOUND


class UnknownTopicId(KafkaError):
    """This node hosts no topic with that id (KIP-516)."""

    code = ErrorCode.UNKNOWN_TOPIC_ID


class InconsistentTopicId(KafkaError):
    """The topic id isn't the one of that partition (KIP-516)."""

    code = ErrorCode.INCONSISTENT_TOPIC_ID


class InconsistentClusterId(KafkaError):
    """The request is meant for another cluster."""

    code = ErrorCode.INCONSISTENT_CLUSTER_ID


class FetchSessionTopicIdError(KafkaError):
    """A fetch session mixes topic names and topic ids (KIP-516)."""

    code = ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


class MismatchedEndpointType(KafkaError):
    """The request is for controllers, or for brokers, and this is the other (KIP-919)."""

    code = ErrorCode.MISMATCHED_ENDPOINT_TYPE


class UnsupportedEndpointType(KafkaError):
    """The endpoint type isn't known (KIP-919)."""

    code = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE


class TransactionAbortable(KafkaError):
    """The transaction must be aborted, and can then be tried again (KIP-890)."""

    code = ErrorCode.TRANSACTION_ABORTABLE


class RebootstrapRequired(KafkaError):
    """The client expects another cluster or node here; it should bootstrap anew (KIP-1102, KIP-1242)."""

    code = ErrorCode.REBOOTSTRAP_REQUIRED


class InvalidCommitOffsetSize(KafkaError):
    """The offsets of one commit don't fit into a batch."""

    code = ErrorCode.INVALID_COMMIT_OFFSET_SIZE


class InvalidGroupId(KafkaError):
    """The group's id is empty."""

    code = ErrorCode.INVALID_GROUP_ID


class IllegalGeneration(KafkaError):
    """The generation isn't the group's present one."""

    code = ErrorCode.ILLEGAL_GENERATION


class InconsistentGroupProtocol(KafkaError):
    """The member's protocols don't fit those of the group."""

    code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL


class UnknownMemberId(KafkaError):
    """The group has no such member."""

    code = ErrorCode.UNKNOWN_MEMBER_ID


class InvalidSessionTimeout(KafkaError):
    """The session timeout isn't within the node's limits."""

    code = ErrorCode.INVALID_SESSION_TIMEOUT


class RebalanceInProgress(KafkaError):
    """The group rebalances; the member should join again."""

    code = ErrorCode.REBALANCE_IN_PROGRESS


class NonEmptyGroup(KafkaError):
    """The group has members."""

    code = ErrorCode.NON_EMPTY_GROUP


class GroupIdNotFound(KafkaError):
    """There is no such group."""

    code = ErrorCode.GROUP_ID_NOT_FOUND


class MemberIdRequired(KafkaError):
    """The member should join again with the id that it gets (KIP-394)."""

    code = ErrorCode.MEMBER_ID_REQUIRED


class GroupMaxSizeReached(KafkaError):
    """The group has as many members as it may have."""

    code = ErrorCode.GROUP_MAX_SIZE_REACHED


class FencedInstanceId(KafkaError):
    """Another member has this ``group.instance.id`` now (KIP-345)."""

    code = ErrorCode.FENCED_INSTANCE_ID

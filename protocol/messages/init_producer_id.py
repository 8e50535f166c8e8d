"""InitProducerId: give a producer its id and epoch (KIP-98, KIP-360)."""

from __future__ import annotations

from walrusmq.protocol.primitives import Bool, Int16, Int32, Int64, String
from walrusmq.protocol.schema import field, message


@message(api_key=22, kind="request", versions="0-6", flexible="2+", unstable="6")
class InitProducerIdRequest:
    """Ask for a producer id, or a new epoch for one (KIP-360); version 6 adds two-phase commit (KIP-939)."""

    transactional_id: str | None = field(String, "0+", nullable="0+")
    transaction_timeout_ms: int = field(Int32, "0+")
    producer_id: int = field(Int64, "3+", default=-1)
    producer_epoch: int = field(Int16, "3+", default=-1)
    enable2_pc: bool = field(Bool, "6+")
    keep_prepared_txn: bool = field(Bool, "6+")


@message(api_key=22, kind="response", versions="0-6", flexible="2+", unstable="6")
class InitProducerIdResponse:
    """The producer's id and epoch, -1 in an error."""

    throttle_time_ms: int = field(Int32, "0+", ignorable=True)
    error_code: int = field(Int16, "0+")
    producer_id: int = field(Int64, "0+", default=-1)
    producer_epoch: int = field(Int16, "0+")
    ongoing_txn_producer_id: int = field(Int64, "6+", default=-1)
    ongoing_txn_producer_epoch: int = field(Int16, "6+", default=-1)

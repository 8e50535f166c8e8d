"""What clients may do, as Kafka without an authorizer says it: everything that there is to do (KIP-430)."""

from __future__ import annotations

#: Bits are Kafka's AclOperations: READ 3, WRITE 4, CREATE 5, DELETE 6, ALTER 7, DESCRIBE 8, CLUSTER_ACTION 9,
#: DESCRIBE_CONFIGS 10, ALTER_CONFIGS 11, IDEMPOTENT_WRITE 12.
TOPIC_OPERATIONS = sum(1 << bit for bit in (3, 4, 5, 6, 7, 8, 10, 11))
CLUSTER_OPERATIONS = sum(1 << bit for bit in (5, 7, 8, 9, 10, 11, 12))
GROUP_OPERATIONS = sum(1 << bit for bit in (3, 6, 8, 10, 11))
#: The client didn't ask.
NOT_ASKED_FOR = -0x8000_0000

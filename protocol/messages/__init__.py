"""The APIs that WalrusMQ can read and write, by their keys; the messages of each stand in a module of its name.

A module is loaded when its messages are first asked for, so that a start pays for those only that it uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from typing import Any


class Api:
    """An API: its key and name, its messages, and its stable versions from ``min_version`` to ``max_version``.

    The messages may be readable in later, unstable versions too. Clients are told ``advertised_min_version``.
    """

    def __init__(
        self, key: int, name: str, min_version: int, max_version: int, advertised_min_version: int | None = None
    ) -> None:
        self.key = key
        self.name = name
        self.min_version = min_version
        self.max_version = max_version
        self.advertised_min_version = min_version if advertised_min_version is None else advertised_min_version

    @cached_property
    def request(self) -> Any:
        """The class of the request."""
        return getattr(self._module(), f"{self.name}Request")

    @cached_property
    def response(self) -> Any:
        """The class of the response."""
        return getattr(self._module(), f"{self.name}Response")

    def _module(self) -> Any:
        words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in self.name)
        return import_module(f"{__name__}.{words.removeprefix('_')}")

    def __repr__(self) -> str:
        return f"<Api {self.key} {self.name} {self.min_version}-{self.max_version}>"


API_BY_KEY: dict[int, Api] = {
    api.key: api
    for api in (
        # Old librdkafka takes a broker without Produce 0 for one that can't compress: KAFKA-18659.
        Api(0, "Produce", 3, 13, advertised_min_version=0),
        Api(1, "Fetch", 4, 18),
        Api(2, "ListOffsets", 1, 11),
        Api(3, "Metadata", 0, 13),
        Api(8, "OffsetCommit", 2, 10),
        Api(9, "OffsetFetch", 1, 10),
        Api(10, "FindCoordinator", 0, 6),
        Api(11, "JoinGroup", 0, 9),
        Api(12, "Heartbeat", 0, 4),
        Api(13, "LeaveGroup", 0, 5),
        Api(14, "SyncGroup", 0, 5),
        Api(15, "DescribeGroups", 0, 6),
        Api(16, "ListGroups", 0, 5),
        Api(18, "ApiVersions", 0, 5),
        Api(19, "CreateTopics", 2, 7),
        Api(20, "DeleteTopics", 1, 6),
        Api(21, "DeleteRecords", 0, 2),
        Api(22, "InitProducerId", 0, 5),
        Api(23, "OffsetForLeaderEpoch", 2, 4),
        Api(29, "DescribeAcls", 1, 3),
        Api(30, "CreateAcls", 1, 3),
        Api(31, "DeleteAcls", 1, 3),
        Api(32, "DescribeConfigs", 1, 4),
        Api(33, "AlterConfigs", 0, 2),
        Api(35, "DescribeLogDirs", 1, 5),
        Api(37, "CreatePartitions", 0, 3),
        Api(42, "DeleteGroups", 0, 3),
        Api(44, "IncrementalAlterConfigs", 0, 1),
        Api(46, "ListPartitionReassignments", 0, 0),
        Api(47, "OffsetDelete", 0, 0),
        Api(48, "DescribeClientQuotas", 0, 1),
        Api(50, "DescribeUserScramCredentials", 0, 0),
        Api(55, "DescribeQuorum", 0, 2),
        Api(60, "DescribeCluster", 0, 2),
        Api(61, "DescribeProducers", 0, 0),
        Api(74, "ListConfigResources", 0, 1),
        Api(75, "DescribeTopicPartitions", 0, 0),
    )
}

MODULE_BY_MESSAGE = {
    "RequestHeader": "headers",
    "ResponseHeader": "headers",
    "OffsetCommitKey": "group_records",
    "OffsetCommitValue": "group_records",
    "GroupMetadataKey": "group_records",
    "GroupMetadataValue": "group_records",
    "ConsumerProtocolSubscription": "consumer_protocol",
    "ConsumerProtocolAssignment": "consumer_protocol",
}


class _OtherMessages(Mapping[str, type]):
    """Classes by their names, each loaded when it is asked for."""

    def __getitem__(self, name: str) -> type:
        cls: type = getattr(import_module(f"{__name__}.{MODULE_BY_MESSAGE[name]}"), name)
        return cls

    def __contains__(self, name: object) -> bool:
        return name in MODULE_BY_MESSAGE

    def __iter__(self) -> Iterator[str]:
        return iter(MODULE_BY_MESSAGE)

    def __len__(self) -> int:
        return len(MODULE_BY_MESSAGE)


MESSAGES_BY_NAME: Mapping[str, type] = _OtherMessages()
"""What is declared and is neither a request nor a response."""

import subprocess
import sys

from walrusmq.protocol.messages import API_BY_KEY

HEAVY = ("asyncio", "dataclasses", "uuid", "email", "ssl", "json", "hypothesis", "prometheus_client", "lz4", "cramjam")


def test_the_apis_are_those_of_kafka_in_its_stable_versions() -> None:
    assert {(api.key, api.name, api.min_version, api.max_version) for api in API_BY_KEY.values()} == {
        (0, "Produce", 3, 13),
        (1, "Fetch", 4, 18),
        (2, "ListOffsets", 1, 11),
        (3, "Metadata", 0, 13),
        (10, "FindCoordinator", 0, 6),
        (18, "ApiVersions", 0, 5),
        (19, "CreateTopics", 2, 7),
        (20, "DeleteTopics", 1, 6),
        (22, "InitProducerId", 0, 5),
        (23, "OffsetForLeaderEpoch", 2, 4),
        (32, "DescribeConfigs", 1, 4),
        (60, "DescribeCluster", 0, 2),
        (75, "DescribeTopicPartitions", 0, 0),
    }


def test_only_produce_is_advertised_from_a_version_that_nobody_could_use() -> None:
    advertised = {api.name: api.advertised_min_version for api in API_BY_KEY.values()}
    assert advertised == {**{api.name: api.min_version for api in API_BY_KEY.values()}, "Produce": 0}


def test_declaring_all_messages_loads_nothing_heavy_beyond_construct() -> None:
    program = (
        "import sys, construct; before = set(sys.modules); import walrusmq.protocol.frames; "
        "print(*sorted(set(sys.modules) - before))"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    loaded = {name.partition(".")[0] for name in output.split()}
    assert not loaded & set(HEAVY)
    assert "walrusmq.protocol.decoder_compiler" not in output, "compilers are loaded at the first use of a codec"

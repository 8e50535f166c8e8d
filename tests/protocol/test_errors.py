import gzip
import json
from pathlib import Path

from walrusmq.protocol import errors
from walrusmq.protocol.errors import ErrorCode, KafkaError

FACTS = json.loads(gzip.decompress((Path(__file__).parents[1] / "data" / "wire" / "facts.json.gz").read_bytes()))


def test_every_error_code_of_kafka_has_its_number_and_says_whether_to_retry() -> None:
    expected = {(row["name"], row["code"], row["retriable"]) for row in FACTS["errors"]}
    assert {(code.name, code.value, code.is_retriable) for code in ErrorCode} == expected


def test_each_exception_stands_for_a_code_of_its_own() -> None:
    classes = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, KafkaError)]
    codes = [cls.code for cls in classes]
    assert len(set(codes)) == len(codes)
    for cls in classes:
        assert cls.__name__.lower() in {
            cls.code.name.replace("_", "").lower(),
            cls.code.name.removesuffix("_EXCEPTION").replace("_", "").lower(),
            "kafkaerror",
        }


def test_an_error_without_a_code_of_its_own_is_the_unknown_one() -> None:
    assert KafkaError("why").code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert str(KafkaError("why")) == "why"

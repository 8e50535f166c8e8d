import gzip
from pathlib import Path
from typing import Any

import pytest

from walrusmq.protocol.vectors import NotDeclared, UnreadableVectors, check_vector, message_class, read_vectors, title

WIRE = Path(__file__).parents[1] / "data" / "wire"
PRIMITIVES = WIRE / "primitives.jsonl.gz"
HEADER = {
    "kind": "header",
    "version": 1,
    "variant": "rich",
    "message": {"requestApiKey": 1, "requestApiVersion": 2, "correlationId": 3, "clientId": "a"},
    "bytes": "0001000200000003000161",
}


def check(change: dict[str, Any], file_name: str = "RequestHeader.jsonl") -> list[str]:
    return check_vector(file_name, {**HEADER, **change})


def test_kafkas_own_numbers_and_checksums_are_read_and_written() -> None:
    for number, vector in read_vectors(PRIMITIVES):
        assert check_vector(PRIMITIVES.name, vector) == [], number


def test_a_vector_that_holds_has_no_problems() -> None:
    assert check({}) == []


def test_a_wrong_value_is_reported_for_each_way_with_the_path_of_its_field() -> None:
    assert check({"bytes": "0001000200000004000161"}) == [
        "correlationId: expected 3, got 4 (decoded, compiled)",
        "correlationId: expected 3, got 4 (decoded, construct)",
        "correlationId: byte 7: expected 04000161, got 03000161 (encoded, compiled)",
        "correlationId: byte 7: expected 04000161, got 03000161 (encoded, construct)",
    ]


def test_bytes_that_end_early_or_late_are_reported() -> None:
    assert any("refused when decoded (compiled)" in problem for problem in check({"bytes": "0001"}))
    assert "decoding ended at byte 11 of 12 (compiled)" in check({"bytes": HEADER["bytes"] + "00"})  # type: ignore[operator]


def test_unknown_tagged_fields_need_not_come_back() -> None:
    bytes_with_tag = "0001000200000003000161010501ff"
    assert check({"version": 2, "variant": "unknown-tags", "bytes": bytes_with_tag}) == []
    assert check({"version": 2, "variant": "rich", "bytes": bytes_with_tag}) != []


def test_a_message_that_cannot_be_written_is_reported() -> None:
    [*_, problem] = check({"message": {**HEADER["message"], "requestApiKey": 2**15}})  # type: ignore[dict-item]
    assert "refused when encoded (construct)" in problem


@pytest.mark.parametrize("change", [{"bytes": "0g"}, {"bytes": 5}, {"message": None}, {"message": {}}])
def test_what_is_no_vector_is_reported_and_does_not_raise(change: dict[str, Any]) -> None:
    assert check(change) != []


def test_a_file_is_about_the_api_of_its_key_or_name() -> None:
    assert message_class("000-Produce.jsonl.gz", "request").__name__ == "ProduceRequest"
    assert message_class("Fetch.jsonl", "response").__name__ == "FetchResponse"
    assert message_class("ResponseHeader.jsonl.gz", "header").__name__ == "ResponseHeader"


def test_a_prefix_is_the_type_of_a_key_and_the_version_of_anything_else() -> None:
    key = {"kind": "coordinator-key", "version": 0, "prefix": "0002", "message": {"group": ""}, "bytes": "0000"}
    assert check_vector("GroupMetadataKey.jsonl", key) == []
    assert check_vector("GroupMetadataKey.jsonl", {**key, "prefix": "0001"}) == ["prefix: expected '0001', got '0002'"]
    data = {"kind": "data", "version": 1, "prefix": "0001", "bytes": "00000000ffffffff"}
    message = {"assignedPartitions": [], "userData": None}
    assert check_vector("ConsumerProtocolAssignment.jsonl", {**data, "message": message}) == []
    assert check_vector("ConsumerProtocolAssignment.jsonl", {**data, "message": message, "prefix": "0000"}) != []


@pytest.mark.parametrize("file_name", ["068-ConsumerGroupHeartbeat.jsonl.gz", "Nothing.jsonl", "0.jsonl"])
def test_what_is_not_declared_is_no_failure(file_name: str) -> None:
    with pytest.raises(NotDeclared):
        check({}, file_name)


def test_a_version_that_is_not_declared_is_no_failure() -> None:
    with pytest.raises(NotDeclared, match="RequestHeader 3"):
        check({"version": 3})


def test_lines_are_read_with_their_numbers_compressed_or_not(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a":1}\n{"b":2}\n')
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b'{"a":1}\n{"b":2}\n'))
    for name in ("a.jsonl", "a.jsonl.gz"):
        assert list(read_vectors(tmp_path / name)) == [(1, {"a": 1}), (2, {"b": 2})]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.jsonl", b'{"a":1}\n{', "line 2 is no JSON"),
        ("a.jsonl", b"[1]", "line 1 is no JSON object"),
        ("a.jsonl", b"\xff\xfe", "utf-8"),
        ("a.jsonl.gz", b"plain", "[Nn]ot a gzipped file"),
        ("a.jsonl.gz", gzip.compress(b'{"a":1}\n')[:-9], "ended before"),
        ("a.jsonl.gz", gzip.compress(b"{}\n", mtime=0)[:10] + b"\xff" * 20, "invalid block"),
    ],
)
def test_a_file_that_is_no_list_of_vectors_is_refused_with_the_reason(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UnreadableVectors, match=reason):
        list(read_vectors(tmp_path / name))


def test_a_title_says_what_a_line_is_about() -> None:
    assert title(HEADER) == "header 1 rich"
    assert title({"apiKey": 3, "version": 4, "requestFrame": ""}) == "3 4"

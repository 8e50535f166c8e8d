import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from walrusmq.protocol.record_vectors import check_record_batches

FILE = Path(__file__).parents[1] / "data" / "records" / "record-batches.jsonl.gz"
VECTORS: dict[str, Any] = {
    vector["name"]: vector for vector in map(json.loads, gzip.decompress(FILE.read_bytes()).splitlines())
}


@pytest.mark.parametrize("name", ["none-headers", "lz4-plain", "three-batches", "bad-crc", "legacy-magic1-none"])
def test_a_vector_of_the_java_client_has_no_problems(name: str) -> None:
    assert list(check_record_batches("", VECTORS[name])) == []


def test_a_difference_has_the_path_of_its_place() -> None:
    vector = {**VECTORS["none-headers"], "producerId": 5}
    assert list(check_record_batches("", vector)) == ["producerId: expected 5, got -1"]
    batches = [dict(batch) for batch in VECTORS["three-batches"]["batches"]]
    batches[1]["count"] += 1
    [problem] = check_record_batches("", {**VECTORS["three-batches"], "batches": batches})
    assert problem.startswith("batches[1].count: expected")


def test_a_batch_that_should_be_refused_and_is_not_is_a_problem() -> None:
    vector = {**VECTORS["none-headers"], "valid": False}
    assert list(check_record_batches("", vector)) == ["taken, though it should be refused"]

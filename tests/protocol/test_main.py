import json
import subprocess
import sys
from pathlib import Path

import pytest

from walrusmq.protocol.__main__ import main

WIRE = Path(__file__).parents[1] / "data" / "wire"
HEADER = {
    "kind": "header",
    "version": 0,
    "variant": "rich",
    "message": {"correlationId": 3},
    "bytes": "00000003",
}


def written(folder: Path, name: str, *vectors: object) -> str:
    path = folder / name
    path.write_text("".join(json.dumps(vector) + "\n" for vector in vectors))
    return str(path)


def test_check_ends_with_the_counts_alone_on_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(WIRE / "RequestHeader.jsonl.gz"), str(WIRE / "ResponseHeader.jsonl.gz")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "22 passed, 0 failed"


def test_check_prints_each_mismatch_with_file_line_and_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, "ResponseHeader.jsonl", HEADER, {**HEADER, "bytes": "00000004"})
    assert main(["check", file]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{file}:2: header 0 rich: correlationId: expected 3, got 4 (decoded, compiled)"
    assert lines[-1] == "1 passed, 1 failed"


def test_check_says_what_it_has_no_declaration_for_and_fails_if_nothing_was_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, "099-Unheard.jsonl", HEADER, HEADER)
    assert main(["check", file]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{file}: 2 vectors skipped, not declared here: Unheard",
        "2 skipped",
        "0 passed, 0 failed",
    ]
    assert main(["check", file, written(tmp_path, "ResponseHeader.jsonl", HEADER)]) == 0


def test_check_says_which_files_hold_no_vectors_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other, good = str(WIRE / "facts.json.gz"), written(tmp_path, "ResponseHeader.jsonl", HEADER)
    assert main(["check", other, good]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{other}: passed over: no file of vectors, which end in .jsonl or .jsonl.gz",
        "1 passed, 0 failed",
    ]
    assert main(["check", other]) == 1
    assert main(["check", str(tmp_path / "missing.json")]) == 2


def test_check_takes_a_folder_for_the_vectors_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path, "ResponseHeader.jsonl", HEADER, HEADER)
    (tmp_path / "notes.txt").write_text("")
    assert main(["check", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "2 passed, 0 failed\n"


def test_check_tells_in_a_line_what_it_cannot_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing, garbage = str(tmp_path / "missing.jsonl"), tmp_path / "garbage.jsonl"
    garbage.write_bytes(b"\x80\x81")
    good = written(tmp_path, "ResponseHeader.jsonl", HEADER)
    assert main(["check", missing, str(garbage), good]) == 2
    output = capsys.readouterr()
    assert [line.partition(": ")[0] for line in output.err.splitlines()] == [missing, str(garbage)]
    assert output.out == "1 passed, 0 failed\n"


@pytest.mark.parametrize("api", ["Produce", "produce", "0"])
def test_show_prints_the_fields_of_request_and_response(api: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", api, "9"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("ProduceRequest version 9 (")
    assert "\n\nProduceResponse version 9 (" in output


@pytest.mark.parametrize("name", ["ProduceRequest", "RequestHeader"])
def test_show_prints_a_single_message_by_its_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    version = "9" if name == "ProduceRequest" else "2"
    assert main(["show", name, version]) == 0
    assert capsys.readouterr().out.count(" version ") == 1


@pytest.mark.parametrize(
    ("api", "version", "reason"),
    [
        ("Prodduce", "9", "no API 'Prodduce' is declared; these are: Produce, Fetch"),
        ("Produce", "2", "Produce has versions 3 to 13, not 2"),
        ("Produce", "nine", "'nine' is no version"),
        ("Produce", "-1", "'-1' is no version"),
    ],
)
def test_show_tells_in_a_line_what_is_wrong(
    api: str, version: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", "--", api, version]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert len(output.err.splitlines()) == 1
    assert reason in output.err


def test_the_command_runs_as_a_module_and_does_not_mind_a_reader_that_leaves() -> None:
    command = [sys.executable, "-m", "walrusmq.protocol", "show", "Fetch", "18"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode in (0, 1)

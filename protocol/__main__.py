"""``python -m walrusmq.protocol``: run test vectors through the codecs, or show a message's fields."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from walrusmq.protocol.errors import UnsupportedVersion
from walrusmq.protocol.field_table import field_table
from walrusmq.protocol.messages import API_BY_KEY, MESSAGES_BY_NAME
from walrusmq.protocol.schema import schema_of
from walrusmq.protocol.vectors import NotDeclared, UnreadableVectors, check_vector, read_vectors, title

VECTOR_SUFFIXES = (".jsonl", ".jsonl.gz")

FAILED = 1
BAD_INPUT = 2


def main(arguments: list[str] | None = None) -> int:
    """Run a command; give the exit code: 1 where a vector failed or none was run, 2 for bad input."""
    parser = argparse.ArgumentParser(prog="python -m walrusmq.protocol", description=__doc__.partition(": ")[2])
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="run test vectors through the codecs, both ways")
    check.add_argument(
        "files", nargs="+", metavar="PATH", help="vectors, .jsonl or .jsonl.gz; of a folder, all of them"
    )
    show = commands.add_parser("show", help="show the fields of a request and its response")
    show.add_argument("api", metavar="API", help="an API's name or key, or the name of another message")
    show.add_argument("version", metavar="VERSION")
    chosen = parser.parse_args(arguments)
    try:
        return check_files(chosen.files) if chosen.command == "check" else show_api(chosen.api, chosen.version)
    except BrokenPipeError:
        # Whoever read the output has seen enough; Python would complain once more when it flushes at exit.
        sys.stdout = None
        return FAILED


def check_files(paths: list[str]) -> int:
    """Run all vectors of some files; print each mismatch and what could not be run, then the counts, the last line.

    A folder stands for the vector files in it. A file of another kind is passed over, with a line that says so.
    """
    passed = failed = skipped = 0
    bad_input = False
    for file in _files(paths):
        if Path(file).exists() and not file.endswith(VECTOR_SUFFIXES):
            print(f"{file}: passed over: no file of vectors, which end in {' or '.join(VECTOR_SUFFIXES)}")
            continue
        undeclared: Counter[str] = Counter()
        try:
            for number, vector in read_vectors(Path(file)):
                try:
                    mismatches = check_vector(Path(file).name, vector)
                except NotDeclared as error:
                    undeclared[str(error)] += 1
                    continue
                failed, passed = failed + bool(mismatches), passed + (not mismatches)
                for mismatch in mismatches:
                    print(f"{file}:{number}: {title(vector)}: {mismatch}")
        except UnreadableVectors as error:
            print(f"{file}: {error}", file=sys.stderr)
            bad_input = True
        if undeclared:
            print(f"{file}: {undeclared.total()} vectors skipped, not declared here: {', '.join(undeclared)}")
        skipped += undeclared.total()
    if skipped:
        print(f"{skipped} skipped")
    print(f"{passed} passed, {failed} failed")
    if bad_input:
        return BAD_INPUT
    return FAILED if failed or not passed else 0


def _files(paths: list[str]) -> Iterator[str]:
    for path in paths:
        if Path(path).is_dir():
            yield from sorted(str(file) for file in Path(path).iterdir() if file.name.endswith(VECTOR_SUFFIXES))
        else:
            yield path


def show_api(name: str, version: str) -> int:
    """Print the tables of a request and its response, or of another message."""
    classes = _classes(name)
    if not classes:
        known = ", ".join([*(api.name for api in API_BY_KEY.values()), *MESSAGES_BY_NAME])
        return _refuse(f"no API {name!r} is declared; these are: {known}")
    if not version.isdecimal():
        return _refuse(f"{version!r} is no version")
    try:
        tables = [field_table(cls, int(version)) for cls in classes]
    except UnsupportedVersion:
        versions = schema_of(classes[0]).versions
        return _refuse(f"{name} has versions {versions[0]} to {versions[-1]}, not {version}")
    print("\n\n".join(tables))
    return 0


def _classes(name: str) -> list[type]:
    wanted = name.lower()
    for api in API_BY_KEY.values():
        if wanted in (str(api.key), api.name.lower()):
            return [api.request, api.response]
    declared = [cls for api in API_BY_KEY.values() for cls in (api.request, api.response)]
    return [cls for cls in (*declared, *MESSAGES_BY_NAME.values()) if cls.__name__.lower() == wanted]


def _refuse(reason: str) -> int:
    print(f"walrusmq.protocol: {reason}", file=sys.stderr)
    return BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())

"""Measure a Kafka-compatible broker with stock clients and plain sockets; print a table.

Without ``--bootstrap`` a walrusmq is started for the purpose, in a temporary folder, with the defaults. Broker and
client share the machine: give each a core (``--pin-broker 0 --pin-client 1``) before comparing anything.
All figures take about a quarter of an hour, on a slow disk longer; ``--runs 1 --scale 0.1`` is done in two minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import BENCHMARKS
from benchmarks.report import machine, row, summarise, write_json
from benchmarks.target import Target, own_broker


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--bootstrap", help="address of a broker that runs already")
    parser.add_argument("--pid", type=int, help="its process, for CPU figures (Linux)")
    parser.add_argument("--setting", action="append", default=[], metavar="NAME=VALUE", help="for our own broker")
    parser.add_argument("--only", default="", metavar="REGEX", help="figures whose name matches")
    parser.add_argument("--runs", type=int, default=3, help="of each figure; the median counts (default 3)")
    parser.add_argument("--scale", type=float, default=1.0, help="shortens each run, e.g. 0.1 for a first look")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there too")
    parser.add_argument("--pin-broker", metavar="CPUS", help="CPU list for our own broker (taskset)")
    parser.add_argument("--pin-client", metavar="CPU", type=int, help="the CPU for this process")
    return parser.parse_args(arguments)


@contextlib.contextmanager
def chosen_target(options: argparse.Namespace) -> Iterator[Target]:
    if options.bootstrap:
        yield Target(options.bootstrap, options.pid)
        return
    settings = dict(setting.split("=", 1) for setting in options.setting)
    prefix = ["taskset", "-c", options.pin_broker] if options.pin_broker else []
    with own_broker(settings, prefix) as target:
        yield target


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    if options.pin_client is not None:
        os.sched_setaffinity(0, {options.pin_client})
    figures = {}
    failed = 0
    with chosen_target(options) as target:
        print(f"{machine()}, {time.strftime('%Y-%m-%d')}, median of {options.runs}\n")
        print("| figure | median | least to most of the first |\n|---|---|---|")
        for benchmark in BENCHMARKS:
            if not re.search(options.only, benchmark.name) or (benchmark.needs_walrusmq and options.bootstrap):
                continue
            try:
                runs = [benchmark.measure(target, options.scale) for _ in range(options.runs)]
            except Exception as error:
                failed += 1
                print(f"| {benchmark.name} | failed: {error} | |", flush=True)
                continue
            figures[benchmark.name] = summarise(runs)
            print(row(benchmark.name, figures[benchmark.name]), flush=True)
        if options.json:
            write_json(options.json, target.bootstrap, figures)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

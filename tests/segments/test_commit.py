"""The commit thread by itself: what it syncs, in which order, and how it ends."""

from __future__ import annotations

import asyncio
import errno
import threading
from pathlib import Path

import pytest
from support.crash_disk import CrashDisk
from support.segment_stores import TOPIC_ID, batch, in_loop

from walrusmq.segments import commit
from walrusmq.segments.commit import CommitThread, LogSync
from walrusmq.segments.facts import OpenSegment
from walrusmq.segments.handles import HandlePool, LogFile
from walrusmq.segments.open_log import OpenLog
from walrusmq.segments.partition_folder import LOG, PartitionFolder
from walrusmq.segments.store_counters import StoreCounters


class Bench:
    """Some logs and a commit thread, without partitions."""

    def __init__(self, folder: Path, interval_ms: int = 1000, max_open_files: int = 100) -> None:
        self.disk = CrashDisk(folder)
        self.pool = HandlePool(self.disk, max_open_files)
        self.counters = StoreCounters()
        self.commit = CommitThread(self.disk, interval_ms, self.counters)
        self.folder = folder
        self.done: list[tuple[str, int, OSError | None]] = []
        self._names: dict[OpenLog, str] = {}
        self._reported = asyncio.Event()

    def log(self, name: str) -> OpenLog:
        folder = PartitionFolder(self.disk, str(self.folder), "t", TOPIC_ID, len(self._names))
        log = OpenLog(OpenSegment(1, 1, 0, 0, (1,)), folder, LogFile(self.pool, folder.file(1, LOG)), self.disk)
        self._names[log] = name
        return log

    def write(self, log: OpenLog) -> None:
        log.write(memoryview(batch("x")), 1, 0)

    def report(self, sync: LogSync) -> None:
        self.done.append((self._names[sync.log], sync.end_offset, sync.error))
        self._reported.set()

    async def until(self, count: int) -> None:
        async with asyncio.timeout(20):
            while len(self.done) < count:
                self._reported.clear()
                await self._reported.wait()


@in_loop
async def test_no_thread_before_the_first_sync_and_none_after_the_stop(tmp_path: Path) -> None:
    threads = threading.active_count()
    bench = Bench(tmp_path)
    log = bench.log("a")
    await bench.commit.stop()
    bench.write(log)
    assert threading.active_count() == threads
    bench.commit.request(log, bench.report)
    await bench.until(1)
    assert threading.active_count() == threads + 1
    await bench.commit.stop()
    await bench.commit.stop()
    assert threading.active_count() == threads
    bench.pool.close()


@in_loop
async def test_a_sync_covers_what_was_written_before_it_began_and_no_more(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    log = bench.log("a")
    bench.write(log)
    bench.commit.request(log, bench.report)
    with bench.disk.held("fdatasync"):
        await asyncio.sleep(0.01)
        bench.write(log)
        bench.write(log)
    await bench.until(1)
    assert bench.done == [("a", 1, None)]
    bench.commit.request(log, bench.report)
    await bench.until(2)
    assert bench.done[1] == ("a", 3, None)
    await bench.commit.stop()
    bench.pool.close()


@in_loop
async def test_urgent_logs_go_before_those_of_the_interval(tmp_path: Path) -> None:
    bench = Bench(tmp_path, interval_ms=1)
    dirty = [bench.log(f"dirty {number}") for number in range(5)]
    urgent = bench.log("urgent")
    for log in [*dirty, urgent]:
        bench.write(log)
    with bench.disk.held("fdatasync"):
        for log in dirty:
            bench.commit.request_later(log, bench.report)
        await asyncio.sleep(0.02)
        bench.commit.request(urgent, bench.report)
        await asyncio.sleep(0.02)
    await bench.until(6)
    assert [name for name, _, _ in bench.done].index("urgent") <= 1
    await bench.commit.stop()
    bench.pool.close()


@in_loop
async def test_a_log_whose_sync_failed_is_never_synced_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    broken, whole = bench.log("broken"), bench.log("whole")
    for log in (broken, whole):
        bench.write(log)
    bench.disk.fail("fdatasync", errno.EIO, path=broken.file.path)
    for _ in range(2):
        bench.commit.request(broken, bench.report)
        bench.commit.request(whole, bench.report)
        await bench.until(2)
        assert [(name, error is None) for name, _, error in bench.done] == [("broken", False), ("whole", True)]
        bench.done.clear()
    assert bench.disk.calls.count("fdatasync") == 1 + 2
    assert bench.counters.failed_syncs == 1
    await bench.commit.stop()
    bench.pool.close()


@in_loop
async def test_a_folder_that_cannot_be_synced_fails_the_sync(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    log = bench.log("a")
    bench.write(log)
    bench.disk.fail("sync_folder", errno.EIO)
    bench.commit.request(log, bench.report)
    await bench.until(1)
    assert bench.done[0][2] is not None
    await bench.commit.stop()
    bench.pool.close()


@in_loop
async def test_files_that_had_to_be_closed_are_synced_by_their_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit, "MAX_PINNED", 2)
    bench = Bench(tmp_path, max_open_files=3)
    logs = [bench.log(str(number)) for number in range(20)]
    for log in logs:
        bench.write(log)
        bench.commit.request(log, bench.report)
    await bench.until(20)
    assert {error for _, _, error in bench.done} == {None}
    assert bench.disk.calls.count("fdatasync") == 20
    await bench.commit.stop()
    bench.pool.close()


@in_loop
async def test_a_file_closed_during_its_sync_stays_open_until_it_ends(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    log = bench.log("a")
    bench.write(log)
    with bench.disk.held("fdatasync"):
        bench.commit.request(log, bench.report)
        await asyncio.sleep(0.01)
        handle = log.file.handle
        assert handle is not None
        log.file.close()
        assert handle.fd >= 0
    await bench.until(1)
    assert bench.done == [("a", 1, None)]
    assert handle.fd == -1
    await bench.commit.stop()


@in_loop
async def test_an_unexpected_failure_is_told_as_one_of_the_sync(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(tmp_path)
    log = bench.log("a")
    bench.write(log)

    def broken(fd: int) -> None:
        raise ZeroDivisionError("a fault of ours")

    bench.disk.fdatasync = broken  # type: ignore[assignment,method-assign]
    bench.commit.request(log, bench.report)
    await bench.until(1)
    assert "ZeroDivisionError: a fault of ours" in str(bench.done[0][2])
    assert "failed in an unexpected way" in caplog.text
    await bench.commit.stop()
    bench.pool.close()


@in_loop
async def test_a_log_that_goes_away_is_not_synced(tmp_path: Path) -> None:
    bench = Bench(tmp_path, interval_ms=1)
    log = bench.log("a")
    bench.write(log)
    bench.commit.request(log, bench.report)
    bench.commit.request_later(log, bench.report)
    bench.commit.request_within(log, bench.report, 1)
    bench.commit.forget(log)
    await asyncio.sleep(0.01)
    await bench.commit.stop()
    assert bench.done == []
    bench.pool.close()

"""The metadata log of a group of one: proposals are made durable together, applied in order, and answered.

The state machine is given as three calls. ``apply(index, term, payload)`` returns a result or raises the KafkaError by
which it refuses a command; any other error means that this node can't follow the log, and ends it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from walrusmq.consensus.durable_file import Files
from walrusmq.consensus.entry import MAX_COMMAND_BYTES, Entry
from walrusmq.consensus.errors import (
    CommandTooLarge,
    EntriesRefused,
    EntriesUncertain,
    LogNotRunning,
    ProposalRefused,
    ProposalUncertain,
    TooManyProposals,
)
from walrusmq.consensus.group_storage import GroupStorage, Recovered
from walrusmq.consensus.log import LOG_FILE_BYTES
from walrusmq.consensus.snapshot import Snapshot
from walrusmq.protocol.errors import KafkaError

logger = logging.getLogger("walrusmq.metadata")

T = TypeVar("T")

MAX_WAITING_PROPOSALS = 10_000
"""Proposals that wait for a round: as many as 1,000 connections make that each create ten topics at once."""
MAX_WAITING_BYTES = 64 << 20
"""The same by size, so that large commands can't fill the memory."""
MAX_ROUND_BYTES = 4 << 20
"""What one sync makes durable: no proposal waits for more than that to be written before its own round."""
SNAPSHOT_EVERY_ENTRIES = 5_000
"""A start replays at most about this many entries, some 100 ms, or as many as take the snapshot's own size."""
REPLAY_SLICE_ENTRIES = 500
"""Entries that a start applies before others on the loop get their turn."""
THREADS = 2
"""One for the log, one for a snapshot: a large one must not hold up proposals."""

Apply = Callable[[int, int, bytes], Any]


class Proposal(NamedTuple):
    """A command on its way into the log, and who waits for what applying it gives."""

    payload: bytes
    answer: asyncio.Future[Any]


class MetadataLog:
    """A node's view of the group. Used on one event loop; only its files are touched by threads."""

    def __init__(
        self,
        folder: str,
        files: Files,
        *,
        apply: Apply,
        take_snapshot: Callable[[], bytes],
        restore: Callable[[bytes], None],
        on_failure: Callable[[BaseException], None] | None = None,
        snapshot_every_entries: int = SNAPSHOT_EVERY_ENTRIES,
        log_file_bytes: int = LOG_FILE_BYTES,
    ) -> None:
        """``on_failure`` is called once if the state machine can't follow the log any more: the node must stop."""
        self.applied_index = 0
        """The last entry that the state machine has taken."""
        self.term = 0
        self.failure: BaseException | None = None
        """Why the state machine can't follow the log any more."""
        self.is_disk_failing = False
        """Whether the last round was refused by the disk; the next proposal tries again."""
        self._storage = GroupStorage(folder, files, log_file_bytes=log_file_bytes)
        self._apply = apply
        self._take_snapshot = take_snapshot
        self._restore = restore
        self._on_failure = on_failure
        self._snapshot_every_entries = snapshot_every_entries
        self._waiting: deque[Proposal] = deque()
        self._waiting_bytes = 0
        self._wake = asyncio.Event()
        self._is_running = False
        self._executor: ThreadPoolExecutor | None = None
        self._driver: asyncio.Task[None] | None = None
        self._snapshot_writer: asyncio.Task[None] | None = None
        self._snapshot_due_index = 0
        self._snapshot_due_bytes = 0
        self._purge_index = 0

    @property
    def sync_count(self) -> int:
        """How many rounds of proposals have been synced since the start."""
        return self._storage.log.sync_count

    async def start(self) -> None:
        """Restore the newest snapshot, apply what follows it, and take proposals.

        Raises MetadataDamaged, NewerFormat, OSError, and what ``apply`` or ``restore`` raise for what they can't read.
        """
        assert self._executor is None, "a metadata log is started once"
        self._executor = ThreadPoolExecutor(THREADS, thread_name_prefix="metadata-log")
        try:
            await self._replay(await self._in_thread(self._storage.open))
        except BaseException:
            self._release()
            raise
        self._is_running = True
        self._driver = asyncio.get_running_loop().create_task(self._drive(), name="metadata log")

    async def stop(self) -> None:
        """Finish the proposals that wait, and let go of threads and files. Later proposals are refused."""
        self._is_running = False
        self._wake.set()
        try:
            if self._driver is not None:
                await self._driver
            if self._snapshot_writer is not None:
                await self._snapshot_writer
        finally:
            self._release()

    def propose(self, command: bytes) -> asyncio.Future[Any]:
        """Have the group take a command.

        The future gives what applying the command returned, once it is on stable storage and applied, or the
        KafkaError by which the state machine refused it. Raised through it as well: CommandTooLarge, TooManyProposals,
        LogNotRunning and ProposalRefused (nothing was written), ProposalUncertain. May be called while a command is
        applied: that command is finished first.
        """
        answer = asyncio.get_running_loop().create_future()
        refusal = self._refusal(command)
        if refusal is not None:
            answer.set_exception(refusal)
            return answer
        self._waiting.append(Proposal(command, answer))
        self._waiting_bytes += len(command)
        self._wake.set()
        return answer

    def _refusal(self, command: bytes) -> KafkaError | None:
        if self.failure is not None:
            return LogNotRunning(f"the metadata log can't be followed any more: {self.failure}")
        if not self._is_running:
            return LogNotRunning("the metadata log isn't running: the node is starting or stopping")
        if len(command) > MAX_COMMAND_BYTES:
            return CommandTooLarge(
                f"a metadata command of {len(command)} bytes is above the {MAX_COMMAND_BYTES} allowed"
            )
        if len(self._waiting) >= MAX_WAITING_PROPOSALS or self._waiting_bytes + len(command) > MAX_WAITING_BYTES:
            return TooManyProposals(f"{len(self._waiting)} metadata commands wait already: try again later")
        return None

    async def _replay(self, recovered: Recovered) -> None:
        snapshot = recovered.snapshot
        self.term = recovered.hard_state.term
        if snapshot.last_index:
            self._restore(snapshot.data)
            self.applied_index = snapshot.last_index
        self._plan_snapshot(snapshot, 0)
        for count, entry in enumerate(recovered.entries, 1):
            try:
                self._apply(entry.index, entry.term, entry.payload)
            except KafkaError as error:
                logger.debug("entry %d was refused: %s", entry.index, error)
            self.applied_index = entry.index
            if count % REPLAY_SLICE_ENTRIES == 0:
                await asyncio.sleep(0)

    async def _drive(self) -> None:
        """Rounds, one after the other: what has gathered is made durable, then applied."""
        while True:
            if self._waiting:
                await self._run_round()
            elif self._is_running:
                self._wake.clear()
                await self._wake.wait()
            else:
                return

    async def _run_round(self) -> None:
        round_, entries = self._gather_round()
        try:
            await self._in_thread(self._storage.log.append, entries)
        except EntriesRefused as error:
            self._refuse_round(round_, f"{error} ({error.__cause__}); nothing was written", ProposalRefused)
        except EntriesUncertain as error:
            self._refuse_round(round_, f"{error} ({error.__cause__}); its outcome is unknown", ProposalUncertain)
        except Exception as error:
            self._fail(error, round_)
        else:
            if self.is_disk_failing:
                self.is_disk_failing = False
                logger.warning("the metadata log takes commands again")
            self._apply_round(round_, entries)
            await self._keep_short()

    def _gather_round(self) -> tuple[list[Proposal], list[Entry]]:
        """Take the proposals that wait, up to the size of a round, and give each its place in the log."""
        round_: list[Proposal] = []
        entries: list[Entry] = []
        size_bytes = 0
        index = self._storage.log.last_index
        while self._waiting and (not round_ or size_bytes + len(self._waiting[0].payload) <= MAX_ROUND_BYTES):
            proposal = self._waiting.popleft()
            index += 1
            size_bytes += len(proposal.payload)
            round_.append(proposal)
            entries.append(Entry(index, self.term, proposal.payload))
        self._waiting_bytes -= size_bytes
        return round_, entries

    def _apply_round(self, round_: list[Proposal], entries: list[Entry]) -> None:
        for position, (proposal, entry) in enumerate(zip(round_, entries, strict=True)):
            answer = proposal.answer
            try:
                result = self._apply(entry.index, entry.term, entry.payload)
            except KafkaError as refusal:
                if not answer.done():
                    answer.set_exception(refusal)
            except Exception as error:
                self._fail(error, round_[position:])
                return
            else:
                if not answer.done():
                    answer.set_result(result)
            self.applied_index = entry.index

    def _refuse_round(self, round_: list[Proposal], message: str, kind: type[KafkaError]) -> None:
        """The disk failed: whoever waits is told what is certain, and the next round tries again."""
        if not self.is_disk_failing:
            self.is_disk_failing = True
            logger.error("%s. Metadata commands fail until the disk takes them again", message)
        for proposal in round_:
            if not proposal.answer.done():
                proposal.answer.set_exception(kind(message))

    def _fail(self, error: BaseException, unanswered: list[Proposal]) -> None:
        """This node can't follow the log: nothing more is taken or applied."""
        self.failure = error
        self._is_running = False
        logger.critical(
            "the metadata log can't be followed behind entry %d: %s", self.applied_index, error, exc_info=error
        )
        for proposal in unanswered:
            if not proposal.answer.done():
                proposal.answer.set_exception(ProposalUncertain(f"this node can't follow the metadata log: {error}"))
        for proposal in self._waiting:
            if not proposal.answer.done():
                proposal.answer.set_exception(LogNotRunning(f"the metadata log can't be followed any more: {error}"))
        self._waiting.clear()
        self._waiting_bytes = 0
        if self._on_failure is not None:
            self._on_failure(error)

    async def _keep_short(self) -> None:
        """Begin a snapshot when one is due, and remove the files of the log that an older one made needless."""
        if self._purge_index:
            up_to_index, self._purge_index = self._purge_index, 0
            try:
                await self._in_thread(self._storage.log.purge, up_to_index)
            except OSError as error:
                logger.warning("old files of the metadata log couldn't be removed: %s", error)
        log = self._storage.log
        is_due = self.applied_index >= self._snapshot_due_index and log.written_bytes >= self._snapshot_due_bytes
        if not is_due or self._snapshot_writer is not None or self.failure is not None:
            return
        try:
            snapshot = Snapshot(self.applied_index, self.term, self._take_snapshot())
        except Exception as error:
            self._fail(error, [])
            return
        self._plan_snapshot(snapshot, log.written_bytes)
        self._snapshot_writer = asyncio.get_running_loop().create_task(self._write_snapshot(snapshot))

    def _plan_snapshot(self, last: Snapshot, written_bytes: int) -> None:
        """The next one is due once the log behind the last has both enough entries and the last one's size.

        So the work per command stays the same however large the image grows.
        """
        self._snapshot_due_index = last.last_index + self._snapshot_every_entries
        self._snapshot_due_bytes = written_bytes + len(last.data)

    async def _write_snapshot(self, snapshot: Snapshot) -> None:
        snapshots = self._storage.snapshots
        try:
            await self._in_thread(snapshots.save, snapshot)
            self._purge_index = await self._in_thread(snapshots.remove_old)
        except OSError as error:
            logger.warning("a snapshot of the metadata at entry %d couldn't be written: %s", snapshot.last_index, error)
        finally:
            self._snapshot_writer = None

    async def _in_thread(self, call: Callable[..., T], *arguments: Any) -> T:
        assert self._executor is not None
        return await asyncio.get_running_loop().run_in_executor(self._executor, call, *arguments)

    def _release(self) -> None:
        if self._executor is not None:
            self._executor.shutdown()
        self._storage.close()

"""What an application does with Kafka, as scenarios over any client: ``python with_CLIENT.py BOOTSTRAP FEATURE``.

The status is 0 for a pass, 1 for what is missing in the broker, and 3 where the client itself hasn't the feature; a
line on stdout says what. A pass of ``admin`` prints the names of the calls.
"""

from __future__ import annotations

import queue
import sys
import time
import uuid
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

#: Bound on everything that is waited for.
PATIENCE_S = 30.0
#: How long a member waits for records in one turn, where its thread reads them.
TURN_S = 0.1
#: Milliseconds of the epoch from which records are stamped, a second apart: well within any limit on timestamps.
FIRST_TIMESTAMP_MS = int(time.time() * 1000) - 3_600_000
#: From subscribing to a group's first record. Kafka's default of group.initial.rebalance.delay.ms is 3 s.
FIRST_RECORD_S = 1.0
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
RECORDS = 200
GROUP_PARTITIONS = 6
#: Records that are sent in each phase of a group's life.
PHASE_RECORDS = 120
#: Times that a group of 1, 3 and then 2 members may rebalance; each may bring what wasn't committed again.
MAX_REBALANCES = 6

PASSED, MISSING, NOT_IN_CLIENT = 0, 1, 3


class Missing(Exception):
    """The broker didn't do what the feature needs."""


class NotInClient(Exception):
    """The client has no such feature."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it was read."""

    partition: int
    offset: int
    value: bytes


class Member(ABC):
    """A consumer in a group; ``owned`` are its partitions now, ``lost`` those that were ever taken from it.

    The sets are replaced, not changed: a client's thread may tell of partitions while another looks at them.
    """

    def __init__(self) -> None:
        self.owned: set[int] = set()
        self.lost: set[int] = set()
        self.rebalances = 0

    @abstractmethod
    def poll(self) -> list[Record]:
        """What has come; waits a fraction of a second."""

    @abstractmethod
    def commit(self) -> None:
        """Commit the position after the last record that was polled."""

    @abstractmethod
    def close(self) -> None:
        """Leave the group (a static member only goes away)."""

    def gains(self, partitions: Iterable[int]) -> None:
        """To be called by the client's listener."""
        self.owned = self.owned.union(partitions)
        self.rebalances += 1

    def loses(self, partitions: Iterable[int]) -> None:
        """To be called by the client's listener."""
        partitions = set(partitions)
        self.owned = self.owned - partitions
        self.lost = self.lost | partitions


class Client(ABC):
    """What the scenarios ask of a client."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    @abstractmethod
    def create_topic(self, topic: str, partitions: int) -> None:
        """Create it, and wait until it can be used."""

    @abstractmethod
    def produce(
        self, topic: str, partition: int, values: Sequence[bytes], codec: str = "none", first_timestamp_ms: int = 0
    ) -> None:
        """Send all with acks=all and wait for the answers; timestamps a second apart, unless the first is 0."""

    @abstractmethod
    def member(self, group: str, topic: str, instance: str | None = None, is_cooperative: bool = False) -> Member:
        """A new member that reads from the earliest offset and doesn't commit on its own while it runs."""

    @abstractmethod
    def read(self, topic: str, start: int, count: int) -> list[Record]:
        """Seek to ``start`` in partition 0 and read."""

    @abstractmethod
    def offset_for_time(self, topic: str, timestamp_ms: int) -> int | None:
        """The first offset of partition 0 at or after the time; None when there is none."""

    @abstractmethod
    def lag(self, group: str, topic: str) -> int:
        """End offset of partition 0 less what the group has committed, by admin calls."""

    @abstractmethod
    def admin_calls(self, topic: str, group: str) -> dict[str, Callable[[], object]]:
        """The client's admin calls in the order to be made, each raising when it didn't do what it should.

        The topic has one partition with records, the group a committed offset and no members.
        """


def new_name(prefix: str) -> str:
    """A name that no other run uses."""
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


def require(holds: bool, missing: str) -> None:
    """Missing, unless it holds."""
    if not holds:
        raise Missing(missing)


def until(condition: Callable[[], bool], turn: Callable[[], object], what: str) -> None:
    """Turn until the condition holds; Missing with ``what`` when it takes too long."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        require(time.monotonic() < deadline, f"not within {PATIENCE_S:.0f} s: {what}")
        turn()


def drained(records: queue.Queue[Record]) -> list[Record]:
    """What another thread has read by now; waits a fraction of a second for the first."""
    taken = []
    try:
        taken.append(records.get(timeout=TURN_S))
        while True:
            taken.append(records.get_nowait())
    except queue.Empty:
        return taken


def numbered(start: int, count: int) -> list[bytes]:
    return [b"record %d" % number for number in range(start, start + count)]


def with_codec(client: Client, codec: str) -> None:
    """Records that were compressed come back."""
    topic = new_name("codec")
    client.create_topic(topic, 1)
    values = numbered(0, RECORDS)
    client.produce(topic, 0, values, codec)
    require([record.value for record in client.read(topic, 0, RECORDS)] == values, "other records than were sent")


def first(client: Client) -> None:
    """A new group's first record comes soon after it subscribes; the topic is there before."""
    party = Party(client, 1)
    party.sends(10)
    client.read(party.topic, 0, 10)  # so that the client's code is loaded
    started = time.monotonic()
    party.joins()
    until(lambda: bool(party.seen), party.turn, "a record")
    took_s = time.monotonic() - started
    party.ends()
    require(took_s < FIRST_RECORD_S, f"the first record within {FIRST_RECORD_S} s, not {took_s:.2f} s")


class Party:
    """The members of one group, polled in turns, and all that they have read."""

    def __init__(self, client: Client, partitions: int) -> None:
        self.client = client
        self.topic, self.group = new_name("topic"), new_name("group")
        self.partitions = partitions
        self.members: list[Member] = []
        self.seen: Counter[bytes] = Counter()
        self.sent = 0
        client.create_topic(self.topic, partitions)

    def joins(self, instance: str | None = None, is_cooperative: bool = False) -> Member:
        member = self.client.member(self.group, self.topic, instance, is_cooperative)
        self.members.append(member)
        return member

    def leaves(self, member: Member) -> None:
        self.members.remove(member)
        member.close()

    def turn(self) -> None:
        for member in self.members:
            records = member.poll()
            self.seen.update(record.value for record in records)
            if records:
                member.commit()

    def is_shared_out(self) -> bool:
        """Each partition has one owner, each member at least one partition."""
        owned = sorted(partition for member in self.members for partition in member.owned)
        return owned == list(range(self.partitions)) and all(member.owned for member in self.members)

    def settles(self) -> None:
        until(self.is_shared_out, self.turn, f"each partition with one of {len(self.members)} members")

    def sends(self, count: int) -> None:
        for partition in range(self.partitions):
            here = range(self.sent + partition, self.sent + count, self.partitions)
            self.client.produce(self.topic, partition, [b"record %d" % number for number in here])
        self.sent += count

    def reads_all(self) -> None:
        everything = set(numbered(0, self.sent))
        until(lambda: self.seen.keys() >= everything, self.turn, f"all {self.sent} records, but for {self.missing()}")
        require(self.seen.keys() == everything, "records that were never sent")

    def missing(self) -> int:
        return self.sent - len(self.seen)

    def ends(self) -> None:
        while self.members:
            self.leaves(self.members[-1])


def groups(client: Client) -> None:
    """1, then 3, then 2 members: nothing is lost, and nothing comes oftener than rebalances explain."""
    party = Party(client, GROUP_PARTITIONS)
    party.joins()
    party.sends(PHASE_RECORDS)
    party.settles()
    party.reads_all()
    party.joins()
    party.joins()
    party.sends(PHASE_RECORDS)
    party.settles()
    party.sends(PHASE_RECORDS)
    party.reads_all()
    party.leaves(party.members[0])
    party.sends(PHASE_RECORDS)
    party.settles()
    party.reads_all()
    party.ends()
    require(max(party.seen.values()) <= 1 + MAX_REBALANCES, "records that came oftener than rebalances explain")


def static(client: Client) -> None:
    """A static member that restarts in its session gets its partitions back; the other feels nothing (KIP-345)."""
    party = Party(client, 4)
    stays = party.joins("stays")
    party.settles()
    goes = party.joins("goes")
    party.settles()
    party.sends(40)
    party.reads_all()
    owned, rebalances = set(goes.owned), stays.rebalances
    party.leaves(goes)
    comes_back = party.joins("goes")
    party.settles()
    party.sends(40)
    party.reads_all()
    require(comes_back.owned == owned, "the partitions it had before")
    require(stays.rebalances == rebalances, "no rebalance for the other member")
    party.ends()


def cooperative(client: Client) -> None:
    """When a second member joins, the first goes on with the partitions that it keeps (KIP-429)."""
    party = Party(client, 4)
    first = party.joins(is_cooperative=True)
    party.settles()
    party.sends(40)
    party.reads_all()
    party.joins(is_cooperative=True)
    party.settles()
    require(len(first.lost) == 2, f"two partitions revoked, not {len(first.lost)}")
    party.sends(40)
    party.reads_all()
    party.ends()


def restart(client: Client) -> None:
    """A consumer that comes back goes on behind what it committed."""
    party = Party(client, 1)
    party.joins()
    party.sends(40)
    party.reads_all()
    party.ends()
    party.sends(40)
    party.seen.clear()
    party.joins()
    until(lambda: b"record 79" in party.seen, party.turn, "the records after the committed offset")
    require(party.seen == Counter(numbered(40, 40)), "just the records after the committed offset")
    party.ends()


def seek(client: Client) -> None:
    """Reading starts where the client seeks to, forwards and back."""
    topic = new_name("seek")
    client.create_topic(topic, 1)
    values = numbered(0, RECORDS)
    client.produce(topic, 0, values)
    for start in (150, 0, 77):
        records = client.read(topic, start, 20)
        require([each.offset for each in records] == list(range(start, start + 20)), f"offsets from {start}")
        require([each.value for each in records] == values[start : start + 20], f"records from {start}")


def times(client: Client) -> None:
    """The first offset at or after a time."""
    topic = new_name("times")
    client.create_topic(topic, 1)
    client.produce(topic, 0, numbered(0, 20), first_timestamp_ms=FIRST_TIMESTAMP_MS)
    for after_ms, offset in ((-5000, 0), (0, 0), (1, 1), (7000, 7), (18_001, 19), (19_001, None)):
        found = client.offset_for_time(topic, FIRST_TIMESTAMP_MS + after_ms)
        require(found == offset, f"offset {offset} for the time {after_ms} ms after the first, not {found}")


def with_committed_offset(client: Client, party: Party, count: int) -> None:
    """Have the party's group commit ``count`` in partition 0, and end."""
    party.joins()
    party.sends(count)
    party.reads_all()
    party.ends()


def admin(client: Client) -> None:
    """Each admin call of the client."""
    party = Party(client, 1)
    calls = client.admin_calls(party.topic, party.group)
    with_committed_offset(client, party, 20)
    failed = []
    for name, call in calls.items():
        try:
            call()
        except Exception as error:
            failed.append(f"{name} ({' '.join(str(error).split()) or type(error).__name__})"[:200])
    require(not failed, "; ".join(failed))
    print(", ".join(calls))


def lag(client: Client) -> None:
    """What a group has still to read."""
    party = Party(client, 1)
    with_committed_offset(client, party, 20)
    party.sends(15)
    found = client.lag(party.group, party.topic)
    require(found == 15, f"a lag of 15, not {found}")


FEATURES: dict[str, Callable[[Client], None]] = {
    **{codec: lambda client, codec=codec: with_codec(client, codec) for codec in CODECS},
    **{feature.__name__: feature for feature in (first, groups, static, cooperative, restart, seek, times, admin, lag)},
}


def run(client_type: Callable[[str], Client]) -> None:
    """Run the feature that the command line names, and end with its status."""
    if len(sys.argv) != 3 or sys.argv[2] not in FEATURES:
        sys.exit(f"usage: {sys.argv[0]} BOOTSTRAP {{{','.join(FEATURES)}}}")
    try:
        FEATURES[sys.argv[2]](client_type(sys.argv[1]))
    except NotInClient as reason:
        print(reason)
        sys.exit(NOT_IN_CLIENT)
    except Missing as reason:
        print(reason)
        sys.exit(MISSING)
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
        sys.exit(MISSING)

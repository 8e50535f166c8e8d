"""Changes of configs: what each comes to, and what is refused with which of Kafka's codes."""

from __future__ import annotations

import pytest
from support.handler_fakes import FakeNode

from walrusmq.broker.commands import CreateTopic, NamedValue, NewPartition, ResourceType, SetConfigs
from walrusmq.broker.config_changes import Change, ConfigPlanner, Operation, Wish, check_change_total
from walrusmq.broker.settings import SETTINGS, Settings
from walrusmq.broker.topics import MAX_RECORDS_PER_REQUEST
from walrusmq.protocol.errors import ErrorCode, KafkaError, PolicyViolation

TOPIC, NODE = ResourceType.TOPIC, ResourceType.BROKER
SET, DELETE, APPEND, SUBTRACT = Operation


class Planning:
    """Node 1, with topic ``t`` that has a retention.ms of its own."""

    def __init__(self, **given: str) -> None:
        self.node = FakeNode()
        self.settings = Settings.load({name.replace("_", "."): text for name, text in given.items()})
        own = [NamedValue(name="retention.ms", value="5000")]
        self.node.apply(
            CreateTopic(topic_id=bytes(15) + b"t", name="t", partitions=[NewPartition(assigned=[1])], configs=own)
        )

    def apply(self, command: SetConfigs) -> None:
        """Let a command take effect, as a node does."""
        self.node.apply(command)
        configs = self.node.image.node_configs
        self.settings.change(configs.get("", {}), configs.get("1", {}))

    def plan(self, kind: int, name: str, *changes: tuple[str, int, str | None], whole: bool = False) -> SetConfigs:
        planner = ConfigPlanner(self.node.image, self.settings, 1)
        return planner.plan(Wish(kind, name, [Change(*change) for change in changes], whole))

    def changed(self, kind: int, name: str, *changes: tuple[str, int, str | None], whole: bool = False) -> dict:  # type: ignore[type-arg]
        return {each.name: each.value for each in self.plan(kind, name, *changes, whole=whole).configs}

    def code(self, kind: int, name: str, *changes: tuple[str, int, str | None]) -> tuple[ErrorCode, str]:
        with pytest.raises(KafkaError) as caught:
            self.plan(kind, name, *changes)
        return caught.value.code, str(caught.value)


def test_configs_are_set_and_deleted_in_one_command() -> None:
    command = Planning().plan(TOPIC, "t", ("segment.ms", SET, "70000"), ("retention.ms", DELETE, None))
    assert (command.resource_type, command.name) == (TOPIC, "t")
    assert [(each.name, each.value) for each in command.configs] == [("retention.ms", None), ("segment.ms", "70000")]


@pytest.mark.parametrize("name", ["segment.ms", "no.such.config"])
def test_to_delete_what_stands_nowhere_is_nothing_to_do(name: str) -> None:
    assert Planning().changed(TOPIC, "t", (name, DELETE, None)) == {}


def test_a_replacement_deletes_what_it_doesnt_name() -> None:
    planning = Planning()
    assert planning.changed(TOPIC, "t", ("segment.ms", SET, "70000"), whole=True) == {
        "segment.ms": "70000",
        "retention.ms": None,
    }
    assert planning.changed(TOPIC, "t", whole=True) == {"retention.ms": None}
    assert planning.changed(TOPIC, "t", ("retention.ms", SET, "6"), whole=True) == {"retention.ms": "6"}


@pytest.mark.parametrize(("kind", "name"), [(TOPIC, "cleanup.policy"), (NODE, "log.cleanup.policy")])
def test_words_are_appended_to_what_holds_and_subtracted_from_it_and_none_is_doubled(kind: int, name: str) -> None:
    """The last word may go too: a topic without a policy keeps all."""
    planning = Planning()
    resource = "t" if kind == TOPIC else "1"
    for operation, words, expected in (
        (APPEND, "delete", "delete"),
        (SUBTRACT, "compact", "delete"),
        (APPEND, "compact", "delete,compact"),
        (APPEND, " compact , delete ", "delete,compact"),
        (SUBTRACT, "delete", "compact"),
        (SUBTRACT, "compact", ""),
        (SUBTRACT, "delete", ""),
        (APPEND, "compact", "compact"),
    ):
        command = planning.plan(kind, resource, (name, operation, words))
        assert {each.name: each.value for each in command.configs} == {name: expected}
        planning.apply(command)


def test_a_list_of_a_node_is_edited_from_what_holds_there() -> None:
    planning = Planning(log_cleanup_policy="compact")
    assert planning.changed(NODE, "", ("log.cleanup.policy", APPEND, "delete")) == {
        "log.cleanup.policy": "compact,delete"
    }


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"log_cleaner_max_compaction_lag_ms": "40"},
    ],
)
def test_a_topics_configs_are_held_to_each_other_and_to_the_nodes(given: dict[str, str]) -> None:
    planning = Planning(**given)
    least, most = ("min.compaction.lag.ms", SET, "50"), ("max.compaction.lag.ms", SET, "40")
    assert planning.code(TOPIC, "t", least, most)[0] is ErrorCode.INVALID_CONFIG
    if given:
        assert planning.code(TOPIC, "t", least)[0] is ErrorCode.INVALID_CONFIG
        return
    planning.apply(planning.plan(TOPIC, "t", least))
    assert planning.code(TOPIC, "t", most)[0] is ErrorCode.INVALID_CONFIG
    assert planning.changed(TOPIC, "t", most, whole=True), "what is replaced no longer counts"


@pytest.mark.parametrize(
    ("topic", "change", "code"),
    [
        ("t", ("retention.ms", SET, "x"), ErrorCode.INVALID_CONFIG),
        ("t", ("retention", SET, "1"), ErrorCode.INVALID_CONFIG),
        ("t", ("min.insync.replicas", SET, "2"), ErrorCode.INVALID_CONFIG),
        ("t", ("preallocate", SET, "true"), ErrorCode.INVALID_CONFIG),
        ("t", ("retention.ms", APPEND, "5"), ErrorCode.INVALID_CONFIG),
        ("t", ("no.such", APPEND, "5"), ErrorCode.INVALID_CONFIG),
        ("t", ("cleanup.policy", APPEND, "nix"), ErrorCode.INVALID_CONFIG),
        ("t", ("cleanup.policy", APPEND, ""), ErrorCode.INVALID_CONFIG),
        ("t", ("retention.ms", SET, None), ErrorCode.INVALID_REQUEST),
        ("t", ("cleanup.policy", APPEND, None), ErrorCode.INVALID_REQUEST),
        ("t", ("retention.ms", 9, "5"), ErrorCode.INVALID_REQUEST),
        ("t", ("retention.ms", -1, "5"), ErrorCode.INVALID_REQUEST),
        ("none", ("retention.ms", SET, "5"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("none", ("retention.ms", SET, "x"), ErrorCode.INVALID_CONFIG),
        ("a b", ("retention.ms", SET, "5"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("", ("retention.ms", SET, "5"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_change_of_a_topic_is_refused_with_kafkas_code_and_the_name(
    topic: str, change: tuple[str, int, str | None], code: ErrorCode
) -> None:
    got, message = Planning().code(TOPIC, topic, change)
    assert got is code
    if topic == "t":
        assert change[0] in message


def test_a_config_that_is_named_twice_is_refused() -> None:
    changes = (("retention.ms", DELETE, None), ("retention.ms", SET, "6"))
    assert Planning().code(TOPIC, "t", *changes)[0] is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("kind", [0, 1, 3, 8, 16, 32, 77])
def test_resources_without_configs_are_refused(kind: int) -> None:
    assert Planning().code(kind, "1", ("a", SET, "1"))[0] is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(("named", "stored"), [("1", "1"), ("01", "1"), ("", "")])
def test_a_change_of_a_node_stands_under_its_id_and_one_of_all_nodes_under_no_name(named: str, stored: str) -> None:
    command = Planning().plan(NODE, named, ("log.retention.ms", SET, "600000"))
    assert (command.resource_type, command.name) == (NODE, stored)


@pytest.mark.parametrize("name", sorted(name for name, setting in SETTINGS.items() if not setting.is_changeable))
def test_what_is_read_only_cant_be_set_but_deleting_it_does_nothing(name: str) -> None:
    code, message = Planning().code(NODE, "1", (name, SET, "1"))
    assert code is ErrorCode.INVALID_REQUEST
    assert name in message
    assert Planning().changed(NODE, "1", (name, DELETE, None)) == {}


@pytest.mark.parametrize(
    ("node", "change", "code"),
    [
        ("1", ("message.max.bytes", SET, "x"), ErrorCode.INVALID_REQUEST),
        ("", ("message.max.bytes", SET, "x"), ErrorCode.INVALID_REQUEST),
        ("1", ("message.max.bytes", SET, None), ErrorCode.INVALID_REQUEST),
        ("1", ("message.max.bytes", APPEND, "5"), ErrorCode.INVALID_CONFIG),
        ("1", ("no.such", SET, "5"), ErrorCode.INVALID_REQUEST),
        ("1", ("log.cleanup.policy", SET, "compacted"), ErrorCode.INVALID_REQUEST),
        ("1", ("log.cleanup.policy", APPEND, "compacted"), ErrorCode.INVALID_REQUEST),
        ("1", ("log.cleanup.policy", SET, "delete,"), ErrorCode.INVALID_REQUEST),
        ("1", ("num.io.threads", SET, "8"), ErrorCode.INVALID_REQUEST),
        ("1", ("max.connections", SET, "0"), ErrorCode.INVALID_REQUEST),
        ("99", ("message.max.bytes", SET, "5"), ErrorCode.INVALID_REQUEST),
        ("abc", ("message.max.bytes", SET, "5"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_change_of_a_node_is_refused_with_kafkas_code(
    node: str, change: tuple[str, int, str | None], code: ErrorCode
) -> None:
    assert Planning().code(NODE, node, change)[0] is code


def test_a_flush_interval_beside_a_given_fsync_of_batch_is_refused_since_it_would_have_no_effect() -> None:
    planning = Planning(fsync="batch")
    assert planning.code(NODE, "1", ("log.flush.interval.ms", SET, "5"))[0] is ErrorCode.INVALID_REQUEST
    assert planning.changed(NODE, "1", ("log.flush.interval.messages", SET, "1"))
    assert Planning().changed(NODE, "1", ("log.flush.interval.ms", SET, "5"))


def test_one_request_changes_only_so_much() -> None:
    change = Change("retention.ms", SET, "1")
    check_change_total([Wish(TOPIC, "t", [change] * (MAX_RECORDS_PER_REQUEST - 1))])
    with pytest.raises(PolicyViolation):
        check_change_total([Wish(TOPIC, "t", [change] * MAX_RECORDS_PER_REQUEST)])

"""What changes of topics' and nodes' configs come to: a command each, or what is wrong with them. Decides, never does.

The order of the checks and their errors are those of Kafka 4.4, where a fault of a node's config is INVALID_REQUEST and
one of a topic's INVALID_CONFIG (KAFKA-13609). What stands nowhere can be deleted, even a name that nothing has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from walrusmq.broker.broker_configs import is_this_node
from walrusmq.broker.commands import ALL_NODES, NamedValue, ResourceType, SetConfigs
from walrusmq.broker.compression_types import missing_codec
from walrusmq.broker.config_rows import FIXED, node_synonyms
from walrusmq.broker.setting_types import WordList
from walrusmq.broker.settings import SETTINGS, Settings
from walrusmq.broker.topic_configs import TOPIC_CONFIGS, check_together, inherited_text, validate
from walrusmq.broker.topics import MAX_RECORDS_PER_REQUEST, missing_topic, validate_topic_name
from walrusmq.broker.unsupported_settings import UNSUPPORTED_SETTINGS
from walrusmq.protocol.errors import InvalidConfig, InvalidRequest, PolicyViolation

if TYPE_CHECKING:
    from walrusmq.broker.image import ClusterImage

#: What else Kafka has configs of: loggers, client metrics subscriptions (KIP-714), groups.
KINDS_ELSEWHERE = {8: "loggers", 16: "client metrics subscriptions", 32: "groups"}
_CHANGEABLE = tuple(setting.name for setting in SETTINGS.values() if setting.is_changeable)
_CONNECTIONS = ("max.connections", "max.connections.per.ip")
_FLUSHES = ("log.flush.interval.messages", "log.flush.interval.ms")


class Operation(IntEnum):
    """What is done to a config, in Kafka's numbers (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    """One config, what is done to it (a number from the wire), and the value to do that with."""

    name: str
    operation: int
    value: str | None


class Wish(NamedTuple):
    """Changes of one resource: all of them are made, or none. ``is_whole``: what they don't name is deleted."""

    resource_type: int
    resource_name: str
    changes: list[Change]
    is_whole: bool = False


class ConfigPlanner:
    """Turns wishes into commands, each against the image as it is when the planner is asked."""

    __slots__ = ("_image", "_node_id", "_settings")

    def __init__(self, image: ClusterImage, settings: Settings, node_id: int) -> None:
        self._image = image
        self._settings = settings
        self._node_id = node_id

    def plan(self, wish: Wish) -> SetConfigs:
        """The command that makes the changes; without configs if there is nothing to do.

        Raises InvalidRequest, InvalidTopic, InvalidConfig or UnknownTopicOrPartition.
        """
        _check_form(wish)
        if wish.resource_type == ResourceType.TOPIC:
            return self._topic_command(wish)
        if wish.resource_type == ResourceType.BROKER:
            return self._node_command(wish)
        raise no_configs_of(wish.resource_type)

    def _topic_command(self, wish: Wish) -> SetConfigs:
        name = wish.resource_name
        if name == "":
            raise InvalidRequest("topics have no configs that hold for all of them: set those of the brokers")
        validate_topic_name(name)
        topic = self._image.topics_by_name.get(name)
        present = topic.configs if topic is not None else {}
        values = {change.name: self._topic_value(change, present) for change in wish.changes}
        if topic is None:
            raise missing_topic(name)
        command = _command(ResourceType.TOPIC, name, values, present, wish.is_whole)
        changed = {**present, **{config.name: config.value for config in command.configs}}
        check_together({name: value for name, value in changed.items() if value is not None}, self._settings)
        return command

    def _topic_value(self, change: Change, present: Mapping[str, str]) -> str | None:
        value = change.value
        if change.operation == Operation.DELETE:
            return None
        if change.operation in (Operation.APPEND, Operation.SUBTRACT):
            validate_is_list(change.name)
            before = present.get(change.name)
            value = _edited(change, inherited_text(change.name, self._settings) if before is None else before)
        validate(change.name, value)
        return value

    def _node_command(self, wish: Wish) -> SetConfigs:
        name = str(self._node_id) if is_this_node(wish.resource_name, self._node_id) else ALL_NODES
        present = self._image.node_configs.get(name, {})
        values = {change.name: self._node_value(change, present) for change in wish.changes}
        return _command(ResourceType.BROKER, name, values, present, wish.is_whole)

    def _node_value(self, change: Change, present: Mapping[str, str]) -> str | None:
        if change.operation == Operation.DELETE:
            return None
        name, value = change.name, change.value
        assert value is not None
        setting = SETTINGS.get(name)
        if setting is None and name not in FIXED:
            what = f"Kafka's {name} has no effect here" if name in UNSUPPORTED_SETTINGS else f"there is no {name!r}"
            raise InvalidRequest(f"{what}: of a broker {', '.join(_CHANGEABLE)} can be changed")
        if setting is None or not setting.is_changeable:
            raise InvalidRequest(f"{name} can't be changed while the node runs: {', '.join(_CHANGEABLE)} can")
        if change.operation != Operation.SET:
            if not isinstance(setting.type, WordList):
                raise InvalidConfig(f"{name} is no list: nothing can be appended to it or subtracted from it")
            before = present.get(name, node_synonyms(name, self._settings)[0].value)
            assert before is not None, "no list is unset"
            value = _edited(change, before)
        try:
            parsed = setting.type.parse(value)
        except ValueError:
            raise InvalidRequest(f"{name} is {value!r}, but must be {setting.type.allowed}") from None
        if name == "compression.type" and (missing := missing_codec(value)) is not None:
            raise InvalidRequest(f"{name} is {value!r}: {missing}")
        if name in _CONNECTIONS and parsed == 0:
            raise InvalidRequest(f"{name} can't become 0 while the node runs: nobody could connect to undo it")
        self._refuse_flush_beside_batch(name, parsed)
        return value

    def _refuse_flush_beside_batch(self, name: str, value: object) -> None:
        settings = self._settings
        if name not in _FLUSHES or settings.fsync != "batch" or "fsync" not in settings.sources:
            return
        if name == "log.flush.interval.messages" and value == 1:
            return
        raise InvalidRequest(
            f"{name} would have no effect: fsync is batch ({settings.origin('fsync')}), which syncs before each "
            "acknowledgement anyway"
        )


def no_configs_of(resource_type: int) -> InvalidRequest:
    """The error for a type of resource that has no configs here."""
    what = KINDS_ELSEWHERE.get(resource_type, f"resources of type {resource_type}")
    return InvalidRequest(f"{what} have no configs here")


def check_change_total(wishes: Iterable[Wish]) -> None:
    """Raise PolicyViolation if one request asks for more changes than may be made at once."""
    total = sum(1 + len(wish.changes) for wish in wishes)
    if total > MAX_RECORDS_PER_REQUEST:
        raise PolicyViolation(
            f"one request changes at most {MAX_RECORDS_PER_REQUEST} resources and configs together; this has {total}"
        )


def validate_is_list(name: str) -> None:
    """Raise InvalidConfig unless the topic config of this name is a list."""
    config = TOPIC_CONFIGS.get(name)
    if config is None:
        validate(name, "")
    elif not isinstance(config.type, WordList):
        raise InvalidConfig(f"{name} is no list: nothing can be appended to it or subtracted from it")


def _check_form(wish: Wish) -> None:
    """Raise InvalidRequest for changes that contradict each other or aren't any."""
    names = [change.name for change in wish.changes]
    if len(set(names)) != len(names):
        twice = next(name for index, name in enumerate(names) if name in names[:index])
        raise InvalidRequest(f"the request has {twice} twice for one resource")
    for change in wish.changes:
        if change.operation not in Operation.__members__.values():
            raise InvalidRequest(f"{change.operation}, for {change.name}, is no operation: 0 to 3 are")
        if change.value is None and change.operation != Operation.DELETE:
            raise InvalidRequest(f"{change.name} has no value (null): to go back to the default, delete it")


def _edited(change: Change, before: str) -> str:
    """A list after an append or a subtraction; what is in it already isn't appended."""
    assert change.value is not None
    words = [word.strip() for word in before.split(",") if word.strip()]
    given = [word.strip() for word in change.value.split(",")]
    if change.operation == Operation.APPEND:
        return ",".join(dict.fromkeys((*words, *given)))
    return ",".join(word for word in words if word not in given)


def _command(
    kind: ResourceType, name: str, values: Mapping[str, str | None], present: Mapping[str, str], is_whole: bool
) -> SetConfigs:
    """``present``: what stands there now; a config that isn't there needn't be removed."""
    removed = {other: None for other in present if is_whole and other not in values}
    changed = {**values, **removed}
    return SetConfigs(
        resource_type=kind,
        name=name,
        configs=[
            NamedValue(name=each, value=changed[each])
            for each in sorted(changed)
            if changed[each] is not None or each in present
        ],
    )

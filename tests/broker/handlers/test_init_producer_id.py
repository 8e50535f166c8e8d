"""InitProducerId: ids that nobody has had, and what is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.handler_fakes import FakeContext, FakeNode, answer

from walrusmq.broker.handlers.init_producer_id import init_producer_id
from walrusmq.broker.producer_ids import BLOCK_SIZE
from walrusmq.protocol.errors import ErrorCode, KafkaStorageError
from walrusmq.protocol.messages.init_producer_id import InitProducerIdRequest

ALL_VERSIONS = range(6)


def ask(node: FakeNode, version: int = 5, **fields: Any) -> tuple[int, int, int]:
    request = InitProducerIdRequest(**{"transactional_id": None, "transaction_timeout_ms": 60_000} | fields)
    told = answer(init_producer_id, request, node, version)
    return told.error_code, told.producer_id, told.producer_epoch


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("timeout_ms", [60_000, 0, -1, 2**31 - 1])
def test_an_idempotent_producer_gets_an_id_with_epoch_0(version: int, timeout_ms: int) -> None:
    error, _, epoch = ask(FakeNode(), version, transaction_timeout_ms=timeout_ms)
    assert (error, epoch) == (0, 0)


def test_no_id_comes_twice_and_a_block_serves_many() -> None:
    node = FakeNode()
    ids = [ask(node)[1] for _ in range(BLOCK_SIZE + 1)]
    assert len(set(ids)) == len(ids)
    assert [command.count for command in node.proposed] == [BLOCK_SIZE, BLOCK_SIZE]


def test_a_node_that_started_anew_continues_behind_its_former_block() -> None:
    node = FakeNode()
    before = ask(node)[1]
    restarted = FakeNode()
    restarted.image = node.image
    restarted.incarnation = restarted.join(1)
    assert ask(restarted)[1] == before + BLOCK_SIZE


def test_a_producer_that_names_its_id_gets_a_new_one() -> None:
    node = FakeNode()
    first = ask(node)[1]
    error, second, epoch = ask(node, producer_id=first, producer_epoch=0)
    assert (error, epoch) == (0, 0)
    assert second != first


@pytest.mark.parametrize("transactional_id", [None, "x"])
@pytest.mark.parametrize("half", [{"producer_id": 5}, {"producer_epoch": 3}, {"producer_id": -2}])
def test_an_id_without_its_epoch_is_refused(half: dict[str, int], transactional_id: str | None) -> None:
    assert ask(FakeNode(), transactional_id=transactional_id, **half) == (ErrorCode.INVALID_REQUEST, -1, -1)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_an_empty_transactional_id_is_refused(version: int) -> None:
    node = FakeNode()
    assert ask(node, version, transactional_id="", transaction_timeout_ms=0) == (ErrorCode.INVALID_REQUEST, -1, -1)
    assert not node.proposed


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001, 2**31 - 1])
def test_a_transactions_timeout_has_bounds(timeout_ms: int) -> None:
    told = ask(FakeNode(), transactional_id="x", transaction_timeout_ms=timeout_ms)
    assert told == (ErrorCode.INVALID_TRANSACTION_TIMEOUT, -1, -1)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_transactions_are_refused_with_an_error_that_clients_do_not_repeat(version: int) -> None:
    error, producer_id, epoch = ask(FakeNode(), version, transactional_id="x")
    assert (ErrorCode(error), producer_id, epoch) == (ErrorCode.UNSUPPORTED_VERSION, -1, -1)
    assert not ErrorCode(error).is_retriable


def test_without_a_block_the_producer_is_asked_to_come_again() -> None:
    node = FakeNode()
    node.refusals = [KafkaStorageError("disk full")]
    assert ask(node) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1, -1)
    assert ask(node)[0] == 0


def test_many_producers_at_once_share_a_block() -> None:
    node = FakeNode()

    async def scenario() -> list[int]:
        request = InitProducerIdRequest(transactional_id=None)
        outcomes: list[Any] = [init_producer_id(request, FakeContext(node, 5)) for _ in range(100)]  # type: ignore
        return [response.producer_id for response in await asyncio.gather(*outcomes)]

    assert len(set(asyncio.run(scenario()))) == 100
    assert len(node.proposed) == 1

"""From frames to handlers and back: what happens to requests whatever their handlers do."""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.embedded import Wire, running_node
from support.waiting import until

from walrusmq.broker import dispatcher
from walrusmq.broker.deferred import Deferred
from walrusmq.broker.node import Node
from walrusmq.protocol.messages.api_versions import ApiVersionsRequest
from walrusmq.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from walrusmq.protocol.messages.metadata import MetadataRequest

HELLO = ApiVersionsRequest(client_software_name="test", client_software_version="1")
ASKED = DescribeClusterRequest()
VERSION = 1


@asynccontextmanager
async def a_node(folder: Path, monkeypatch: pytest.MonkeyPatch, handler: Any) -> AsyncIterator[tuple[Node, Wire]]:
    """A node whose DescribeCluster requests are served by ``handler``."""
    async with running_node(folder) as node, await Wire.to(node) as wire:
        await wire.ask(ASKED, 0)  # loads the real one
        monkeypatch.setitem(dispatcher._functions, DescribeClusterRequest, handler)
        yield node, wire


def fails(request: Any, context: Any) -> Any:
    raise RuntimeError("a defect")


async def fails_later(request: Any, context: Any) -> Any:
    await asyncio.sleep(0)
    raise RuntimeError("a defect")


def answers_nonsense(request: Any, context: Any) -> Any:
    return DescribeClusterResponse(cluster_id=object())  # type: ignore[arg-type]


def answers_nonsense_later(request: Any, context: Any) -> Any:
    deferred = Deferred()
    asyncio.get_running_loop().call_soon(deferred.resolve, answers_nonsense(request, context))
    return deferred


@pytest.mark.parametrize("handler", [fails, fails_later, answers_nonsense, answers_nonsense_later])
def test_a_defect_of_a_handler_costs_its_connection_and_is_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, handler: Any
) -> None:
    async def scenario() -> None:
        async with a_node(tmp_path, monkeypatch, handler) as (node, wire), await Wire.to(node) as other:
            wire.send(HELLO, 3)
            wire.send(ASKED, VERSION)
            wire.send(HELLO, 3)
            assert (await wire.receive(HELLO, 3)).error_code == 0, "earlier answers still leave"
            assert await wire.is_closed_by_peer()
            assert (await other.ask(HELLO, 3)).error_code == 0
        (record,) = [record for record in caplog.records if record.exc_info]
        assert record.getMessage() == "a DescribeCluster request failed"

    asyncio.run(scenario())


def test_answers_leave_in_the_order_of_requests_whenever_they_are_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        waiting: list[Deferred] = []

        def answers_when_told(request: Any, context: Any) -> Any:
            waiting.append(Deferred())
            return waiting[-1]

        async with a_node(tmp_path, monkeypatch, answers_when_told) as (_, wire):
            wire.send(HELLO, 3)
            wire.send(ASKED, VERSION)
            wire.send(HELLO, 3)
            wire.send(ASKED, VERSION)
            assert (await wire.receive(HELLO, 3)).error_code == 0
            await until(lambda: waiting)
            waiting.pop().resolve(DescribeClusterResponse(cluster_id="first"))
            assert (await wire.receive(ASKED, VERSION)).cluster_id == "first"
            assert (await wire.receive(HELLO, 3)).error_code == 0
            await until(lambda: waiting)
            waiting.pop().resolve(DescribeClusterResponse(cluster_id="second"))
            assert (await wire.receive(ASKED, VERSION)).cluster_id == "second"

    asyncio.run(scenario())


def test_versions_and_client_ids_may_change_from_request_to_request(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            for round_ in range(2):
                for version in range(13):
                    answer = await wire.ask(MetadataRequest(topics=[]), version)
                    assert answer.brokers[0].node_id == node.node_id
                    head = struct.pack(">hhih", 18, 0, round_, 2) + b"%02d" % version
                    wire.writer.write(struct.pack(">i", len(head)) + head)
                    assert (await wire.receive_frame())[:4] == struct.pack(">i", round_)

    asyncio.run(scenario())


def test_the_correlation_id_comes_back_whatever_it_is(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            for correlation_id in (0, 1, -1, 2**31 - 1, -(2**31)):
                head = struct.pack(">hhih", 18, 0, correlation_id, -1)
                wire.writer.write(struct.pack(">i", len(head)) + head)
                assert (await wire.receive_frame())[:4] == struct.pack(">i", correlation_id)

    asyncio.run(scenario())


def test_a_stop_waits_for_running_handlers_and_gives_up_in_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("walrusmq.broker.node.STOP_GRACE_S", 0.2)

    async def scenario() -> None:
        may_go_on = asyncio.Event()
        ended: list[str] = []

        async def takes_long(request: DescribeClusterRequest, context: Any) -> Any:
            try:
                if request.include_cluster_authorized_operations:
                    await asyncio.Event().wait()
                await may_go_on.wait()
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise
            ended.append("done")
            return DescribeClusterResponse(cluster_id="late")

        async with a_node(tmp_path, monkeypatch, takes_long) as (node, wire), await Wire.to(node) as endless:
            wire.send(ASKED, VERSION)
            endless.send(DescribeClusterRequest(include_cluster_authorized_operations=True), VERSION)
            await until(lambda: len(node._dispatcher._tasks) == 2)
            stop = asyncio.create_task(node.stop())
            await until(lambda: node.is_stopping)
            may_go_on.set()
            assert (await wire.receive(ASKED, VERSION)).cluster_id == "late"
            assert await endless.is_closed_by_peer()
            await stop
        assert ended == ["done", "cancelled"]
        assert not [record for record in caplog.records if record.levelno >= logging.ERROR]

    asyncio.run(scenario())


def test_requests_are_counted_by_api(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            for _ in range(3):
                await wire.ask(HELLO, 3)
            await wire.ask(MetadataRequest(topics=[]), 12)
            assert (node.metrics.requests[18], node.metrics.requests[3]) == (3, 1)

    asyncio.run(scenario())

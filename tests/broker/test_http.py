"""The HTTP port: what it understands, what it refuses, and that nobody can hold it up."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from walrusmq.broker import http
from walrusmq.broker.http import (
    MAX_CONNECTIONS,
    MAX_HEAD_BYTES,
    BadHttpRequest,
    HttpRequest,
    HttpResponse,
    HttpServer,
    http_date,
    parse_head,
)
from walrusmq.broker.http_pages import node_pages
from walrusmq.metrics import Metrics

PATIENCE_S = 10.0
GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@asynccontextmanager
async def serving(unready: Callable[[], list[str]] = list) -> AsyncIterator[HttpServer]:
    metrics = Metrics("1.2.3", {0: "Produce"}, {})
    server = HttpServer(("127.0.0.1", 0), node_pages(metrics, unready))
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await scenario()

    asyncio.run(bounded())


async def exchange(server: HttpServer, sent: bytes) -> bytes:
    """Everything that the server answers to ``sent`` until it closes."""
    reader, writer = await asyncio.open_connection(*server.address)
    writer.write(sent)
    answer = await reader.read()
    writer.close()
    return answer


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    """One answer with a body: status, headers, body."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    return int(head[0].split()[1]), headers, await reader.readexactly(int(headers["content-length"]))


def closing(path: str, method: str = "GET") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()


@pytest.mark.parametrize("request_line", [b"GET /a?b=c HTTP/1.1", b"GET http://host:1/a HTTP/1.1"])
def test_the_path_is_found_in_either_form_of_target(request_line: bytes) -> None:
    assert parse_head(request_line + b"\r\nHost: x").path == "/a"


def test_headers_are_read_in_lower_case_and_repeated_ones_joined() -> None:
    request = parse_head(b"GET / HTTP/1.1\r\nHOST: x\r\nAccept: a\r\nAccept:  b \r\nEmpty:")
    assert request.headers == {"host": "x", "accept": "a, b", "empty": ""}


@pytest.mark.parametrize(
    ("head", "keeps_alive"),
    [
        (b"GET / HTTP/1.1\r\nHost: x", True),
        (b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Close", False),
        (b"GET / HTTP/1.1\r\nHost: x\r\nConnection: te, close", False),
        (b"GET / HTTP/1.0", False),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive", True),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 0", True),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3", False),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked", False),
    ],
)
def test_a_connection_is_kept_as_the_version_and_the_headers_say(head: bytes, keeps_alive: bool) -> None:
    assert parse_head(head).keeps_alive is keeps_alive


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET / HTTP/1.1", 400),
        (b"GET  / HTTP/1.1\r\nHost: x", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\n folded", 400),
        (b"GET / HTTP/1.1\r\nHost : x", 400),
        (b"GET /\x00 HTTP/1.1\r\nHost: x", 400),
        (b"GET /", 400),
        (b"PRI * HTTP/2.0", 505),
    ],
)
def test_a_head_that_breaks_the_grammar_is_refused(head: bytes, status: int) -> None:
    with pytest.raises(BadHttpRequest) as refusal:
        parse_head(head)
    assert refusal.value.status == status


@given(st.binary(max_size=200))
def test_any_bytes_are_a_request_or_a_named_refusal(head: bytes) -> None:
    with suppress(BadHttpRequest):
        assert isinstance(parse_head(head), HttpRequest)


def test_dates_are_in_http_form() -> None:
    assert http_date(784111777) == "Sun, 06 Nov 1994 08:49:37 GMT"


def test_a_scrape_shows_the_metrics() -> None:
    async def scenario() -> None:
        async with serving() as server:
            answer = await exchange(server, closing("/metrics"))
            assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
            assert b'walrus_requests_total{api="Produce"} 0.0' in answer

    run(scenario)


def test_a_scraper_that_asks_for_openmetrics_gets_it() -> None:
    async def scenario() -> None:
        sent = b"GET /metrics HTTP/1.0\r\nAccept: application/openmetrics-text;version=1.0.0\r\n\r\n"
        async with serving() as server:
            answer = await exchange(server, sent)
            assert b"Content-Type: application/openmetrics-text" in answer
            assert answer.endswith(b"# EOF\n")

    run(scenario)


def test_the_first_scrape_leaves_no_thread_behind() -> None:
    async def scenario() -> None:
        before = threading.active_count()
        async with serving() as server:
            await exchange(server, closing("/metrics"))
        assert threading.active_count() == before

    run(scenario)


def test_health_is_ok_while_the_loop_runs() -> None:
    async def scenario() -> None:
        async with serving() as server:
            assert (await exchange(server, closing("/healthz"))).endswith(b"\r\n\r\nok\n")

    run(scenario)


def test_readiness_follows_the_reasons() -> None:
    async def scenario() -> None:
        reasons: list[str] = ["disk full on /data", "no quorum"]
        async with serving(lambda: reasons) as server:
            answer = await exchange(server, closing("/readyz"))
            assert answer.startswith(b"HTTP/1.1 503 ")
            assert answer.endswith(b"\r\n\r\ndisk full on /data\nno quorum\n")
            reasons.clear()
            assert (await exchange(server, closing("/readyz"))).startswith(b"HTTP/1.1 200 ")

    run(scenario)


def test_an_unknown_path_is_404_and_names_those_there_are() -> None:
    async def scenario() -> None:
        async with serving() as server:
            answer = await exchange(server, closing("/nothing"))
            assert answer.startswith(b"HTTP/1.1 404 ")
            assert b"/metrics" in answer

    run(scenario)


def test_another_method_is_405_with_those_allowed() -> None:
    async def scenario() -> None:
        async with serving() as server:
            answer = await exchange(server, closing("/metrics", "DELETE"))
            assert answer.startswith(b"HTTP/1.1 405 ")
            assert b"Allow: GET, HEAD\r\n" in answer

    run(scenario)


def test_head_has_the_headers_of_get_and_no_body() -> None:
    async def scenario() -> None:
        async with serving() as server:
            answer = await exchange(server, closing("/healthz", "HEAD"))
            assert b"Content-Length: 3\r\n" in answer
            assert answer.endswith(b"\r\n\r\n")

    run(scenario)


def test_a_connection_serves_one_request_after_another() -> None:
    async def scenario() -> None:
        async with serving() as server:
            reader, writer = await asyncio.open_connection(*server.address)
            for _ in range(3):
                writer.write(GET)
                status, headers, body = await read_answer(reader)
                assert (status, headers["connection"], body) == (200, "keep-alive", b"ok\n")
            writer.close()

    run(scenario)


def test_pipelined_requests_are_answered_in_their_order() -> None:
    async def scenario() -> None:
        async with serving() as server:
            answer = await exchange(server, GET + b"\r\n" + GET + closing("/readyz"))
            assert [part[:3] for part in answer.split(b"\r\n\r\n")[1:]] == [b"ok\n", b"ok\n", b"rea"]

    run(scenario)


def test_a_request_may_come_byte_by_byte() -> None:
    async def scenario() -> None:
        async with serving() as server:
            reader, writer = await asyncio.open_connection(*server.address)
            for byte in closing("/healthz"):
                writer.write(bytes([byte]))
                await writer.drain()
            assert (await reader.read()).endswith(b"ok\n")
            writer.close()

    run(scenario)


def test_a_client_that_ends_its_half_still_gets_its_answer() -> None:
    async def scenario() -> None:
        async with serving() as server:
            reader, writer = await asyncio.open_connection(*server.address)
            writer.write(GET)
            writer.write_eof()
            assert (await reader.read()).endswith(b"ok\n")
            writer.close()

    run(scenario)


@pytest.mark.parametrize("sent", [b"\x00\x00\x00\x12garbage", b"\x16\x03\x01\x02", b"GET / HTTP/9\r\n\r\n"])
def test_garbage_is_told_so_and_closed(sent: bytes) -> None:
    async def scenario() -> None:
        async with serving() as server:
            assert (await exchange(server, sent)).startswith(b"HTTP/1.1 400 ")

    run(scenario)


def test_a_body_is_not_read_as_the_next_request() -> None:
    async def scenario() -> None:
        smuggled = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
        head = b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(smuggled)
        async with serving() as server:
            answer = await exchange(server, head + smuggled)
            assert answer.count(b"HTTP/1.1 ") == 1
            assert answer.endswith(b"ok\n")

    run(scenario)


def test_an_endless_head_is_refused_at_its_limit() -> None:
    async def scenario() -> None:
        async with serving() as server:
            answer = await exchange(server, b"GET / HTTP/1.1\r\nX: " + b"x" * MAX_HEAD_BYTES)
            assert answer.startswith(b"HTTP/1.1 431 ")

    run(scenario)


def test_connections_past_the_limit_are_told_so() -> None:
    async def scenario() -> None:
        async with serving() as server:
            held = [await asyncio.open_connection(*server.address) for _ in range(MAX_CONNECTIONS)]
            assert (await exchange(server, GET)).startswith(b"HTTP/1.1 503 ")
            for _, writer in held:
                writer.close()

    run(scenario)


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HT"])
def test_a_client_that_never_ends_its_request_is_cut_off(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "HEAD_TIMEOUT_S", 0.05)

    async def scenario() -> None:
        async with serving() as server:
            reader, writer = await asyncio.open_connection(*server.address)
            writer.write(sent)
            with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
                await reader.readexactly(1)
            writer.close()

    run(scenario)


def test_an_idle_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "IDLE_TIMEOUT_S", 0.05)

    async def scenario() -> None:
        async with serving() as server:
            reader, writer = await asyncio.open_connection(*server.address)
            writer.write(GET)
            await read_answer(reader)
            with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
                await reader.readexactly(1)
            writer.close()

    run(scenario)


def test_a_page_that_fails_is_500_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(request: HttpRequest) -> HttpResponse:
        raise RuntimeError("the gauge broke")

    async def scenario() -> None:
        server = HttpServer(("127.0.0.1", 0), {"/broken": broken})
        await server.start()
        assert (await exchange(server, closing("/broken"))).startswith(b"HTTP/1.1 500 ")
        await server.stop()

    run(scenario)
    assert "the gauge broke" in caplog.text


def test_stopping_drops_open_connections_and_leaves_no_task() -> None:
    async def scenario() -> None:
        before = asyncio.all_tasks()
        async with serving() as server:
            reader, writer = await asyncio.open_connection(*server.address)
            writer.write(GET)
            await read_answer(reader)
        assert not server.connections
        assert asyncio.all_tasks() == before
        with pytest.raises(OSError, match=r".*"):
            await asyncio.open_connection(*server.address)
        writer.close()

    run(scenario)


def test_a_taken_port_is_an_error_at_the_start() -> None:
    async def scenario() -> None:
        async with serving() as server:
            second = HttpServer(server.address, {})
            with pytest.raises(OSError, match="in use"):
                await second.start()
            await second.stop()

    run(scenario)

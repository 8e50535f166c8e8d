"""``walrusmq serve``: one node in this process, until a signal."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from walrusmq import __version__
from walrusmq.broker.process_tuning import keep_freed_memory, raise_file_limit
from walrusmq.broker.setting_types import Address
from walrusmq.broker.settings import Settings
from walrusmq.cli import FAILED
from walrusmq.cli.log_lines import log_to_stderr
from walrusmq.cli.ready_file import Readiness, ReadyFile
from walrusmq.cli.setting_flags import SettingsParser

if TYPE_CHECKING:
    from walrusmq.broker.node import Node

logger = logging.getLogger("walrusmq.serve")

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
#: The allocator is set a little after the start, so that the start doesn't wait for the import of ctypes.
ALLOCATOR_DELAY_S = 0.2


def run(arguments: Sequence[str]) -> int:
    """Serve until SIGTERM or SIGINT; 0 after an orderly stop, 1 if the node couldn't start."""
    raise_file_limit()
    parser = SettingsParser("serve", "Run a broker: a node with one data folder, for any Kafka client.")
    _, settings = parser.parse(arguments)
    log_to_stderr(settings.log_level)
    return asyncio.run(_serve(settings))


async def _serve(settings: Settings) -> int:
    ready_file = ReadyFile(settings.ready_file) if settings.ready_file else None
    try:
        if ready_file:
            ready_file.prepare()
    except OSError as error:
        return _fail_to_write(ready_file, error)
    # Most of the code hangs on this import: a mistake in the settings is told without it.
    from walrusmq.broker.node import Node

    with _stopped_by_signals():
        try:
            node = Node(settings)
            await node.start()
        except asyncio.CancelledError:
            return 0
        except Exception as error:
            return _explain(error, settings)
        code = await _until_stopped(node, ready_file)
        try:
            await node.stop()
        except Exception:
            logger.exception("the stop failed: what was acknowledged is safe, the next start checks the rest")
            return FAILED
        logger.info("stopped")
        return code


async def _until_stopped(node: Node, ready_file: ReadyFile | None) -> int:
    """Say that the node serves, and wait for a signal, or for the node to give up; the log says why it did."""
    try:
        if ready_file:
            ready_file.write(_readiness(node))
    except OSError as error:
        return _fail_to_write(ready_file, error)
    print(_start_line(node), flush=True)
    gc.freeze()
    gc.enable()
    allocator = asyncio.get_running_loop().call_later(ALLOCATOR_DELAY_S, keep_freed_memory)
    try:
        await node.has_failed.wait()
        return FAILED
    except asyncio.CancelledError:
        _uncancel()
        logger.info("stopping")
    finally:
        allocator.cancel()
        if ready_file:
            ready_file.remove()
    return 0


@contextlib.contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """The first signal cancels the task that runs inside; a second ends the process at once."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    is_stopping = False

    def stop(number: int) -> None:
        nonlocal is_stopping
        if is_stopping:
            os._exit(128 + number)
        is_stopping = True
        task.cancel()

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop, number)
    try:
        yield
    finally:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)


def _uncancel() -> None:
    """Tell asyncio that the cancellation did its work: time limits inside the stop would misread it."""
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()


def _readiness(node: Node) -> Readiness:
    internal = node.internal_address
    return Readiness(
        pid=os.getpid(),
        node_id=node.node_id,
        listen=str(Address(*node.listen_address)),
        internal_listen=None if internal is None else str(Address(*internal)),
        http_listen=str(Address(*node.http_address)),
    )


def _start_line(node: Node) -> str:
    listen, http = Address(*node.listen_address), Address(*node.http_address)
    return (
        f"walrusmq {__version__} ready on {listen} "
        f"(data in {os.path.abspath(node.settings.data_dir)}, node {node.node_id}, metrics on http://{http}/metrics)"
    )


def _explain(error: Exception, settings: Settings) -> int:
    from walrusmq.cli.start_errors import explain

    logger.debug("the start failed", exc_info=error)
    return _fail(explain(error, settings))


def _fail_to_write(ready_file: ReadyFile | None, error: OSError) -> int:
    assert ready_file is not None
    return _fail(f"can't write the ready file {ready_file.path} (setting ready.file): {error.strerror or error}")


def _fail(message: str) -> int:
    print(f"walrusmq serve: {message}", file=sys.stderr)
    return FAILED

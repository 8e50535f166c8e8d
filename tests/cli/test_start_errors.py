"""Why a start failed, in words."""

from __future__ import annotations

import errno
import os
import socket
import sys

import pytest

from walrusmq.broker.data_folder import FolderInUse
from walrusmq.broker.settings import Settings
from walrusmq.cli.start_errors import explain

TAKEN = OSError(errno.EADDRINUSE, "Address already in use")


def settings(listen: str, http_listen: str = "127.0.0.1:0") -> Settings:
    return Settings.load({"listen": listen, "http.listen": http_listen})


def test_a_data_folder_speaks_for_itself() -> None:
    assert (
        explain(FolderInUse("the folder is in use by process 7"), settings("0")) == "the folder is in use by process 7"
    )


@pytest.mark.parametrize("name", ["listen", "http.listen"])
def test_a_taken_port_is_named_with_its_setting_and_flag(name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        address = f"127.0.0.1:{holder.getsockname()[1]}"
        told = explain(TAKEN, settings(address) if name == "listen" else settings("127.0.0.1:0", address))
    assert told.startswith(f"can't listen on {address} (setting {name}): the port is taken")
    assert f"--{name.replace('.', '-')}" in told


@pytest.mark.skipif(sys.platform != "linux", reason="only /proc tells who listens")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_holder_of_a_port_is_named(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        holder = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip("no IPv6 here")
    with holder:
        shown = f"[{host}]" if ":" in host else host
        told = explain(TAKEN, settings(f"{shown}:{holder.getsockname()[1]}"))
    assert f"by process {os.getpid()} (" in told


def test_an_address_of_another_machine_is_named() -> None:
    error = OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")
    assert "192.0.2.1 is no address of this machine" in explain(error, settings("192.0.2.1:9092"))


def test_a_host_that_has_no_address_is_named() -> None:
    error = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    assert "no such host: nowhere.invalid" in explain(error, settings("nowhere.invalid:9092"))


def test_any_other_error_is_told_as_it_is() -> None:
    assert (
        explain(OSError(errno.EIO, "Input/output error"), settings("0")) == "can't start: [Errno 5] Input/output error"
    )
    assert explain(ValueError("metadata is damaged"), settings("0")) == "can't start: metadata is damaged"
    assert explain(ValueError(), settings("0")) == "can't start: ValueError"

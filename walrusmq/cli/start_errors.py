"""Why a node didn't start, in one line that says what to do."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

from walrusmq.broker.data_folder import DataFolderError
from walrusmq.broker.setting_types import Address
from walrusmq.broker.settings import SETTINGS, Settings

#: The state of a listening socket in /proc/net/tcp.
_LISTENING = "0A"


def explain(error: Exception, settings: Settings) -> str:
    """The reason in words. ``error`` came out of a node's start, and the node has let go of everything."""
    if isinstance(error, DataFolderError):
        return str(error)
    if isinstance(error, OSError):
        return _explain_address(settings) or f"can't start: {error}"
    return f"can't start: {error}" if str(error) else f"can't start: {type(error).__name__}"


def _explain_address(settings: Settings) -> str | None:
    """The first address that can't be had, None if there is none such: then the error was about something else."""
    for name in ("listen", "http.listen"):
        address: Address = settings.value(name)
        try:
            _try_address(address)
        except OSError as error:
            advice = f"choose another with {SETTINGS[name].flag} (port 0 takes a free one)"
            return f"can't listen on {address} (setting {name}): {_reason(error, address)}; {advice}"
    return None


def _try_address(address: Address) -> None:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(tuple(address))


def _reason(error: OSError, address: Address) -> str:
    if isinstance(error, socket.gaierror):
        return f"no such host: {address.host}"
    match error.errno:
        case errno.EADDRINUSE:
            return f"the port is taken{_by_holder(address.port)}"
        case errno.EACCES:
            return "this user may not listen there (ports below 1024 need privileges)"
        case errno.EADDRNOTAVAIL:
            return f"{address.host} is no address of this machine"
    return error.strerror or str(error)


def _by_holder(port: int) -> str:
    """``" by process 12 (…)"`` where /proc tells, else nothing."""
    sockets = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    for folder in Path("/proc").glob("[0-9]*") if sockets else ():
        try:
            if any(os.readlink(link) in sockets for link in (folder / "fd").iterdir()):
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                return f" by process {folder.name} ({words})"
        except OSError:  # another user's, or gone meanwhile
            continue
    return ""


def _listening_inodes(port: int) -> set[str]:
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text().splitlines()[1:]
        except OSError:  # no /proc here
            continue
        for line in lines:
            columns = line.split()
            if columns[3] == _LISTENING and int(columns[1].rpartition(":")[2], 16) == port:
                inodes.add(columns[9])
    return inodes

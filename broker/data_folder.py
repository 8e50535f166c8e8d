"""The data folder of a node: held by one process at a time, and marked with whose it is.

``node.json`` says which node of which cluster the folder belongs to, and in which format it is written.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import fcntl
import json
import os
from pathlib import Path
from typing import NamedTuple

from walrusmq.segments.files import Files

#: What this version writes, and the newest that it reads.
FORMAT_VERSION = 1
#: The id of the first node of a cluster, where none is given.
FIRST_NODE_ID = 1
#: A node.json is tiny: more than this isn't ours.
MAX_IDENTITY_BYTES = 1 << 16

LOCK_NAME = "lock"
IDENTITY_NAME = "node.json"
#: Where the identity is written before it gets its name.
NEW_IDENTITY_NAME = IDENTITY_NAME + ".new"
#: Folders that are only there once a node has lived here.
DATA_NAMES = ("metadata", "topics")
#: What a new folder may hold: the traces of a first start that was cut short, and what a file system makes by itself.
#: Names that begin with a dot (snapshots, mount helpers) may be there too.
HARMLESS_NAMES = frozenset({LOCK_NAME, NEW_IDENTITY_NAME, "lost+found"})


class DataFolderError(Exception):
    """The folder can't be used; the message says why and what to do."""


class FolderInUse(DataFolderError):
    """Another node, in this process or another, has the folder."""


class IdentityMismatch(DataFolderError):
    """The folder belongs to another node or another cluster than the one that is to be started."""


class FolderFormatError(DataFolderError):
    """What is in the folder can't be read by this version."""


class ForeignFolder(DataFolderError):
    """The folder holds things, and none of them says that it is a node's."""


class MetadataMissing(DataFolderError):
    """There are topics, and no metadata log that says which."""


class Identity(NamedTuple):
    """Whose folder it is."""

    node_id: int
    cluster_id: str


class DataFolder:
    """A folder that one node at a time may open. ``path`` is absolute."""

    def __init__(self, path: str, files: Files) -> None:
        self.path = Path(os.path.abspath(path))
        self._files = files
        self._lock_fd: int | None = None

    def open(self, node_id: int | None, cluster_id: str | None) -> Identity:
        """Create the folder if need be, take its lock, and say whose it is.

        Ids that aren't given are the stored ones, in a new folder 1 and a random one. Raises DataFolderError.
        """
        assert self._lock_fd is None, "the data folder is open already"
        try:
            self._make()
            self._refuse_foreign()
            self._lock()
            stored = self._read_identity()
            if stored is None:
                identity = Identity(
                    FIRST_NODE_ID if node_id is None else node_id,
                    new_cluster_id() if cluster_id is None else cluster_id,
                )
                self._write_identity(identity)
            else:
                identity = stored
                self._compare("node.id", stored.node_id, node_id)
                self._compare("cluster.id", stored.cluster_id, cluster_id)
        except OSError as error:
            self.close()
            raise DataFolderError(
                f"can't use the data folder {self.path}: {error.strerror or error} "
                f"(setting data.dir chooses another; user {_user_name()} must be able to write there)"
            ) from error
        except DataFolderError:
            self.close()
            raise
        return identity

    def close(self) -> None:
        """Let go of the folder. The lock file stays: to remove it would race with the next process that takes it."""
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None

    def _make(self) -> None:
        try:
            os.makedirs(self.path, exist_ok=True)
        except FileExistsError:
            raise DataFolderError(
                f"can't use the data folder {self.path}: it is a file, not a folder (setting data.dir chooses another)"
            ) from None

    def _refuse_foreign(self) -> None:
        """Before anything is written: a folder with things in it must say that it is a node's."""
        names = self._files.listdir(str(self.path))
        if IDENTITY_NAME in names:
            return
        for name in DATA_NAMES:
            if name in names:
                raise FolderFormatError(
                    f"the data folder {self.path} holds {name}/ but no {IDENTITY_NAME}, which says whose it is: "
                    f"put that file back, or give this node another data.dir"
                )
        foreign = sorted(name for name in names if name not in HARMLESS_NAMES and not name.startswith("."))
        if foreign:
            raise ForeignFolder(
                f"{self.path} is no data folder: it isn't empty (it holds {foreign[0]}), and has no {IDENTITY_NAME}: "
                f"give this node a new or empty folder as data.dir, such as {self.path / 'walrus-data'}"
            )

    def _lock(self) -> None:
        path = self.path / LOCK_NAME
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
            os.close(fd)
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            whose = "this very process" if holder == str(os.getpid()) else f"process {holder or 'unknown'}"
            raise FolderInUse(
                f"the data folder {self.path} is in use by {whose}: stop that node, or give this one another data.dir"
            ) from None
        self._lock_fd = fd
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)

    def _read_identity(self) -> Identity | None:
        path = str(self.path / IDENTITY_NAME)
        if not self._files.exists(path):
            return None
        fd = self._files.open(path)
        try:
            content = self._files.pread(fd, MAX_IDENTITY_BYTES, 0)
        finally:
            self._files.close(fd)
        return _parse_identity(content, path)

    def _write_identity(self, identity: Identity) -> None:
        """Written aside, synced and renamed: after a crash there is all of it or nothing."""
        path = str(self.path / IDENTITY_NAME)
        aside = str(self.path / NEW_IDENTITY_NAME)
        content = json.dumps(
            {"format_version": FORMAT_VERSION, "node_id": identity.node_id, "cluster_id": identity.cluster_id}
        ).encode()
        fd = self._files.open(aside, create=True)
        try:
            self._files.ftruncate(fd, 0)
            written = self._files.pwrite(fd, content + b"\n", 0)
            if written <= len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._files.fdatasync(fd)
        finally:
            self._files.close(fd)
        self._files.replace(aside, path)
        self._files.sync_folder(str(self.path))
        with contextlib.suppress(OSError):  # the parent may belong to somebody else
            self._files.sync_folder(str(self.path.parent))

    def _compare(self, setting: str, stored: int | str, given: int | str | None) -> None:
        if given is None or given == stored:
            return
        raise IdentityMismatch(
            f"the data folder {self.path} belongs to {setting} {stored}, but {setting} is set to {given}: "
            f"to go on with this data leave {setting} out (or set it to {stored}); "
            f"for a node of its own, with {setting} {given}, give it another data.dir"
        )


def new_cluster_id() -> str:
    """A random UUID in URL-safe base64, 22 characters, not beginning with a dash (it would look like a flag)."""
    while True:
        random = bytearray(os.urandom(16))
        random[6] = random[6] & 0x0F | 0x40
        random[8] = random[8] & 0x3F | 0x80
        text = base64.urlsafe_b64encode(random).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def _user_name() -> str:
    """Whom this process runs as: the name, or the number where the system has no name for it."""
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _parse_identity(content: bytes, path: str) -> Identity:
    try:
        stored = json.loads(content)
    except ValueError:
        stored = None
    if not isinstance(stored, dict):
        stored = {}
    version, node_id, cluster_id = (stored.get(key) for key in ("format_version", "node_id", "cluster_id"))
    if type(version) is int and version > FORMAT_VERSION:
        raise FolderFormatError(
            f"{path} says format {version}, written by a newer WalrusMQ; this one reads up to format {FORMAT_VERSION}: "
            f"upgrade, or give this node another data.dir"
        )
    if version != FORMAT_VERSION or type(node_id) is not int or type(cluster_id) is not str:
        raise FolderFormatError(
            f"{path} is damaged: it should be a JSON object with format_version, node_id and cluster_id; "
            f"restore it, or give this node another data.dir"
        )
    return Identity(node_id, cluster_id)

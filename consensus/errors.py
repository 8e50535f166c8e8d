"""What can go wrong with the metadata log: errors that stop a start, and errors that a proposal gets."""

from __future__ import annotations

from walrusmq.protocol.errors import ErrorCode, KafkaError


class MetadataDamaged(Exception):
    """The metadata folder isn't as it was left: something that was on stable storage is gone or changed.

    The node must not start: it would have forgotten what it confirmed.
    """

    def __init__(self, path: str, finding: str) -> None:
        self.path = path
        self.finding = finding
        super().__init__(
            f"{path}: {finding}. Confirmed metadata is lost or changed, so the node doesn't start on it. Restore the"
            " data folder from a backup; in a cluster of several nodes you may remove it instead, and let the node"
            " join again"
        )


class NewerFormat(Exception):
    """A file was written by a newer version of WalrusMQ."""

    def __init__(self, path: str, found: int, known: int) -> None:
        super().__init__(
            f"{path}: its format version is {found}, and this version of WalrusMQ reads up to {known}."
            " Start the newer version that wrote it"
        )


class EntriesRefused(Exception):
    """The disk took none of the entries: they are certainly not in the log. ``__cause__`` is the OSError."""


class EntriesUncertain(Exception):
    """The disk failed while it wrote the entries: they may be found after a restart. ``__cause__`` is the OSError."""


class CommandTooLarge(KafkaError):
    """The command is larger than an entry of the metadata log may be; nothing was written."""

    code = ErrorCode.INVALID_REQUEST


class TooManyProposals(KafkaError):
    """More proposals wait than the metadata log holds; nothing was written, and the same may be tried again."""

    code = ErrorCode.THROTTLING_QUOTA_EXCEEDED


class ProposalRefused(KafkaError):
    """The disk of the metadata log refused; nothing was written, and the same may be tried again."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class ProposalUncertain(KafkaError):
    """The command was on its way into the metadata log when that failed: it may take effect later, or never."""

    code = ErrorCode.REQUEST_TIMED_OUT


class LogNotRunning(KafkaError):
    """The metadata log isn't started, is stopping, or has failed for good; nothing was written."""

    code = ErrorCode.NOT_CONTROLLER

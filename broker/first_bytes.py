"""What bytes that are no Kafka request look like: one phrase for the log line."""

from __future__ import annotations

_HTTP_METHODS = (b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PATC", b"CONN", b"PRI ")
_TLS_HANDSHAKE = b"\x16\x03"


def describe_first_bytes(start: bytes, max_frame_bytes: int, *, is_first: bool) -> str:
    """Say what ``start``, the beginning of a frame that can't be one, most likely is."""
    if start[:4] in _HTTP_METHODS:
        return "this looks like an HTTP request; this port speaks Kafka's protocol (see http.listen for /metrics)"
    if start[:2] == _TLS_HANDSHAKE:
        return "this looks like a TLS handshake; this port is plaintext: use security.protocol=PLAINTEXT"
    size = int.from_bytes(start[:4], "big", signed=True)
    what = "no Kafka request" if is_first else "no valid frame"
    if size > max_frame_bytes:
        return f"{what}: a frame of {size} bytes is announced, socket.request.max.bytes is {max_frame_bytes}"
    return f"{what}: a frame of {size} bytes is announced"

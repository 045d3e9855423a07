"""Responses of a provider, read while they pass."""

import json
import zlib
from collections.abc import Callable
from typing import Any

from compactd import _json
from compactd._memory import Record

# Bounds of what is read before the caller reads, and of one line of a stream.
MOST_HELD = 64 << 10
MOST_JSON = 4 << 20
MOST_LINE = 1 << 20
MOST_ERROR = 64 << 10  # bytes of an error; a worker refuses a larger one than 256 KiB

REFUSALS = (400, 413, 422)
TOO_LONG = {429: b"Extra usage is required for ", 500: b"exceeds the available context size"}
"""Words of refusals for length under statuses of others, which go to no worker."""
PREAMBLE = ("response.created", "response.in_progress", "response.queued", "message_start", "ping")


def accepted(encodings: str) -> str:
    """Return the encodings of responses that can be read here, for a request that accepts some."""
    return "gzip" if "gzip" in encodings else "identity"


class Answer:
    """The usage in a response, and the refusal that may come in the place of content.

    The caller feeds it with the bytes of the response, and reads on before it returns the response
    while holds is true.
    """

    def __init__(self, status: int, header: Callable[[str], str | None]):
        encoding = (header("Content-Encoding") or "identity").lower()
        readable = encoding in ("identity", "gzip")
        self._gzip = zlib.decompressobj(31) if encoding == "gzip" else None
        self.stream = status == 200 and readable and (header("Content-Type") or "").startswith("text/event-stream")
        self.status = 0 if self.stream else status  # that of a refusal
        self.refusal: str | None = None
        self.holds = readable and (status == 200 or status in REFUSALS or status in TOO_LONG)
        self._most = MOST_HELD if self.stream or status != 200 else MOST_JSON
        self._size = 0  # of what came while it was held
        self._text = bytearray()  # of a body that is no stream, or a line of one
        self._counts: dict[str, Any] = {}
        self._record: Record | None = None

    def feed(self, chunk: bytes) -> None:
        """Read the next bytes."""
        if not (self.stream or self.holds):
            return
        self._size += len(chunk)
        try:
            self._read(self._gzip.decompress(chunk) if self._gzip else chunk)
        except zlib.error:
            self.stream = self.holds = False
        if self.holds and self._size >= self._most:
            self.end()

    def _read(self, data: bytes) -> None:
        if not self.stream:
            self._text += data
            return
        lines = data.split(b"\n")
        for line in lines[:-1]:
            self._append(line)
            if self._text.startswith(b"data:"):
                self._event(bytes(self._text[5:]))
            self._text.clear()
        self._append(lines[-1])

    def _append(self, part: bytes) -> None:
        self._text += part[: MOST_LINE - len(self._text)]

    def end(self) -> None:
        """Read what is held: no more comes before the caller gets the response."""
        if self.holds and not self.stream:
            if self.status == 200:
                self._count(bytes(self._text))
            elif TOO_LONG.get(self.status, b"") in self._text:
                self.refusal = self._text.decode(errors="replace")
            self._text.clear()
        self.holds = False

    def _event(self, data: bytes) -> None:
        if self.holds:
            event = _object(data)
            if event is not None and _is_error(event):
                self.refusal = data.decode(errors="replace").strip()
            self.holds = self.refusal is None and event is not None and _is_preamble(event)
        if b'"usage"' in data:
            self._count(data)

    def _count(self, data: bytes) -> None:
        """Add the usage in an answer or an event to that of earlier events."""
        found = _object(data) or {}
        for inner in ("response", "message"):
            if isinstance(found.get(inner), dict):
                found = found[inner]
        if isinstance(found.get("usage"), dict):
            self._counts.update(found["usage"])
        self._report()

    def watch(self, record: Record | None) -> None:
        """Pass the usage on to the record of the call, once it is read."""
        self._record = record
        self._report()

    def _report(self) -> None:
        if self._record is not None and self._counts:
            self._record.usage = dict(self._counts)


def refusal(text: str) -> str:
    """Return the error of a provider as JSON: as it came where it is an object or an array.

    Of a long one it returns the beginning and the end.
    """
    data = text.encode(errors="replace")
    if len(data) > MOST_ERROR:
        data = b"%b \xe2\x80\xa6 %b" % (data[: MOST_ERROR // 2], data[-MOST_ERROR // 2 :])
    text = data.decode(errors="replace")
    try:
        if isinstance(_json.read(text), (dict, list)):
            return text
    except (ValueError, RecursionError):
        pass
    return json.dumps(text, ensure_ascii=False)


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        value = _json.read(data.decode())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _is_error(event: dict[str, Any]) -> bool:
    kind = event.get("type") or ""
    return kind in ("error", "response.failed") or not kind and event.get("error") is not None


def _is_preamble(event: dict[str, Any]) -> bool:
    """Report whether an event comes before content: an error may still follow it."""
    if event.get("type"):
        return event["type"] in PREAMBLE
    choices = event.get("choices")
    return isinstance(choices, list) and not any(map(_has_content, choices))


def _has_content(choice: Any) -> bool:
    """Report whether a choice of chat completions has more than the role."""
    if not isinstance(choice, dict):
        return False
    delta = choice.get("delta")
    members = delta.items() if isinstance(delta, dict) else ()
    return choice.get("finish_reason") is not None or any(k != "role" and v not in (None, "") for k, v in members)

"""The last answers of conversations."""

import threading
from typing import Any

from compactd._call import History, Piece
from compactd._json import Object, Value

REMEMBERED = 256  # conversations


class Synced:
    """An answer of a worker, whose parts cover the history."""

    def __init__(self, text: str, of: int):
        """Read the answer for a history of so many messages. Raises ValueError where it is none."""
        answer = Object(text, "parts")
        if not isinstance(answer.data("parts"), list):
            raise ValueError("the answer is not from a worker")
        self.of = of
        self.view = str(answer.data("view") or "")
        self.hash = str(answer.data("hash") or "")
        known = int(answer.data("count") or 0)  # messages that a later request may leave out; a branch has its own
        self.known = known if 0 < known <= of and self.hash and not answer.data("session") else 0
        self.code = str(answer.data("code") or "")
        self.changed = bool(answer.data("changed"))
        self.generation = int(answer.data("generation") or 0)
        self.budget: dict[str, Any] = dict(answer.data("budget") or {})
        self.available = int(self.budget.get("available_input_tokens") or 0)
        self.estimated = int(self.budget.get("estimated_input_tokens") or 0)
        self.warnings: list[dict[str, Any]] = [dict(w) for w in answer.data("warnings") or ()]
        self._parts: list[tuple[int, int] | tuple[Value, int | None]] = []  # ranges that are kept, and messages
        at = 0
        for part in answer.data("parts"):
            at = self._part(part.text, at)
        if at != of:
            raise ValueError("the parts do not belong to the history")

    def _part(self, text: str, at: int) -> int:
        """Add a part of the history from a place on, and return the place behind it."""
        part = Object(text)
        edit, first = part.data("edit"), at
        ranges: list[Any] = [part.data(name) for name in ("keep", "drop", "stands_for")]
        ranges.append(None if edit is None else [edit, edit + 1])
        for start, end in (r for r in ranges if r is not None):
            if start != at or type(end) is not int or end < start:
                raise ValueError("the parts do not belong to the history")
            at = end
        if part.data("keep"):
            self._parts.append((first, at))
        elif part.data("message") is not None:
            self._parts.append((part.members["message"], edit))
        return at

    def extend(self, history: History) -> list[Piece]:
        """Return what to send of a history that begins with the messages of the call."""
        n = len(history.messages)
        if not self.changed:
            return history.kept(0, n)
        out: list[Piece] = []
        for first, second in self._parts:
            if isinstance(first, Value):
                out.append(Piece(first, second, made=True))
            else:
                out += history.kept(first, second or 0)
        return out + history.kept(self.of, n)


class Record:
    """The last answer of a conversation, and how many bytes were sent."""

    def __init__(self, history: History, synced: Synced, size: int):
        self.session, self.setup = history.session, history.setup
        self.count, self.sum = len(history.messages), history.sums[-1]
        self.synced, self.size = synced, size
        self.usage: dict[str, Any] | None = None  # of its call, until it is sent

    def room(self) -> int:
        """Return how many bytes fit into the window, 0 where it is not known.

        A tenth is left free, because it is an estimate.
        """
        estimated = self.synced.estimated
        return self.size * self.synced.available // estimated * 9 // 10 if estimated else 0


class Memory:
    """The records, the newest at the end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the records
        self._records: list[Record] = []

    def find(self, history: History) -> tuple[Record | None, dict[str, Any] | None]:
        """Return the record of the longest history that a history begins with, and its unsent usage."""
        with self._lock:
            last = None
            for r in self._records:
                known = r.session == history.session and r.count < len(history.sums) and r.sum == history.sums[r.count]
                if known and (last is None or r.count >= last.count):
                    last = r
            if last is None:
                return None, None
            usage, last.usage = last.usage, None
            return last, usage

    def put(self, last: Record | None, new: Record) -> None:
        """Remember an answer in the place of the one before it."""
        with self._lock:
            self._records = [r for r in self._records if r is not last][1 - REMEMBERED :] + [new]

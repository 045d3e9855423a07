"""When a worker that does not answer is requested again."""

import threading
import time

from compactd._memory import REMEMBERED

FAILURES = 3  # in a row, after which no worker is requested


class Circuit:
    """Lets no request through for a while after failures in a row, and then one."""

    def __init__(self, retry_after: float):
        self._lock = threading.Lock()  # guards the fields below
        self._failures = 0
        self._until = 0.0
        self._retry_after = retry_after

    def allows(self) -> bool:
        with self._lock:
            if self._failures < FAILURES:
                return True
            now = time.monotonic()
            if now < self._until:
                return False
            self._until = now + self._retry_after
            return True

    def report(self, *, answered: bool) -> None:
        with self._lock:
            self._failures = 0 if answered else self._failures + 1
            self._until = time.monotonic() + self._retry_after


class Circuits:
    """The circuits of sessions: others are served while a large history of one is late."""

    def __init__(self, retry_after: float):
        self._lock = threading.Lock()  # guards the circuits
        self._circuits: dict[str, Circuit] = {}
        self._retry_after = retry_after

    def of(self, session: str) -> Circuit:
        with self._lock:
            if session not in self._circuits and len(self._circuits) >= REMEMBERED:
                self._circuits.clear()
            return self._circuits.setdefault(session, Circuit(self._retry_after))

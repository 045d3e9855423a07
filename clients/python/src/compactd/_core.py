"""Everything of a transport but its requests: what to request, and what follows from the answers."""

import contextlib
import contextvars
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict
from urllib.parse import quote

from compactd import _json
from compactd._answer import refusal
from compactd._call import LARGEST, Api, Call, History, Piece
from compactd._circuit import Circuits
from compactd._cut import CUTTABLE, cut
from compactd._memory import REMEMBERED, Memory, Record, Synced

CUT = "client_cut"
"""No worker answered, the history exceeded the window, and its oldest turns were left out."""

REFUSED_WAIT = 6.0  # a worker decides for five
MOST_WAIT = 8.0  # that a worker accepts
LARGE = 256 << 10  # characters of a message, whose media a worker may have by their hash alone


@dataclass(frozen=True)
class Problem:
    """Why a worker did not answer, or a warning of its answer: a stable code, and texts for people."""

    code: str
    message: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Compaction:
    """The first answer of a new generation of a session. Its budget is that of the shorter history."""

    session: str
    generation: int
    budget: Mapping[str, Any]


_session: contextvars.ContextVar[str | None] = contextvars.ContextVar("compactd_session")


@contextlib.contextmanager
def session(name: str | None) -> Iterator[None]:
    """Name the conversation of the requests inside the with block; None lets them pass unchanged."""
    token = _session.set(name)
    try:
        yield
    finally:
        _session.reset(token)


class Options(TypedDict, total=False):
    """The options of every transport."""

    tenant: str  # of all sessions; default "default"
    model: Mapping[str, Any]  # what the requests do not contain, such as {"context_window": 200_000}
    policy: Any  # settings of the sessions, see docs/format/policy.md
    wait: float  # the most seconds that a call waits for a worker; default 0.5
    retry_after: float  # seconds without requests to a worker after three failures of a session; default 5
    on_problem: Callable[[Problem], object]  # a worker does not answer or refuses, or its answer has a warning
    on_compacted: Callable[[Compaction], object]  # exceptions of both are ignored


class Ask(NamedTuple):
    """A request to a worker. An answer after the deadline is an error."""

    url: str
    headers: dict[str, str]
    body: bytes
    deadline: float  # of time.monotonic
    whole: Callable[[], "Ask"] | None = None  # the same with the messages behind a prefix, None without one

    def seconds(self) -> float:
        """Return how long an answer may take. Raises TimeoutError after the deadline."""
        seconds = self.deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("timed out")
        return seconds

    def again(self, reply: "Reply") -> "Ask | None":
        """Return what to request after a reply: the whole, where a worker needs it."""
        if self.whole is None or not isinstance(reply, tuple) or b'"need"' not in reply[1]:
            return None
        with contextlib.suppress(ValueError, RecursionError):
            answer = _json.read(reply[1].decode())
            if isinstance(answer, dict) and answer.get("need"):
                return self.whole()
        return None


Reply = tuple[int, bytes] | Exception | None  # status and body; None where no worker is requested


class Attempt(NamedTuple):
    """The part of a history that is sent. The record is None where no worker answered."""

    pieces: list[Piece]
    record: Record | None
    late: bool = False  # a worker may answer when it has more time


class Core:
    """The state of a transport."""

    def __init__(
        self,
        url: str,
        token: str,
        session: str | None,
        *,
        tenant: str = "default",
        model: Mapping[str, Any] | None = None,
        policy: Any = None,
        wait: float = 0.5,
        retry_after: float = 5.0,
        on_problem: Callable[[Problem], object] = lambda _: None,
        on_compacted: Callable[[Compaction], object] = lambda _: None,
    ):
        self._url, self._named, self._model, self._wait = url, session, model or {}, wait
        self._sessions = f"{url.rstrip('/')}/v1/sessions/{tenant}"
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._policy = {} if policy is None else {"policy": json.dumps(policy)}
        self._on_problem, self._on_compacted = on_problem, on_compacted
        self._memory = Memory()
        self._circuits = Circuits(retry_after)
        self._lock = threading.Lock()  # guards the field below
        self._seen: list[tuple[str, str]] = []  # session and code of problems that were reported and are not over
        json.dumps(self._model)  # what is no JSON is an error here, and none of a call

    def session(self) -> str | None:
        """Return the name of the conversation of a request that is made now."""
        name = _session.get(self._named)
        return None if name is None else str(name)

    def call(self, api: Api, session: str, path: str, body: bytes) -> Call | None:
        """Read a request, None where it passes unchanged."""
        if len(body) > LARGEST:  # it came without its length
            return None
        try:
            return Call(api, session, path, body, self._model)
        except (ValueError, RecursionError):
            return None

    def fit(self, history: History) -> tuple[Ask | None, Record | None]:
        """Return what to request of a worker before a call, None for nothing, and the record of the last call."""
        last, usage = self._memory.find(history)
        seconds = self._wait
        members = {"wait_ms": str(int(min(seconds * 3 / 4, MOST_WAIT) * 1000))}  # an answer comes before it is given up
        if last and usage:
            members["usage"] = json.dumps({**usage, "view": last.synced.view, "count": last.count})
        return self._ask(history, members, seconds, last.synced if last else None), last

    def fitted(self, history: History, last: Record | None, reply: Reply) -> Attempt:
        """Return what to send of a history, whatever a worker replied."""
        synced = self._answer(history, reply)
        if synced is None:
            return Attempt(self._without(history, last), None, isinstance(reply, TimeoutError))
        return self._answered(history, last, synced)

    def refused(self, history: History, sent: Attempt, error: str | None, status: int) -> Ask | None:
        """Return what to request after a call that was sent, None where it was not refused."""
        if error is None or not (sent.record or sent.late):
            return None
        view = {"view": json.dumps(sent.record.synced.view)} if sent.record and sent.record.synced.view else {}
        number = {"status": str(status)} if status else {}
        return self._ask(history, {"refused": _object({**view, **number, "error": refusal(error)})}, REFUSED_WAIT)

    def shorter(self, history: History, sent: Attempt, reply: Reply) -> Attempt | None:
        """Return what to send after a refusal, None where it would be refused again."""
        synced = self._answer(history, reply)
        if synced is None:
            return None
        again = self._answered(history, sent.record, synced)
        if synced.code:  # too long by estimate, which a provider need not share
            return again if history.size(again.pieces) < history.size(sent.pieces) else None
        same = [p.value.text for p in again.pieces] == [p.value.text for p in sent.pieces]
        return None if same else again

    def _ask(self, history: History, members: dict[str, str], seconds: float, last: Synced | None = None) -> Ask | None:
        """Return a request, None for nothing. A worker has the messages of its last answer."""
        deadline = time.monotonic() + seconds
        if not self._circuits.of(history.session).allows():
            return None
        of = {
            "format": json.dumps(history.format),
            "model": json.dumps(history.model),
            **history.settings,
            **self._policy,
            **members,
        }
        url = f"{self._sessions}/{_escaped(history.session)}/sync"

        def ask(known: int, prefix: dict[str, str], whole: Callable[[], Ask] | None) -> Ask:
            messages = ",".join(m.text for m in history.messages[known:])
            body = _object({**of, **prefix, "messages": f"[{messages}]"})
            return Ask(url, self._headers, body.encode(), deadline, whole)

        if last is None or last.known == 0 or any(len(m.text) > LARGE for m in history.messages[: last.known]):
            return ask(0, {}, None)
        prefix = {"prefix": json.dumps({"count": last.known, "hash": last.hash})}
        return ask(last.known, prefix, lambda: ask(0, {}, None))

    def _answer(self, history: History, reply: Reply) -> Synced | None:
        """Read a reply, and report why it is none."""
        if reply is None:
            return None
        try:
            return self._read(history, reply)
        except _Refused as e:
            problem = e.problem
        except Exception as e:  # whatever a worker sends, the agent goes on
            problem = Problem("unavailable", f"no worker answers at {self._url}: {str(e) or repr(e)}", _START)
        self._circuits.of(history.session).report(answered=problem.code not in _AWAY)
        if problem.code != "not_overflow":
            self.report(history.session, problem)
        return None

    def _read(self, history: History, reply: tuple[int, bytes] | Exception) -> Synced:
        if isinstance(reply, Exception):
            raise reply
        status, body = reply
        if status != 200:
            raise _Refused(_problem(status, body))
        synced = Synced(body.decode(), len(history.messages))
        self._circuits.of(history.session).report(answered=True)
        return synced

    def report(self, session: str, problem: Problem) -> None:
        """Pass a problem on, once until it is over."""
        of = ("" if problem.code in _AWAY else session, problem.code)
        with self._lock:
            if of in self._seen:
                return
            self._seen = [*self._seen, of][-REMEMBERED:]
        with contextlib.suppress(Exception):
            self._on_problem(problem)

    def _answered(self, history: History, last: Record | None, synced: Synced) -> Attempt:
        """Remember an answer, and return what to send of it."""
        pieces = synced.extend(history)
        record = Record(history, synced, history.size(pieces))
        self._memory.put(last, record)
        warnings = [_problem_of(w) for w in synced.warnings]
        codes = {w.code for w in warnings}
        with self._lock:
            self._seen = [(s, c) for s, c in self._seen if s and (s != history.session or c in codes)]
        for w in warnings:
            self.report(history.session, w)
        if synced.generation > (last.synced.generation if last else 0):
            with contextlib.suppress(Exception):
                self._on_compacted(Compaction(history.session, synced.generation, synced.budget))
        return Attempt(pieces, record)

    def _without(self, history: History, last: Record | None) -> list[Piece]:
        """Return what to send when no worker answers."""
        if last is None or last.setup != history.setup:
            return history.kept(0, len(history.messages))
        pieces, most = last.synced.extend(history), last.room()
        if not most or history.format not in CUTTABLE or history.size(pieces) <= most:
            return pieces
        try:
            pieces = cut(history, pieces, most)
        except (AttributeError, KeyError, TypeError, ValueError):  # of a message that has another shape
            return pieces
        text = "the history exceeds the window, and no worker answers: its oldest turns are left out"
        self.report(history.session, Problem(CUT, text, _RETURN))
        return pieces


_AWAY = ("unavailable", "unauthorized", "forbidden")  # the next request would fail too, of any session
_START = "Start one with: worker --agents HOST:PORT --agents-tokens FILE"
_RETURN = "Start a worker. Nothing is lost: its next answer is made of the whole history."


class _Refused(Exception):
    def __init__(self, problem: Problem):
        super().__init__(problem.code)
        self.problem = problem


def _escaped(name: str) -> str:
    """Return the name of a session in a path, where . and .. are steps."""
    return name.replace(".", "%2E") if name in (".", "..") else quote(name, safe="", errors="replace")


def _object(members: dict[str, str]) -> str:
    return "{" + ",".join(f'"{name}":{text}' for name, text in members.items()) + "}"


def _problem(status: int, body: bytes) -> Problem:
    """Return the refusal of a worker."""
    with contextlib.suppress(ValueError, RecursionError):
        error = _json.read(body.decode())
        if isinstance(error, dict) and error.get("code"):
            return _problem_of(error)
    if status == 401:
        return Problem(
            "unauthorized", "the token is missing or wrong", "Check the token, and its tenant in the file of tokens."
        )
    return Problem("unavailable", f"no worker answers: status {status}", _START)


def _problem_of(error: Mapping[str, Any]) -> Problem:
    return Problem(str(error.get("code") or ""), str(error.get("message") or ""), str(error.get("hint") or ""))

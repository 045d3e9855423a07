"""Requests to a worker, with the standard library."""

import asyncio
import contextlib
import contextvars
import http.client
import io
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar
from urllib.parse import urlsplit

from compactd._core import Ask, Reply

LARGEST = 32 << 20  # bytes of an answer

P = ParamSpec("P")
R = TypeVar("R")
B = TypeVar("B", bytes, bytearray)


class Worker:
    """A worker, over connections that stay open. It may be used by many threads."""

    def __init__(self) -> None:
        self._idle: list[http.client.HTTPConnection] = []  # pop and append are atomic
        self._process = os.getpid()

    def post(self, ask: Ask | None) -> Reply:
        """Return the reply, or the error in its place: the agent goes on without."""
        if ask is None:
            return None
        url, task = urlsplit(ask.url), _task.get(None)
        connection = None
        try:
            connection = self._open(url.scheme, url.netloc, ask.seconds())
            if task:
                task.begin(connection)
            connection.response_class = partial(_Response, deadline=ask.deadline)
            connection.request("POST", url.path, ask.body, ask.headers)
            response = connection.getresponse()
            reply = response.status, bounded(response.read(LARGEST + 1))
            if task:
                task.end()
        except BaseException as e:
            if connection:
                connection.close()
            if isinstance(e, Exception) and not (task and task.cancelled):
                return e
            raise
        self._idle.append(connection)
        return reply

    async def apost(self, ask: Ask | None) -> Reply:
        """Return the reply of post, and block meanwhile: for _exchange.run alone, not for an event loop."""
        return self.post(ask)

    def _open(self, scheme: str, host: str, seconds: float) -> http.client.HTTPConnection:
        if self._process != os.getpid():  # the process that this one was forked from goes on with the connections
            self._process = os.getpid()
            self.close()
        while self._idle:
            connection = self._idle.pop()
            if connection.sock and not _ended(connection):
                connection.sock.settimeout(seconds)
                return connection
            connection.close()
        https = scheme == "https"
        connection = (http.client.HTTPSConnection if https else http.client.HTTPConnection)(host, timeout=seconds)
        connection.connect()
        return connection

    def close(self) -> None:
        """Close the connections."""
        while self._idle:
            self._idle.pop().close()


def bounded(body: B) -> B:
    """Return the beginning of an answer. Raises ValueError where it is too large for one of a worker."""
    if len(body) > LARGEST:
        raise ValueError("the answer is too large")
    return body


class _Response(http.client.HTTPResponse):
    """A response that has come whole at a deadline, however slowly its bytes come."""

    def __init__(self, sock: socket.socket, *args: Any, deadline: float, **kwargs: Any):
        super().__init__(sock, *args, **kwargs)
        self.fp: Any = io.BufferedReader(_Until(deadline, sock, self.fp.detach()))


class _Until(io.RawIOBase):
    """The bytes of a socket until a deadline."""

    def __init__(self, deadline: float, sock: socket.socket, raw: io.RawIOBase):
        self._deadline, self._sock, self._raw = deadline, sock, raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(max(self._deadline - time.monotonic(), 1e-6))  # 0 is no timeout
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


async def in_thread(call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Make a call in a thread. When it is cancelled, its request to a worker ends."""
    task = _Task()
    token = _task.set(task)
    try:
        return await asyncio.to_thread(call, *args, **kwargs)
    except asyncio.CancelledError:
        task.cancel()
        raise
    finally:
        _task.reset(token)


class _Task:
    """A call in a thread, and the connection of its request."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the fields below
        self._connection: http.client.HTTPConnection | None = None
        self.cancelled = False

    def begin(self, connection: http.client.HTTPConnection | None) -> None:
        with self._lock:
            self._connection = connection
            if self.cancelled:
                raise asyncio.CancelledError

    def end(self) -> None:
        self.begin(None)

    def cancel(self) -> None:
        with self._lock:
            self.cancelled = True
            if self._connection and self._connection.sock:
                with contextlib.suppress(OSError):  # the worker has ended it
                    self._connection.sock.shutdown(socket.SHUT_RDWR)


_task: contextvars.ContextVar[_Task] = contextvars.ContextVar("compactd_task")


def _ended(connection: http.client.HTTPConnection) -> bool:
    """Report whether the worker has ended an idle connection: a request on it would be lost."""
    with selectors.DefaultSelector() as selector:
        selector.register(connection.sock, selectors.EVENT_READ)
        return bool(selector.select(0))

"""Requests to a worker, with the standard library."""

import http.client
import selectors
from urllib.parse import urlsplit

from compactd._core import Ask, Reply


class Worker:
    """A worker, over connections that stay open. It may be used by many threads."""

    def __init__(self) -> None:
        self._idle: list[http.client.HTTPConnection] = []  # pop and append are atomic

    def post(self, ask: Ask | None) -> Reply:
        """Return the reply, or the error in its place: the agent goes on without."""
        if ask is None:
            return None
        url = urlsplit(ask.url)
        connection = None
        try:
            connection = self._open(url.scheme, url.netloc, ask.seconds)
            connection.request("POST", url.path, ask.body, ask.headers)
            response = connection.getresponse()
            reply = response.status, response.read()
        except BaseException as e:
            if connection:
                connection.close()
            if isinstance(e, Exception):
                return e
            raise
        self._idle.append(connection)
        return reply

    def _open(self, scheme: str, host: str, seconds: float) -> http.client.HTTPConnection:
        while self._idle:
            connection = self._idle.pop()
            if connection.sock and not _ended(connection):
                connection.sock.settimeout(seconds)
                return connection
            connection.close()
        if scheme == "https":
            return http.client.HTTPSConnection(host, timeout=seconds)
        return http.client.HTTPConnection(host, timeout=seconds)

    def close(self) -> None:
        """Close the connections."""
        while self._idle:
            self._idle.pop().close()


def _ended(connection: http.client.HTTPConnection) -> bool:
    """Report whether the worker has ended an idle connection: a request on it would be lost."""
    with selectors.DefaultSelector() as selector:
        selector.register(connection.sock, selectors.EVENT_READ)
        return bool(selector.select(0))

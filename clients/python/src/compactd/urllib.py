"""A handler for urllib, for agents without packages:

opener = urllib.request.build_opener(compactd.urllib.Handler(url, token, session))
with opener.open(request) as response:  # to the provider
    ...
"""

from __future__ import annotations

import copy
import http.client
import io
import urllib.request
import urllib.response
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from compactd._answer import accepted
from compactd._call import api_of
from compactd._core import Core, Options
from compactd._exchange import Body, exchange, run
from compactd._worker import Worker

if TYPE_CHECKING:
    from typing_extensions import Unpack

_Open = Callable[[urllib.request.Request], Any]


class Handler(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Sends the requests of an opener with the messages that a worker answered.

    It may be used by many threads.
    """

    def __init__(self, url: str, token: str, session: str | None = None, **options: Unpack[Options]):
        """Fit the requests of a session, by a worker at a URL. See compactd.Options."""
        super().__init__()
        self._core = Core(url, token, session, **options)
        self._worker = Worker()

    def http_open(self, req: urllib.request.Request) -> Any:
        """Send a request."""
        return self._open(req, super().http_open)

    def https_open(self, req: urllib.request.Request) -> Any:
        """Send a request."""
        return self._open(req, super().https_open)

    def close(self) -> None:
        """Close the connections to the worker."""
        self._worker.close()
        super().close()

    def _open(self, req: urllib.request.Request, base: _Open) -> Any:
        path, session = unquote(urlsplit(req.full_url).path), self._core.session()
        api = api_of(req.get_method(), path, lambda name: req.get_header(name.capitalize()))
        call = (
            self._core.call(api, session, path, req.data) if api and session and isinstance(req.data, bytes) else None
        )
        if call is None:
            return base(req)

        async def send(body: bytes) -> Body:
            return _Body(base(_with(req, body)))

        return run(exchange(self._core, call, self._worker.apost, send))


def _with(req: urllib.request.Request, body: bytes) -> urllib.request.Request:
    r = copy.copy(req)
    r.headers, r.unredirected_hdrs = dict(req.headers), dict(req.unredirected_hdrs)
    r.data = body
    r.add_unredirected_header("Content-length", str(len(body)))
    if encodings := req.get_header("Accept-encoding"):
        r.add_header("Accept-encoding", accepted(encodings))
    return r


class _Body(Body, io.RawIOBase):
    """The body of a response, and the response with this body."""

    def __init__(self, r: Any):
        super().__init__(r, r.status)
        self._response, self._rest = r, b""
        self.response = urllib.response.addinfourl(io.BufferedReader(self), r.headers, r.url, r.status)
        self.response.msg = r.msg  # type: ignore[attr-defined]  # that openers read

    async def chunk(self) -> bytes | None:
        chunk: bytes = self._response.read1(64 << 10)
        if not chunk and self._response.length:
            raise http.client.IncompleteRead(b"", self._response.length)
        return chunk or None

    async def end(self) -> None:
        self.close()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._rest or run(self.next()) or b""
        n = min(len(buffer), len(data))
        buffer[:n], self._rest = data[:n], data[n:]
        return n

    def close(self) -> None:
        self._response.close()
        super().close()

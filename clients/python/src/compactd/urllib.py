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

from compactd._answer import Answer, accepted
from compactd._call import Call, api_of
from compactd._core import Attempt, Core, Options
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
        ask, last = self._core.fit(call)
        sent = self._core.fitted(call, last, self._worker.post(ask))
        response, body = _send(base, req, call, sent)
        if body is None:
            return response
        try:
            ask = self._core.refused(call, sent, body.answer.refusal, body.answer.status)
            again = self._core.shorter(call, sent, self._worker.post(ask))
        except BaseException:
            body.close()
            raise
        if again is not None:
            body.close()
            sent = again
            response, body = _send(base, req, call, sent)
            assert body is not None  # a worker answered
        body.answer.watch(sent.record)
        info = urllib.response.addinfourl(io.BufferedReader(body), response.headers, response.url, response.status)
        info.msg = response.msg  # type: ignore[attr-defined]  # that openers read
        return info


def _send(base: _Open, req: urllib.request.Request, call: Call, sent: Attempt) -> tuple[Any, _Body | None]:
    """Send a request with another body. The body of its response is None where no worker answered."""
    r = copy.copy(req)
    r.headers, r.unredirected_hdrs = dict(req.headers), dict(req.unredirected_hdrs)
    r.data = call.with_pieces(sent.pieces)
    r.add_unredirected_header("Content-length", str(len(r.data)))
    if encodings := req.get_header("Accept-encoding"):
        r.add_header("Accept-encoding", accepted(encodings))
    response = base(r)
    return response, None if sent.record is None else _Body(response)


class _Body(io.RawIOBase):
    """The body of a response, held back until it is known to be no refusal."""

    def __init__(self, response: http.client.HTTPResponse):
        self.answer = Answer(response.status, response.headers.get)
        self._response = response
        self._held = bytearray()
        self._error: Exception | None = None
        try:
            while self.answer.holds:
                self._hold()
        except BaseException:
            response.close()
            raise

    def _hold(self) -> None:
        try:
            chunk = self._next(64 << 10)
        except Exception as e:  # for the caller, when it has read so far
            self._error = e
            chunk = b""
        self._held += chunk
        if not chunk:
            self.answer.end()

    def _next(self, most: int) -> bytes:
        chunk = self._response.read1(most)
        if not chunk and self._response.length:
            raise http.client.IncompleteRead(b"", self._response.length)
        self.answer.feed(chunk)
        return chunk

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._held and self._error is not None:
            raise self._error
        chunk = self._held[: len(buffer)] or self._next(len(buffer))
        del self._held[: len(chunk)]
        buffer[: len(chunk)] = chunk
        return len(chunk)

    def close(self) -> None:
        self._response.close()
        super().close()

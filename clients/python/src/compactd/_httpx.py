"""What the transports for httpx and for httpx2 have in common: both have one interface."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

from compactd._answer import Answer, accepted
from compactd._call import Call, api_of
from compactd._core import Ask, Attempt, Core, Options, Reply
from compactd._worker import Worker

if TYPE_CHECKING:
    import httpx
    from typing_extensions import Unpack


class Transport:
    """Sends the requests of an httpx.Client with the messages that a worker answered.

    It may be used by many threads.
    """

    _library: Any
    _stream: Any

    def __init__(
        self,
        url: str,
        token: str,
        session: str | None = None,
        *,
        base: httpx.BaseTransport | None = None,
        **options: Unpack[Options],
    ):
        """Fit the requests of a session, by a worker at a URL. See compactd.Options.

        base sends them; default HTTPTransport(). Settings of TLS, proxies and limits are its own.
        """
        self._core = Core(url, token, session, **options)
        self._base = base or self._library.HTTPTransport()
        self._worker = Worker()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request. Its errors are those of base."""
        path, session = request.url.path, self._core.session()
        api = api_of(request.method, path, request.headers.get)
        call = self._core.call(api, session, path, request.read()) if api and session else None
        if call is None:
            return self._base.handle_request(request)
        ask, last = self._core.fit(call)
        sent = self._core.fitted(call, last, self._worker.post(ask))
        response, body = self._send(request, call, sent)
        if body is None:
            return response
        try:
            ask = self._core.refused(call, sent, body.answer.refusal, body.answer.status)
            again = self._core.shorter(call, sent, self._worker.post(ask))
        except BaseException:
            response.close()
            raise
        if again is not None:
            response.close()
            sent = again
            response, body = self._send(request, call, sent)
            assert body is not None  # a worker answered
        body.answer.watch(sent.record)
        return response

    def _send(self, request: httpx.Request, call: Call, sent: Attempt) -> tuple[httpx.Response, Stream | None]:
        """Send a request with another body. The stream is None where no worker answered."""
        response = self._base.handle_request(_with(self._library, request, call.with_pieces(sent.pieces)))
        if sent.record is None:
            return response, None
        stream = self._stream(response.stream, Answer(response.status_code, response.headers.get))
        response.stream = stream
        try:
            stream.hold()
        except BaseException:
            stream.close()
            raise
        return response, stream

    def close(self) -> None:
        """Close base, and the connections to the worker."""
        self._worker.close()
        self._base.close()


class AsyncTransport:
    """Sends the requests of an httpx.AsyncClient with the messages that a worker answered.

    It may be used by many tasks of asyncio. Where a request is cancelled, that to the worker ends.
    """

    _library: Any
    _stream: Any

    def __init__(
        self,
        url: str,
        token: str,
        session: str | None = None,
        *,
        base: httpx.AsyncBaseTransport | None = None,
        **options: Unpack[Options],
    ):
        """Fit the requests of a session, by a worker at a URL. See compactd.Options.

        base sends them; default AsyncHTTPTransport(). Settings of TLS, proxies and limits are its own.
        """
        self._core = Core(url, token, session, **options)
        self._base = base or self._library.AsyncHTTPTransport()
        limits = self._library.Limits(max_connections=None, max_keepalive_connections=20)
        verify = url.startswith("https")  # certificates take 30 ms to read
        self._worker = self._library.AsyncClient(limits=limits, verify=verify)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request. Its errors are those of base."""
        path, session = request.url.path, self._core.session()
        api = api_of(request.method, path, request.headers.get)
        call = self._core.call(api, session, path, await request.aread()) if api and session else None
        if call is None:
            return await self._base.handle_async_request(request)
        ask, last = self._core.fit(call)
        sent = self._core.fitted(call, last, await self._post(ask))
        response, body = await self._send(request, call, sent)
        if body is None:
            return response
        try:
            ask = self._core.refused(call, sent, body.answer.refusal, body.answer.status)
            again = self._core.shorter(call, sent, await self._post(ask))
        except BaseException:
            await response.aclose()
            raise
        if again is not None:
            await response.aclose()
            sent = again
            response, body = await self._send(request, call, sent)
            assert body is not None  # a worker answered
        body.answer.watch(sent.record)
        return response

    async def _post(self, ask: Ask | None) -> Reply:
        if ask is None:
            return None
        try:
            request = self._worker.post(ask.url, content=ask.body, headers=ask.headers, timeout=ask.seconds)
            r = await asyncio.wait_for(request, ask.seconds)
            return r.status_code, r.content
        except Exception as e:  # the agent goes on without
            return e

    async def _send(
        self, request: httpx.Request, call: Call, sent: Attempt
    ) -> tuple[httpx.Response, AsyncStream | None]:
        """Send a request with another body. The stream is None where no worker answered."""
        response = await self._base.handle_async_request(_with(self._library, request, call.with_pieces(sent.pieces)))
        if sent.record is None:
            return response, None
        stream = self._stream(response.stream, Answer(response.status_code, response.headers.get))
        response.stream = stream
        try:
            await stream.hold()
        except BaseException:
            await stream.aclose()
            raise
        return response, stream

    async def aclose(self) -> None:
        """Close base, and the connections to the worker."""
        await self._worker.aclose()
        await self._base.aclose()


def _with(library: Any, request: httpx.Request, body: bytes) -> httpx.Request:
    headers = request.headers.copy()
    headers.pop("Transfer-Encoding", None)
    headers["Content-Length"] = str(len(body))
    if encodings := headers.get("Accept-Encoding"):
        headers["Accept-Encoding"] = accepted(encodings)
    made: httpx.Request = library.Request(
        request.method, request.url, headers=headers, content=body, extensions=request.extensions
    )
    return made


class Stream:
    """The body of a response, held back until it is known to be no refusal."""

    def __init__(self, stream: httpx.SyncByteStream, answer: Answer):
        self.answer = answer
        self._stream, self._chunks = stream, iter(stream)
        self._held: list[bytes] = []
        self._error: Exception | None = None

    def hold(self) -> None:
        try:
            while self.answer.holds and (chunk := next(self._chunks, None)) is not None:
                self._held.append(chunk)
                self.answer.feed(chunk)
        except Exception as e:  # for the caller, when it has read so far
            self._error = e
        self.answer.end()

    def __iter__(self) -> Iterator[bytes]:
        while self._held:
            yield self._held.pop(0)
        if self._error is not None:
            raise self._error
        for chunk in self._chunks:
            self.answer.feed(chunk)
            yield chunk

    def close(self) -> None:
        self._stream.close()


class AsyncStream:
    """As Stream."""

    def __init__(self, stream: httpx.AsyncByteStream, answer: Answer):
        self.answer = answer
        self._stream, self._chunks = stream, aiter(stream)
        self._held: list[bytes] = []
        self._error: Exception | None = None

    async def hold(self) -> None:
        try:
            while self.answer.holds and (chunk := await anext(self._chunks, None)) is not None:
                self._held.append(chunk)
                self.answer.feed(chunk)
        except Exception as e:  # for the caller, when it has read so far
            self._error = e
        self.answer.end()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self._held:
            yield self._held.pop(0)
        if self._error is not None:
            raise self._error
        async for chunk in self._chunks:
            self.answer.feed(chunk)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()

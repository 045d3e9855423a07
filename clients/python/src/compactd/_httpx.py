"""Shared code of the transports for httpx and httpx2: both have one interface."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies, proxy_bypass

from compactd._answer import accepted
from compactd._call import api_of
from compactd._core import Ask, Core, Options, Reply
from compactd._exchange import Body, exchange, run
from compactd._worker import Worker, bounded

if TYPE_CHECKING:
    import httpx
    from typing_extensions import Unpack


class _Transport:
    """A transport, but for its requests."""

    _library: Any
    _stream: Any
    _core: Core
    _read: Any  # the body of a request
    _send: Any  # a request to the provider
    _post: Any  # a request to a worker

    async def _handle(self, request: httpx.Request) -> Any:
        path, session = request.url.path, self._core.session()
        api = api_of(request.method, path, request.headers.get)
        call = self._core.call(api, session, path, await self._read(request)) if api and session else None
        if call is None:
            return await self._send(request)

        async def send(body: bytes) -> Any:
            response = await self._send(_with(self._library, request, body))
            response.stream = self._stream(response)
            return response.stream

        return await exchange(self._core, call, self._post, send)


class Transport(_Transport):
    """Sends the requests of an httpx.Client with the messages that a worker answered.

    It may be used by many threads.
    """

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

        base sends them; default HTTPTransport(), with the proxies of the environment. Settings of TLS,
        proxies and limits are its own.
        """
        self._core = Core(url, token, session, **options)
        self._bases = _Bases(base, self._library.HTTPTransport, self._library.Proxy)
        self._worker = Worker()
        self._post = self._worker.apost

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request. Its errors are those of base."""
        response: httpx.Response = run(self._handle(request))
        return response

    async def _read(self, request: httpx.Request) -> bytes:
        return request.read()

    async def _send(self, request: httpx.Request) -> httpx.Response:
        response: httpx.Response = self._bases.of(request.url).handle_request(request)
        return response

    def close(self) -> None:
        """Close base, and the connections to the worker."""
        self._worker.close()
        for base in self._bases.made():
            base.close()


class AsyncTransport(_Transport):
    """Sends the requests of an httpx.AsyncClient with the messages that a worker answered.

    It may be used by many tasks of asyncio. Where a request is cancelled, that to the worker ends.
    """

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

        base sends them; default AsyncHTTPTransport(), with the proxies of the environment. Settings of TLS,
        proxies and limits are its own.
        """
        self._core = Core(url, token, session, **options)
        self._bases = _Bases(base, self._library.AsyncHTTPTransport, self._library.Proxy)
        limits = self._library.Limits(max_connections=None, max_keepalive_connections=20)
        verify = url.startswith("https")  # certificates take 30 ms to read
        direct = {"http://": None, "https://": None}  # a proxy of the environment is for providers
        self._worker = self._library.AsyncClient(limits=limits, verify=verify, mounts=direct)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request. Its errors are those of base."""
        response: httpx.Response = await self._handle(request)
        return response

    async def _read(self, request: httpx.Request) -> bytes:
        return await request.aread()

    async def _send(self, request: httpx.Request) -> httpx.Response:
        response: httpx.Response = await self._bases.of(request.url).handle_async_request(request)
        return response

    async def _post(self, ask: Ask | None) -> Reply:
        if ask is None:
            return None
        try:
            seconds = ask.seconds()
            return await asyncio.wait_for(self._answer(ask, seconds), seconds)
        except (asyncio.TimeoutError, self._library.TimeoutException):
            return TimeoutError("timed out")
        except Exception as e:  # the agent goes on without
            return e

    async def _answer(self, ask: Ask, seconds: float) -> Reply:
        content = bytearray()
        async with self._worker.stream("POST", ask.url, content=ask.body, headers=ask.headers, timeout=seconds) as r:
            async for chunk in r.aiter_bytes():
                content += chunk
                bounded(content)
        return r.status_code, bytes(content)

    async def aclose(self) -> None:
        """Close base, and the connections to the worker."""
        await self._worker.aclose()
        for base in self._bases.made():
            await base.aclose()


class _Bases:
    """The transport that sends requests: the one that was given, or one for each proxy of the environment.

    A client that has a transport of its own does not read them.
    """

    def __init__(self, given: Any, make: Callable[..., Any], proxy: Callable[[str], Any]):
        self._given, self._make, self._proxy = given, make, proxy
        self._made: dict[str, Any] = {} if given else {"": make()}

    def of(self, url: httpx.URL) -> Any:
        if self._given:
            return self._given
        name = _proxy_of(url.scheme, url.netloc.decode("ascii"))
        if name not in self._made:
            self._made.setdefault(name, self._make(proxy=self._proxy(name)))
        return self._made[name]

    def made(self) -> list[Any]:
        return [self._given] if self._given else list(self._made.values())


def _proxy_of(scheme: str, host: str) -> str:
    """Return the URL of the proxy of the environment for a host, "" for none."""
    proxies = getproxies()
    name = proxies.get(scheme) or proxies.get("all") or ""
    if not name or proxy_bypass(host):
        return ""
    return name if "://" in name else f"http://{name}"


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


class Stream(Body):
    def __init__(self, response: httpx.Response):
        super().__init__(response, response.status_code)
        self._stream: Any = response.stream
        self._chunks = iter(self._stream)

    async def chunk(self) -> bytes | None:
        return next(self._chunks, None)

    async def end(self) -> None:
        self.close()

    def __iter__(self) -> Iterator[bytes]:
        while (chunk := run(self.next())) is not None:
            yield chunk

    def close(self) -> None:
        self._stream.close()


class AsyncStream(Body):
    def __init__(self, response: httpx.Response):
        super().__init__(response, response.status_code)
        self._stream: Any = response.stream
        self._chunks = aiter(self._stream)

    async def chunk(self) -> bytes | None:
        return await anext(self._chunks, None)

    async def end(self) -> None:
        await self._stream.aclose()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (chunk := await self.next()) is not None:
            yield chunk

    async def aclose(self) -> None:
        await self.end()

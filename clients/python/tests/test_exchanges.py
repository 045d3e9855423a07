"""Every way in does what clients/conformance demands of every adapter."""

import asyncio
import http.client
import signal
import sys
import threading
import unittest
import urllib.error
import urllib.request
from typing import Any

import exchanges
from exchanges import Adapter, Response

import compactd.urllib

try:
    import httpx

    import compactd.httpx
except ModuleNotFoundError:
    httpx = None  # type: ignore[assignment]
    print("\n** THE TRANSPORTS FOR HTTPX WERE NOT RUN: httpx is not installed\n", file=sys.stderr)


class Blocking(Adapter):
    """An adapter whose agent has no other way to abort a call than Ctrl-C."""

    def abort(self) -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


class Urllib(Blocking):
    def __init__(self, url: str, session: str | None, **options: Any):
        self.handler = compactd.urllib.Handler(url, session=session, **options)
        self.opener = urllib.request.build_opener(self.handler)

    def send(self, method: str, url: str, headers: dict[str, str], body: bytes) -> Response:
        try:
            response = self.opener.open(
                urllib.request.Request(url, body, headers, method=method), timeout=exchanges.MINUTE
            )
        except urllib.error.HTTPError as e:
            response = e
        got = b""
        with response:
            try:
                while part := response.read1(7):  # less than a line
                    got += part
            except http.client.IncompleteRead as e:
                return Response(response.status, got + e.partial, cut=True)
        return Response(response.status, got)

    def close(self) -> None:
        self.handler.close()


class Httpx(Blocking):
    def __init__(self, url: str, session: str | None, **options: Any):
        limits = httpx.Limits(max_keepalive_connections=0)  # older versions wait 40 ms on one that is reused
        base = httpx.HTTPTransport(verify=False, limits=limits)  # no certificates are loaded
        self.client = httpx.Client(transport=compactd.httpx.Transport(url, session=session, base=base, **options))

    def send(self, method: str, url: str, headers: dict[str, str], body: bytes) -> Response:
        got = b""
        with self.client.stream(method, url, headers=headers, content=body, timeout=exchanges.MINUTE) as response:
            try:
                for part in response.iter_bytes():
                    got += part
            except httpx.RemoteProtocolError:
                return Response(response.status_code, got, cut=True)
        return Response(response.status_code, got)

    def close(self) -> None:
        self.client.close()


class AsyncHttpx(Adapter):
    def __init__(self, url: str, session: str | None, **options: Any):
        self.loop = asyncio.new_event_loop()
        base = httpx.AsyncHTTPTransport(verify=False)
        self.client = httpx.AsyncClient(
            transport=compactd.httpx.AsyncTransport(url, session=session, base=base, **options)
        )

    def send(self, method: str, url: str, headers: dict[str, str], body: bytes) -> Response:
        self.task = self.loop.create_task(self._send(method, url, headers, body))
        return self.loop.run_until_complete(self.task)

    async def _send(self, method: str, url: str, headers: dict[str, str], body: bytes) -> Response:
        got = b""
        async with self.client.stream(method, url, headers=headers, content=body, timeout=exchanges.MINUTE) as response:
            try:
                async for part in response.aiter_bytes():
                    got += part
            except httpx.RemoteProtocolError:
                return Response(response.status_code, got, cut=True)
        return Response(response.status_code, got)

    def abort(self) -> None:
        self.loop.call_soon_threadsafe(self.task.cancel)

    def close(self) -> None:
        self.loop.run_until_complete(self.client.aclose())
        self.loop.close()


class TestExchanges(unittest.TestCase):
    def run_all(self, start: type[Adapter]) -> None:
        files = sorted(exchanges.DIRECTORY.glob("*.txt"))
        self.assertTrue(files)
        for path in files:
            with self.subTest(path.stem):
                self.assertEqual([], exchanges.Player(path, start).run())
        print(f"exchanges {start.__name__}: {len(files)} files")

    def test_urllib(self) -> None:
        self.run_all(Urllib)

    @unittest.skipUnless(httpx, "httpx is not installed")
    def test_httpx(self) -> None:
        self.run_all(Httpx)

    @unittest.skipUnless(httpx, "httpx is not installed")
    def test_async_httpx(self) -> None:
        self.run_all(AsyncHttpx)


if __name__ == "__main__":
    unittest.main()

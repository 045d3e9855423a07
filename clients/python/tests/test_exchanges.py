"""Every way in does what clients/conformance demands of every adapter."""

import asyncio
import http.client
import json
import signal
import sys
import threading
import unittest
import urllib.error
import urllib.request
from typing import Any

import exchanges
from exchanges import Adapter, Agent, Player, Response

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
                for part in response.iter_raw():
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
                async for part in response.aiter_raw():
                    got += part
            except httpx.RemoteProtocolError:
                return Response(response.status_code, got, cut=True)
        return Response(response.status_code, got)

    def abort(self) -> None:
        self.loop.call_soon_threadsafe(self.task.cancel)

    def close(self) -> None:
        self.loop.run_until_complete(self.client.aclose())
        self.loop.close()


Native = dict[str, str]


class Core(Agent):
    """An agent with messages of its own type: a role, a text, and a note that no provider gets."""

    def __init__(self, url: str, session: str | None, **options: Any):
        self.conversation = compactd.Conversation[Native](
            url, session=session, format="openai", to=self.to, made=self.made, **options
        )

        self.sent: compactd.Fitted[Native]

    def to(self, m: Native) -> Any:
        return {"role": m["role"], "content": m["text"]}

    def made(self, m: Any, own: Native | None) -> Native:
        note = {"note": own["note"]} if own and "note" in own else {}
        return {"role": m["role"], "text": m["content"], **note}

    def act(self, player: Player, _: str) -> None:
        step = player.step
        given, again = json.loads(step.begin.text), None
        if step.begin.name == "used":
            self.sent.used(given)
            return
        if step.begin.name == "fit":
            self.history, self.before = given, json.dumps(given)
            again = self.sent = self.conversation.fit(given)
        elif again := self.sent.refused(given["error"], given["status"]):
            self.sent = again
        got = "none"
        if again:
            own = {id(m): i for i, m in enumerate(self.history)}
            got = json.dumps([own.get(id(m), m) for m in again.messages], separators=(",", ":"))
        if got != step.result("fitted"):
            player.errors.append(f"{step.begin}:\n{got}\nwant\n{step.result('fitted')}")
        if json.dumps(self.history) != self.before:
            player.errors.append(f"{step.begin}: the agent's own messages are others now")

    def close(self) -> None:
        self.conversation.close()


class TestExchanges(unittest.TestCase):
    def run_all(self, start: type[Agent], directory: str = "exchanges") -> None:
        files = sorted((exchanges.DIRECTORY / directory).glob("*.txt"))
        self.assertTrue(files)
        for path in files:
            with self.subTest(path.stem):
                self.assertEqual([], Player(path, start).run())
        print(f"exchanges {start.__name__}: {len(files)} files")

    def test_core(self) -> None:
        self.run_all(Core, "core")

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

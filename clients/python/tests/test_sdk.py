"""Requests as SDKs write them go through the transports, with streams and refusals."""

import asyncio
import copy
import gzip
import json
import os
import sys
import unittest
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from exchanges import Handler, serve

try:
    import httpx
    import sdk
    import three

    import compactd.httpx
except ModuleNotFoundError:
    raise unittest.SkipTest("httpx is not installed") from None

SUMMARY = {"role": "user", "content": "[Summary]"}
PROMPT = {"role": "user", "content": "größer"}
HISTORY = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, PROMPT]
CHUNKS: list[Any] = [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}]
CHUNKS += [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in ("Hel", "lo")]
CHUNKS += [{"choices": [], "usage": {"prompt_tokens": 3}}]
EVENTS: list[Any] = [
    {"type": "message_start", "message": {"role": "assistant", "content": [], "usage": {"input_tokens": 9}}},
    {"type": "ping"},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
]


@contextmanager
def sides() -> Iterator[tuple[str, str, list[Any], list[Handler]]]:
    """Run a worker that makes a summary after a refusal, and a provider that takes three messages."""
    syncs: list[Any] = []
    calls: list[Handler] = []

    def worker(r: Handler) -> None:
        sync = json.loads(r.body)
        syncs.append(sync)
        n, refused = len(sync["messages"]), "refused" in sync
        parts = (
            [{"message": SUMMARY, "stands_for": [0, n - 1]}, {"keep": [n - 1, n]}] if refused else [{"keep": [0, n]}]
        )
        answer = {
            "v": 1,
            "count": n,
            "view": f"{refused:d}:{n}",
            "generation": int(refused),
            "changed": refused,
            "parts": parts,
        }
        r.answer(200, {}, [json.dumps({**answer, "warnings": [], "budget": {}}).encode()])

    def provider(r: Handler) -> None:
        calls.append(copy.copy(r))  # its connection may bring the next one
        body = json.loads(r.body)
        encoded = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        if len(body["messages"]) > 3:
            error = {"error": {"message": "too long", "code": "context_length_exceeded"}}
            r.answer(400, encoded, [gzip.compress(json.dumps(error).encode())])
        elif body.get("stream"):
            events = EVENTS if "/messages" in r.path else CHUNKS
            parts = [f"data: {json.dumps(e)}\n\n".encode() for e in events]
            r.answer(200, {"Content-Type": "text/event-stream; charset=utf-8"}, [*parts, b"data: [DONE]\n\n"])
        else:
            r.answer(200, encoded, [gzip.compress(json.dumps({"usage": {"prompt_tokens": 7}}).encode())])

    with ExitStack() as stack:
        yield stack.enter_context(serve(worker)), stack.enter_context(serve(provider)), syncs, calls


class TestSDK(unittest.TestCase):
    def check(self, syncs: list[Any], calls: list[Handler], usage: dict[str, int]) -> None:
        """Compare what came: a call, one that was refused, and the same with a shorter history."""
        self.assertEqual([HISTORY, HISTORY * 2, HISTORY * 2], [s["messages"] for s in syncs])
        self.assertEqual({"view": "0:3", "count": 3, **usage}, syncs[1]["usage"])
        self.assertEqual("0:6", syncs[2]["refused"]["view"])
        self.assertEqual("too long", syncs[2]["refused"]["error"]["error"]["message"])
        self.assertEqual([HISTORY, HISTORY * 2, [SUMMARY, PROMPT]], [json.loads(c.body)["messages"] for c in calls])
        for c in calls:
            self.assertEqual("CPython", c.headers["X-Stainless-Runtime"])
            self.assertEqual("gzip", c.headers["Accept-Encoding"])
            self.assertIn("größer".encode(), c.body)

    def test_three_lines(self) -> None:
        """The lines of README.md fit a history into its window."""
        with sides() as (url, provider, syncs, calls):
            client = three.agent(url, "a-token", provider)
            client.create("/chat/completions", model="m", messages=HISTORY)
            answer = client.create("/chat/completions", model="m", messages=HISTORY * 2)
            client.client.close()
        self.assertEqual({"usage": {"prompt_tokens": 7}}, answer)
        self.check(syncs, calls, {"prompt_tokens": 7})

    def test_streams(self) -> None:
        """Streams of chat completions and of messages have all their events."""
        for kind, path, events, usage in (
            (sdk.OpenAI, "/v1/chat/completions", CHUNKS, {"prompt_tokens": 3}),
            (sdk.Anthropic, "/v1/messages", EVENTS, {"input_tokens": 9, "output_tokens": 5}),
        ):
            with self.subTest(path), sides() as (url, provider, syncs, calls):
                transport = compactd.httpx.Transport(url, "a-token", "s")
                client = kind(api_key="none", base_url=provider, http_client=httpx.Client(transport=transport))
                self.assertEqual(events, list(client.create(path, model="m", messages=HISTORY, stream=True)))
                self.assertEqual(events, list(client.create(path, model="m", messages=HISTORY * 2, stream=True)))
                client.client.close()
                self.check(syncs, calls, usage)

    def test_async(self) -> None:
        """The same for clients of asyncio."""

        async def agent(url: str, provider: str) -> None:
            transport = compactd.httpx.AsyncTransport(url, "a-token", "s")
            async with httpx.AsyncClient(transport=transport) as http_client:
                client = sdk.OpenAI(api_key="none", base_url=provider, http_client=http_client)
                await client.acreate("/v1/chat/completions", model="m", messages=HISTORY)
                got = await client.acreate("/v1/chat/completions", model="m", messages=HISTORY * 2, stream=True)
            self.assertEqual(CHUNKS, got)

        with sides() as (url, provider, syncs, calls):
            asyncio.run(agent(url, provider))
        self.check(syncs, calls, {"prompt_tokens": 7})

    def test_proxy(self) -> None:
        """A proxy of the environment has the requests to a provider, but for hosts without, and none to a worker."""

        async def post(url: str, to: str) -> None:
            transport = compactd.httpx.AsyncTransport(url, "a-token", "s")
            async with httpx.AsyncClient(transport=transport) as client:
                await client.post(to, json={"messages": HISTORY})

        with sides() as (url, provider, syncs, calls), serve(lambda r: r.answer(200, {}, [b"{}"])) as direct:
            path = "/v1/chat/completions"
            there = {"http_proxy": provider, "HTTP_PROXY": provider, "no_proxy": "localhost", "NO_PROXY": "localhost"}
            with mock.patch.dict(os.environ, there):
                for to in ("http://provider.invalid", direct.replace("127.0.0.1", "localhost")):
                    with httpx.Client(transport=compactd.httpx.Transport(url, "a-token", "s")) as client:
                        client.post(to + path, json={"messages": HISTORY})
                    asyncio.run(post(url, to + path))
        self.assertEqual(["http://provider.invalid" + path] * 2, [c.path for c in calls])
        self.assertEqual([HISTORY] * 4, [s["messages"] for s in syncs])

    def test_httpx2(self) -> None:
        """compactd.httpx2 is the same on httpx2, which has the interface of httpx."""
        sys.modules.setdefault("httpx2", httpx)
        import compactd.httpx2

        with sides() as (url, provider, syncs, calls):
            http_client = httpx.Client(transport=compactd.httpx2.Transport(url, "a-token", "s"))
            client = sdk.OpenAI(api_key="none", base_url=provider, http_client=http_client)
            client.create("/v1/chat/completions", model="m", messages=HISTORY)
            client.create("/v1/chat/completions", model="m", messages=HISTORY * 2)
            http_client.close()
        self.check(syncs, calls, {"prompt_tokens": 7})


if __name__ == "__main__":
    unittest.main()

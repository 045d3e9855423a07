"""Cases beyond the exchanges: the circuit, sessions, threads, hostile answers, cuts."""

import asyncio
import json
import os
import queue
import random
import threading
import time
import unittest
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import repeat
from typing import Any
from unittest import mock

from exchanges import MINUTE, Handler, serve

import compactd
import compactd.urllib
from compactd import _call, _cut
from compactd._core import Core
from compactd._json import Object

HI: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


def keep(r: Handler) -> None:
    """Answer as a worker that changes nothing."""
    n = len(json.loads(r.body)["messages"])
    r.answer(
        200,
        {},
        [
            json.dumps(
                {"v": 1, "count": n, "view": "0:aa", "parts": [{"keep": [0, n]}], "warnings": [], "budget": {}}
            ).encode()
        ],
    )


def away(r: Handler) -> None:
    r.drop()


class Sides:
    """A worker and a provider that count their requests, and an agent's opener."""

    def __init__(self) -> None:
        self.worker: Callable[[Handler], None] = keep
        self.provider: Callable[[Handler], None] = lambda r: r.answer(200, {}, [b"{}"])
        self.to_worker: list[Any] = []
        self.to_provider: list[Handler] = []
        self.worker_url = self.provider_url = ""
        self.handler: compactd.urllib.Handler | None = None

    def open(self, **options: Any) -> None:
        self.close()
        options = {"session": "s", "wait": MINUTE, "retry_after": MINUTE, **options}
        self.handler = compactd.urllib.Handler(self.worker_url, "a-token", **options)
        self.opener = urllib.request.build_opener(self.handler)

    def close(self) -> None:
        if self.handler:
            self.handler.close()

    def post(self, body: Any = HI, **headers: str) -> bytes:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        r = urllib.request.Request(self.provider_url + "/v1/chat/completions", data, headers)
        with self.opener.open(r, timeout=MINUTE) as response:
            return response.read()  # type: ignore[no-any-return]


@contextmanager
def sides() -> Iterator[Sides]:
    s = Sides()

    def worker(r: Handler) -> None:
        s.to_worker.append((r.path, json.loads(r.body)))
        s.worker(r)

    def provider(r: Handler) -> None:
        s.to_provider.append(r)
        s.provider(r)

    with ExitStack() as stack:
        s.worker_url, s.provider_url = stack.enter_context(serve(worker)), stack.enter_context(serve(provider))
        s.open()
        yield s
        s.close()


class TestCore(unittest.TestCase):
    def test_circuit(self) -> None:
        """After three failures no worker is requested, until one request finds out that it is back."""
        with sides() as s:
            s.worker = away
            for _ in range(20):
                s.post()
            self.assertEqual(3, len(s.to_worker))
            s.open(retry_after=0.001)
            for _ in range(3):
                s.post()
            s.worker, until = keep, time.monotonic() + MINUTE
            while len(s.to_worker) < 9 and time.monotonic() < until:
                s.post()
            self.assertEqual(9, len(s.to_worker))

    def test_session(self) -> None:
        """A with block names the session of the requests inside it, in its thread alone."""
        with sides() as s:
            s.post()
            with compactd.session("chat/7"):
                s.post()
                thread = threading.Thread(target=s.post)
                thread.start()
                thread.join()
                with compactd.session(None):
                    s.post()
            for name in (".", "..", "..."):
                with compactd.session(name):
                    s.post()
            paths = [path for path, _ in s.to_worker]
        names = ("s", "chat%2F7", "s", "%2E", "%2E%2E", "...")
        self.assertEqual([f"/v1/sessions/default/{name}/sync" for name in names], paths)
        self.assertEqual(7, len(s.to_provider))

    def test_large(self) -> None:
        """A stream of preambles is held for 64 KiB at most, and a large refusal reaches the caller whole."""
        with sides() as s:
            go = threading.Event()

            def provider(r: Handler) -> None:
                def parts() -> Iterator[bytes]:
                    yield b'data: {"choices":[]}\n\n' * 4000
                    go.wait(MINUTE)
                    yield b"data: [DONE]\n\n"

                r.answer(200, {"Content-Type": "text/event-stream"}, parts())  # type: ignore[arg-type]

            s.provider = provider
            r = urllib.request.Request(s.provider_url + "/v1/chat/completions", json.dumps(HI).encode())
            with s.opener.open(r, timeout=MINUTE) as response:
                go.set()
                self.assertEqual(22 * 4000 + 14, len(response.read()))
            s.provider = lambda r: r.answer(400, {}, [b"x" * 300_000])
            with self.assertRaises(urllib.error.HTTPError) as e:
                s.post()
            self.assertEqual(300_000, len(e.exception.read()))
        self.assertTrue(64 << 10 <= len(s.to_worker[-1][1]["refused"]["error"]) <= 128 << 10)

    def test_large_body(self) -> None:
        """A body of more than 32 MiB passes unchanged, also where it comes without its length."""
        core = Core("http://127.0.0.1", "t", "s")
        for size, read in ((1 << 20, True), (32 << 20, False)):
            body = json.dumps({"messages": [{"role": "user", "content": "x" * size}]}).encode()
            self.assertEqual(read, core.call(_call.APIS[0], "s", "/v1/chat/completions", body) is not None)

    def test_threads(self) -> None:
        """Many threads and sub-agents use one handler."""
        with sides() as s:

            def agent(name: str) -> None:
                messages = [{"role": "user", "content": name}]
                for _ in range(20):
                    s.post({"model": "m", "messages": messages})
                    messages.append({"role": "assistant", "content": name})

            s.provider = lambda r: r.answer(
                200, {}, [json.dumps({"usage": {"of": json.loads(r.body)["messages"][0]["content"]}}).encode()]
            )
            threads = [threading.Thread(target=agent, args=(f"agent {i}",)) for i in range(8)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        self.assertEqual(160, len(s.to_worker))
        for _, sync in s.to_worker:
            if len(sync["messages"]) > 1:
                self.assertEqual(sync["usage"]["of"], sync["messages"][0]["content"])
                self.assertEqual(sync["usage"]["count"], len(sync["messages"]) - 1)

    @unittest.skipUnless(hasattr(os, "fork"), "no processes are forked here")
    def test_forked(self) -> None:
        """A process that was forked has connections of its own: on the same the answers would be mixed."""
        ports: list[int] = []

        def worker(r: Handler) -> None:
            ports.append(r.client_address[1])
            keep(r)

        with sides() as s:
            s.worker = worker
            s.post()
            if not (child := os.fork()):
                try:
                    s.post()
                finally:
                    os._exit(0)
            os.waitpid(child, 0)
            s.post()
        first, forked, last = ports
        self.assertEqual(first, last)
        self.assertNotEqual(first, forked)

    def test_hostile_answers(self) -> None:
        """Whatever a worker answers, the agent's call is made."""
        part: list[Any] = [
            1,
            "a",
            [],
            {},
            {"keep": 1},
            {"keep": [0]},
            {"keep": [0, "1"]},
            {"keep": [0, 1.5]},
            {"keep": [1, 0]},
            {"edit": "a"},
        ]
        answers = [{"parts": [p], "changed": True} for p in part]
        more: list[dict[str, Any]] = [
            {"budget": [1], "warnings": 5, "generation": "x"},
            {"warnings": ["a"]},
            {"budget": {"estimated_input_tokens": "many"}},
        ]
        answers += [{"parts": [{"keep": [0, 1]}], "changed": True, **m} for m in more]
        texts = [json.dumps(b).encode() for b in answers] + [
            b"",
            b"[]",
            b"\xff",
            b"[" * 100_000,
            b'{"parts":[{"keep":[0,1]}]} x',
        ]
        problems: list[compactd.Problem] = []
        with sides() as s:
            for text in texts:
                s.open(on_problem=problems.append)
                s.worker = lambda r, text=text: r.answer(200, {}, [text])  # type: ignore[misc]
                s.post()
        self.assertEqual(["unavailable"] * len(texts), [p.code for p in problems])
        self.assertEqual([json.dumps(HI).encode()] * len(texts), [r.body for r in s.to_provider])

    def test_endless_answers(self) -> None:
        """An answer that does not end costs a call the wait at most, and no more than its bound is read."""
        problems: list[compactd.Problem] = []
        with sides() as s:
            for part, wait in ((b" ", 0.2), (b" " * (1 << 20), MINUTE)):

                def worker(r: Handler, part: bytes = part) -> None:
                    with suppress(OSError):
                        r.answer(200, {}, repeat(part))  # type: ignore[arg-type]
                    r.drop()

                s.open(on_problem=problems.append, wait=wait)
                s.worker = worker
                s.post()
        self.assertEqual(["timed out", "the answer is too large"], [p.message.split(": ")[-1] for p in problems])

    def test_settings(self) -> None:
        """The constructor refuses a policy that is no JSON; calls do not."""
        with self.assertRaises(TypeError):
            compactd.urllib.Handler("http://127.0.0.1", "t", "s", policy=object())
        with self.assertRaises(TypeError):
            compactd.urllib.Handler("http://127.0.0.1", "t", "s", waits=3)  # type: ignore[call-arg]

    def test_conversation(self) -> None:
        """The methods for asyncio are the same, and what a codec cannot convert is sent as it is."""

        async def agent(url: str) -> tuple[Any, Any]:
            c = compactd.Conversation[Any](
                url, "t", "s", format="openai", to=to, wait=MINUTE, on_problem=problems.append
            )
            sent = await c.afit(HI["messages"], model={"name": "m"}, system="S", tools=[])
            sent.used({"prompt_tokens": 7})
            again = await sent.arefused({"message": "too long"}, 400)
            sent.used({"prompt_tokens": {7}})
            bad = await c.afit([...])
            c.close()
            return again, bad.messages

        def to(m: Any) -> Any:
            return m["role"] and m

        problems: list[compactd.Problem] = []
        with sides() as s:
            again, bad = asyncio.run(agent(s.worker_url))
        self.assertIsNone(again)  # the same would be sent again
        self.assertEqual([...], bad)
        self.assertEqual(["client_codec"], [p.code for p in problems])
        self.assertEqual("S", s.to_worker[0][1]["system"])
        self.assertEqual(
            {"view": "0:aa", "status": 400, "error": {"message": "too long"}}, s.to_worker[1][1]["refused"]
        )

    def test_errors(self) -> None:
        """A worker gets the text of an error, whatever an SDK made of it, and at most its beginning and end."""
        text = "prompt is too long"
        circular: dict[Any, Any] = {"message": text}
        circular["self"] = circular
        cases: list[tuple[Any, Any]] = [
            (RuntimeError(text), text),
            (text.encode(), text),
            ({"message": text}, {"message": text}),
            (circular, str(circular)),
            ({("a",): text}, str({("a",): text})),
            (text + "\ud800", text + "?"),
        ]
        with sides() as s:
            c = compactd.Conversation[Any](s.worker_url, "t", "s", format="openai", wait=MINUTE)
            sent = c.fit(HI["messages"])
            self.assertIsNone(sent.refused(None, 400))
            self.assertEqual(1, len(s.to_worker))
            for error, want in cases:
                self.assertIsNone(sent.refused(error, 400))  # the same would be sent again
                self.assertEqual(want, s.to_worker[-1][1]["refused"]["error"])
            for error in (f"{text}{'é' * 300_000}.", {"message": text, "echo": "\U0001f600" * 300_000, "end": "."}):
                sent.refused(error, 400)
                got = json.dumps(s.to_worker[-1][1]["refused"]["error"], ensure_ascii=False)
                self.assertTrue(text in got and got[-10:].rstrip('\\"}').endswith("."))
                self.assertLess(len(got.encode()), 129 << 10)
            c.close()

    def test_dialects(self) -> None:
        """Where no worker answers, a history in a dialect that cannot be cut stays whole."""

        def worker(r: Handler) -> None:
            budget = {"available_input_tokens": 1000, "estimated_input_tokens": 890}
            r.answer(200, {}, [json.dumps({"v": 1, "count": 3, "parts": [{"keep": [0, 3]}], "budget": budget}).encode()])

        call = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
        result = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"a": "x" * 600}}}]}
        history = [{"role": "user", "parts": [{"text": "first"}]}, call, result]
        problems: list[compactd.Problem] = []
        with sides() as s:
            s.worker = worker
            c = compactd.Conversation[Any](
                s.worker_url, "t", "s", format="gemini", wait=MINUTE, on_problem=problems.append
            )
            c.fit(history)
            s.worker = away
            self.assertEqual(history + [call, result] * 3, c.fit(history + [call, result] * 3).messages)
            c.close()
        self.assertEqual(["unavailable"], [p.code for p in problems])

    def test_cancelled(self) -> None:
        """A call that is cancelled ends its request, and is no problem of the worker."""

        async def agent(url: str) -> None:
            c = compactd.Conversation[Any](url, "t", "s", format="openai", wait=MINUTE, on_problem=problems.append)
            loop, arrived = asyncio.get_running_loop(), asyncio.Event()

            def worker(r: Handler) -> None:
                loop.call_soon_threadsafe(arrived.set)
                ended.put(r.ends())
                r.drop()

            s.worker = worker
            task = asyncio.create_task(c.afit(HI["messages"]))
            await arrived.wait()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            s.worker = keep
            await c.afit(HI["messages"])
            c.close()

        problems: list[compactd.Problem] = []
        ended: queue.Queue[bool] = queue.Queue()
        with sides() as s:
            asyncio.run(agent(s.worker_url))
            self.assertTrue(ended.get(timeout=MINUTE))
        self.assertEqual([], problems)

    def test_prefix(self) -> None:
        """Messages that a worker has are not sent again, but for large ones; where it needs them, the whole is."""

        def worker(r: Handler) -> None:
            if len(s.to_worker) == 3:
                return r.answer(200, {}, [b'{"v":1,"need":"all"}'])
            sync = json.loads(r.body)
            n = sync.get("prefix", {}).get("count", 0) + len(sync["messages"])
            r.answer(200, {}, [json.dumps({"v": 1, "count": n, "hash": "ab", "parts": [{"keep": [0, n]}]}).encode()])

        messages = [{"role": "user", "content": text} for text in ("a", "b", "c", "d" * (256 << 10), "e")]
        with sides() as s:
            s.worker = worker
            for n in range(1, 6):
                s.post({"model": "m", "messages": messages[:n]})
            s.post({"model": "m", "messages": [messages[1], *messages[1:]]})
            sent = [(sync.get("prefix", {}).get("count", 0), len(sync["messages"])) for _, sync in s.to_worker]
        self.assertEqual([(0, 1), (1, 1), (2, 1), (0, 3), (3, 1), (0, 5), (0, 5)], sent)

    def test_callback_raises(self) -> None:
        """An exception of the agent's own function does not reach its call."""

        def compacted(r: Handler) -> None:
            answer = {"v": 1, "generation": 1, "changed": True, "parts": [{"keep": [0, 1]}]}
            r.answer(200, {}, [json.dumps(answer).encode()])

        raises = mock.Mock(side_effect=LookupError)
        with sides() as s:
            s.open(on_problem=raises, on_compacted=raises)
            for s.worker in (away, compacted):
                self.assertEqual(b"{}", s.post())
        self.assertEqual(2, raises.call_count)

    def test_deadline(self) -> None:
        """A worker that needs the whole history has no more time for it than for the first request."""

        def need(r: Handler) -> None:
            r.answer(200, {}, [b'{"v":1,"need":"all"}'])

        def known(r: Handler) -> None:
            answer = {"v": 1, "count": 1, "hash": "ab", "parts": [{"keep": [0, 1]}]}
            r.answer(200, {}, [json.dumps(answer).encode()])

        problems: list[compactd.Problem] = []
        with sides() as s, mock.patch("time.monotonic", return_value=0.0) as clock:
            s.open(on_problem=problems.append)
            assert s.handler
            post = s.handler._worker.post

            def slow(ask: Any) -> Any:
                reply = post(ask)
                clock.return_value += MINUTE
                return reply

            with mock.patch.object(s.handler._worker, "post", slow):
                for s.worker in (known, need):
                    s.post()
        self.assertEqual(["timed out"], [p.message.split(": ")[-1] for p in problems])
        self.assertEqual(2, len(s.to_worker))


def texts(rng: random.Random, depth: int = 0) -> str:
    """Return a JSON value with white space and escapes."""
    space = rng.choice(["", "", " ", "\n\t", "\r\n"])
    kind = rng.randrange(8 if depth < 4 else 5)
    if kind < 5:
        return (
            space
            + rng.choice(
                ['"a"', '"\\u00e9\\n"', '"é"', "-0", "1e2", "12345678901234567890", "true", "null", '"]},"', "0.10"]
            )
            + space
        )
    items = [texts(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind < 7:
        return f"{space}[{','.join(items)}{space if items else ''}]"
    return f"{space}{{{','.join(f'{space}{json.dumps(str(i))}{space}:{t}' for i, t in enumerate(items))}}}"


class TestJSON(unittest.TestCase):
    def test_values(self) -> None:
        """The texts of values are parts of the whole, and have their data."""
        rng = random.Random(1)
        for _ in range(2000):
            elements = [texts(rng) for _ in range(rng.randrange(4))]
            text = f' {{"before":{texts(rng)},"list":[{",".join(elements)}] , "after":{texts(rng)}}}\n'
            o = Object(text, "list")
            for name, data in json.loads(text).items():
                got = o.members[name]
                self.assertEqual(data, json.loads(got.text))
                self.assertEqual(data, [e.data for e in got.data] if name == "list" else got.data)
            self.assertEqual([e.strip() for e in elements], [e.text for e in o.data("list")])
            self.assertEqual(text, o.replace("list", elements))

    def test_no_json(self) -> None:
        """The reader refuses text that is no JSON, in part and in whole."""
        text = '{"a":1,"list":[{"b":[1,2]},3]}'
        bad = [text[:i] for i in range(len(text))] + [
            text + "x",
            "[]",
            '{"a":NaN}',
            '{"a":1,"a":2}',
            '{"a":1,}',
            '{"list":[1,]}',
            "{1:2}",
            '{"a":"\n"}',
        ]
        for t in bad:
            with self.subTest(t), self.assertRaises(ValueError):
                Object(t, "list")


class TestCut(unittest.TestCase):
    def test_reasoning(self) -> None:
        """A message without the details of its reasoning has them neither as text nor as data."""
        messages = [
            {"role": "user", "content": "first"},
            {"role": "assistant", "content": "a", "reasoning_details": [{"type": "reasoning.text", "text": "why"}]},
            {"role": "user", "content": "second"},
        ]
        body = json.dumps({"model": "anthropic/claude-opus-5-5", "messages": messages}).encode()
        call = _call.Call(_call.APIS[0], "s", "/v1/chat/completions", body, {})
        got = _cut.cut(call, call.kept(0, 3), len(body))
        self.assertEqual({"role": "assistant", "content": "a"}, got[1].value.data)
        self.assertEqual(got[1].value.data, json.loads(got[1].value.text))

    def test_properties(self) -> None:
        """A cut keeps the instructions and the first prompt, whole pairs, and the newest messages; it fits where it can."""
        rng = random.Random(1)
        for _ in range(500):
            history = make(rng)
            body = json.dumps({"model": "m", "messages": history}).encode()
            call = _call.Call(_call.APIS[0], "s", "/v1/chat/completions", body, {})
            most = rng.randrange(len(body))
            pieces = call.kept(0, len(history))
            got = [p.value.data for p in _cut.cut(call, pieces, most)]
            self.assertEqual(history[:2], got[:2])
            self.assertEqual(history[len(history) - len(got) + 2 :], got[2:])
            called: set[str] = set()
            for m in got:
                if m["role"] == "tool":
                    self.assertIn(m["tool_call_id"], called)
                called |= {c["id"] for c in m.get("tool_calls", ())}
            size = sum(len(json.dumps(m)) + 1 for m in got)
            newest = 1 + next(i for i, m in enumerate(reversed(history)) if m["role"] != "tool")
            if size > most:
                self.assertLessEqual(len(got), 2 + newest)


def make(rng: random.Random) -> list[dict[str, Any]]:
    history: list[dict[str, Any]] = [{"role": "system", "content": "S"}, {"role": "user", "content": "first"}]
    for i in range(rng.randrange(1, 12)):
        ids = [f"c{i}.{n}" for n in range(rng.randrange(3))]
        calls = [{"id": c, "type": "function", "function": {"name": "f", "arguments": "{}"}} for c in ids]
        history.append(
            {"role": "assistant", "content": None, "tool_calls": calls}
            if calls
            else {"role": "assistant", "content": "b"}
        )
        history += [{"role": "tool", "tool_call_id": c, "content": "x" * rng.randrange(200)} for c in ids]
        if not calls:
            history.append({"role": "user", "content": "y" * rng.randrange(200)})
    return history


if __name__ == "__main__":
    unittest.main()

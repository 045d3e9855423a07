"""An agent behind compactd whose model calls tools, and what compactd did to its calls.

    python3 loop.py NAME

NAME is one of AGENTS. Environment: WORKER, TOKEN, SESSION, PROVIDER (its URL), MODEL (as in a turn),
STEPS, STREAM (1 or nothing), WAIT (seconds, absent: a minute).
"""

import asyncio
import json
import os
import platform
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import compactd.urllib

Body = dict[str, Any]


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TASK = "Find out why the client never gives up, and read every file."


class Chat:
    """A history of chat completions."""

    task: Body = {"type": "text", "text": TASK}
    image: Body = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + PIXEL}}

    path, messages = "/v1/chat/completions", "messages"
    fixed: Body = {"max_tokens": 1024}
    stream: Body = {"stream": True, "stream_options": {"include_usage": True}}

    def message(self, events: list[Body]) -> list[Body]:
        """Return the messages of an answer, which is one event where it did not stream."""
        made: Body = {"role": "assistant", "content": None}
        for event in events:
            for choice in event["choices"]:
                if "message" in choice:
                    return [choice["message"]]
                self.add(made, choice["delta"])
        return [made]

    def add(self, made: Body, delta: Body) -> None:
        if delta.get("content"):
            made["content"] = (made["content"] or "") + delta["content"]
        for call in delta.get("tool_calls") or ():
            calls = made.setdefault("tool_calls", [])
            if call["index"] == len(calls):
                calls.append({k: v for k, v in call.items() if k != "index"})
            else:
                calls[call["index"]]["function"]["arguments"] += call["function"]["arguments"]

    def results(self, made: list[Body], text: str) -> list[Body]:
        """Return the results of the calls in an answer."""
        return [{"role": "tool", "tool_call_id": c["id"], "content": text} for c in made[0].get("tool_calls") or ()]


class Responses:
    """A history of Responses, which is kept by the agent."""

    task: Body = {"type": "input_text", "text": TASK}
    image: Body = {"type": "input_image", "image_url": "data:image/png;base64," + PIXEL}

    path, messages = "/v1/responses", "input"
    fixed: Body = {"max_output_tokens": 1024, "store": False, "include": ["reasoning.encrypted_content"]}
    stream: Body = {"stream": True}

    def message(self, events: list[Body]) -> list[Body]:
        last: Body = events[-1]
        return list(last.get("response", last)["output"])

    def results(self, made: list[Body], text: str) -> list[Body]:
        ids = [item["call_id"] for item in made if item["type"] == "function_call"]
        return [{"type": "function_call_output", "call_id": i, "output": text} for i in ids]


class Messages:
    """A history of Anthropic's messages, with thinking."""

    task: Body = {"type": "text", "text": TASK}
    image: Body = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}

    path, messages = "/v1/messages", "messages"
    fixed: Body = {"max_tokens": 1024, "system": "Be brief.", "thinking": {"type": "adaptive"}}
    stream: Body = {"stream": True}

    def message(self, events: list[Body]) -> list[Body]:
        if "content" in events[0]:
            return [{"role": "assistant", "content": events[0]["content"]}]
        blocks: list[Body] = []
        for event in events:
            if event["type"] == "content_block_start":
                blocks.append({**event["content_block"], "json": ""})
            elif event["type"] == "content_block_delta":
                self.add(blocks[event["index"]], event["delta"])
        for block in blocks:
            if text := block.pop("json"):
                block["input"] = json.loads(text)
        return [{"role": "assistant", "content": blocks}]

    def add(self, block: Body, delta: Body) -> None:
        for name in ("thinking", "signature", "text"):
            if name in delta:
                block[name] += delta[name]
        block["json"] += delta.get("partial_json", "")

    def results(self, made: list[Body], text: str) -> list[Body]:
        ids = [block["id"] for block in made[0]["content"] if block["type"] == "tool_use"]
        blocks = [{"type": "tool_result", "tool_use_id": i, "content": text} for i in ids]
        return [{"role": "user", "content": blocks}] if blocks else []


class Recorder:
    """The requests of an agent, and those that the provider gets."""

    def __init__(self) -> None:
        self.version = ""  # of the client that is used
        self.compactions = self.changed = 0  # messages that an agent sent otherwise than in the call before
        self.waits: list[float] = []  # in milliseconds, from the agent's call to the provider's
        self.same = self.of = 0  # bytes of calls that the next one begins with, without a compaction between them
        self.problems: list[str] = []
        self.own: list[str] = []
        self.last: tuple[int, list[str]] = (0, [])

    def began(self, messages: list[Body]) -> None:
        texts = [json.dumps(m) for m in messages]
        self.changed += sum(a != b for a, b in zip(self.own, texts, strict=False))
        self.own, self.at = texts, time.perf_counter()

    def sent(self, body: bytes) -> None:
        self.waits.append((time.perf_counter() - self.at) * 1000)
        read = json.loads(body)
        texts = [json.dumps(m) for m in read.get("messages") or read["input"]]
        generation, last = self.last
        if generation == self.compactions:
            kept = next((i for i, (a, b) in enumerate(zip(last, texts, strict=False)) if a != b), len(last))
            self.same += sum(map(len, last[:kept]))
            self.of += sum(map(len, last))
        self.last = (self.compactions, texts)

    def compacted(self, _: compactd.Compaction) -> None:
        self.compactions += 1

    def problem(self, p: compactd.Problem) -> None:
        self.problems.append(f"{p.code}: {p.message}")


def steps(wire: Any, recorder: Recorder, body: Body) -> Any:
    """Make calls: yield each request, take the events of its answer."""
    history: list[Body] = [{"role": "user", "content": [wire.task, wire.image]}]
    for i in range(int(os.environ["STEPS"])):
        recorder.began(history)
        made = wire.message((yield {**body, wire.messages: history}))
        history += made
        history += wire.results(made, f"line {i} of it. " * (700 if i % 8 == 7 else 200))


def by_urllib(wire: Any, recorder: Recorder, body: Body, provider: str, settings: Body) -> None:
    """An agent without packages."""
    recorder.version = platform.python_version()

    class Handler(compactd.urllib.Handler):
        def do_open(self, http_class: Any, req: urllib.request.Request, **options: Any) -> Any:
            recorder.sent(req.data)  # type: ignore[arg-type]  # bytes
            return super().do_open(http_class, req, **options)

    opener = urllib.request.build_opener(Handler(**settings))
    headers = {"Authorization": "Bearer none", "Content-Type": "application/json"}

    def call(body: Body) -> list[Body]:
        request = urllib.request.Request(provider + wire.path, json.dumps(body).encode(), headers)
        with opener.open(request, timeout=600) as response:
            if not body.get("stream"):
                return [json.load(response)]
            lines = [line[5:] for line in response if line.startswith(b"data:")]
            return [json.loads(line) for line in lines if line.strip() != b"[DONE]"]

    run(steps(wire, recorder, body), call)


def by_httpx(wire: Any, recorder: Recorder, body: Body, provider: str, settings: Body) -> None:
    """An agent on the SDK of the provider."""
    import httpx
    import sdk

    import compactd.httpx

    recorder.version = httpx.__version__

    class Base(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            recorder.sent(request.read())
            return super().handle_request(request)

    kind = sdk.Anthropic if isinstance(wire, Messages) else sdk.OpenAI
    http_client = httpx.Client(transport=compactd.httpx.Transport(base=Base(), **settings))
    client = kind(api_key="none", base_url=provider, http_client=http_client)

    def call(body: Body) -> list[Body]:
        answer = client.create(wire.path, **body)
        return list(answer) if body.get("stream") else [answer]

    run(steps(wire, recorder, body), call)


def by_asyncio(wire: Any, recorder: Recorder, body: Body, provider: str, settings: Body) -> None:
    """The same for asyncio."""
    import httpx
    import sdk

    import compactd.httpx

    recorder.version = httpx.__version__

    class Base(httpx.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            recorder.sent(await request.aread())
            return await super().handle_async_request(request)

    async def agent() -> None:
        transport = compactd.httpx.AsyncTransport(base=Base(), **settings)
        async with httpx.AsyncClient(transport=transport) as http_client:
            client = sdk.OpenAI(api_key="none", base_url=provider, http_client=http_client)
            calls = steps(wire, recorder, body)
            request = next(calls)
            while request:
                answer = await client.acreate(wire.path, **request)
                request = send(calls, answer if isinstance(answer, list) else [answer])

    asyncio.run(agent())


def run(calls: Any, call: Callable[[Body], list[Body]]) -> None:
    request = next(calls)
    while request:
        request = send(calls, call(request))


def send(calls: Any, events: list[Body]) -> Body:
    try:
        return calls.send(events)  # type: ignore[no-any-return]
    except StopIteration:
        return {}


AGENTS: dict[str, tuple[Any, Any]] = {
    "httpx/chat": (by_httpx, Chat),
    "httpx/responses": (by_httpx, Responses),
    "httpx/messages": (by_httpx, Messages),
    "httpx-async": (by_asyncio, Chat),
    "urllib": (by_urllib, Chat),
}


def main() -> None:
    way, wire = AGENTS[sys.argv[1]]
    env, recorder = os.environ, Recorder()
    model = json.loads(env["MODEL"])
    settings = {"url": env["WORKER"], "token": env["TOKEN"], "session": env["SESSION"], "model": model}
    settings |= {"wait": float(env.get("WAIT", 60)), "retry_after": 0.001}
    settings |= {"on_compacted": recorder.compacted, "on_problem": recorder.problem}
    stream = wire.stream if env.get("STREAM") else {}
    body, error = {"model": model["name"], **wire.fixed, **stream}, ""
    try:
        way(wire(), recorder, body, env["PROVIDER"], settings)
    except Exception as e:
        error = e.read().decode() if isinstance(e, urllib.error.HTTPError) else repr(e)
    waits = sorted(recorder.waits)
    quantile = {f"p{q}": round(waits[len(waits) * q // 100], 1) for q in (50, 99)}
    line = {"version": recorder.version, "compactions": recorder.compactions, "changed": recorder.changed}
    print(
        json.dumps(
            {
                **line,
                **quantile,
                "prefix": recorder.same / max(recorder.of, 1),
                "problems": recorder.problems,
                "error": error,
            }
        )
    )


if __name__ == "__main__":
    main()

"""Requests as the openai (2.46, 3.3) and anthropic (0.121) packages write them, and what these do with responses.

The packages are in no registry that the tests reach. Their requests were recorded; headers, bodies
and the reading of streams are the same.
"""

import json
from collections.abc import Iterator
from typing import Any

import httpx

PLATFORM = {
    "Accept": "application/json",
    "Content-Type": "application/json",
    "X-Stainless-Lang": "python",
    "X-Stainless-OS": "Linux",
    "X-Stainless-Arch": "x64",
    "X-Stainless-Runtime": "CPython",
    "X-Stainless-Runtime-Version": "3.11.7",
    "x-stainless-retry-count": "0",
    "x-stainless-read-timeout": "600",
}
TIMEOUT = httpx.Timeout(600, connect=5)


class APIError(Exception):
    """A refusal of the provider, with its status where it is not one inside a stream."""

    def __init__(self, body: Any, status: int | None = None):
        super().__init__(body)
        self.body, self.status = body, status


class SDK:
    """A client of a provider."""

    key: dict[str, str]
    version: dict[str, str]

    def __init__(self, *, api_key: str, base_url: str, http_client: Any):
        self.base_url, self.client = base_url, http_client
        self.headers = {**PLATFORM, **self.version, **{name: value + api_key for name, value in self.key.items()}}

    def request(self, path: str, body: dict[str, Any], mode: str = "false") -> httpx.Request:
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        headers = {**self.headers, "X-Stainless-Async": mode}
        built: httpx.Request = self.client.build_request(
            "POST", self.base_url + path, headers=headers, content=content, timeout=TIMEOUT
        )
        return built

    def create(self, path: str, **body: Any) -> Any:
        """Return the answer to a request, or its events where it streams."""
        response = self.client.send(self.request(path, body), stream=bool(body.get("stream")))
        if response.status_code >= 400:
            raise APIError(json.loads(response.read()), response.status_code)
        return self.events(response) if body.get("stream") else response.json()

    def events(self, response: httpx.Response) -> Iterator[Any]:
        try:
            for line in response.iter_lines():
                if (event := event_of(line)) is not None:
                    yield event
        finally:
            response.close()

    async def acreate(self, path: str, **body: Any) -> Any:
        """Return what create does, by a client of asyncio; all events at once where it streams."""
        response = await self.client.send(self.request(path, body, "async:asyncio"), stream=bool(body.get("stream")))
        if response.status_code >= 400:
            raise APIError(json.loads(await response.aread()), response.status_code)
        if not body.get("stream"):
            return response.json()
        try:
            return [event async for line in response.aiter_lines() if (event := event_of(line)) is not None]
        finally:
            await response.aclose()


def event_of(line: str) -> Any:
    """Return the event of a line of a stream, None where it has none. An error in a stream is raised."""
    if not line.startswith("data:") or line.rstrip() == "data: [DONE]":
        return None
    event = json.loads(line[5:])
    if event.get("error") or event.get("type") in ("error", "response.failed"):
        raise APIError(event)
    return event


class OpenAI(SDK):
    key = {"Authorization": "Bearer "}
    version = {"User-Agent": "OpenAI/Python 2.46.0", "X-Stainless-Package-Version": "2.46.0"}


class Anthropic(SDK):
    key = {"X-Api-Key": ""}
    version = {
        "User-Agent": "Anthropic/Python 0.121.0",
        "X-Stainless-Package-Version": "0.121.0",
        "anthropic-version": "2023-06-01",
    }

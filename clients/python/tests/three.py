"""The three lines of README.md."""

from typing import Any

import httpx
from sdk import OpenAI as _OpenAI

import compactd.httpx


def agent(url: str, token: str, provider: str) -> _OpenAI:
    """Return a client of OpenAI behind compactd."""

    def OpenAI(**options: Any) -> _OpenAI:
        return _OpenAI(api_key="none", base_url=provider + "/v1", **options)

    # doc:begin three
    transport = compactd.httpx.Transport(url, token, session="chat-42")
    http_client = httpx.Client(transport=transport)
    client = OpenAI(http_client=http_client)  # or Anthropic(http_client=http_client)
    # doc:end three
    return client

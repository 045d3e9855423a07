"""The lines of README.md, and an agent of twenty questions on them, which sends its whole history with each call."""

import os
from typing import Any

import httpx
import sdk

import compactd.httpx


def agent(url: str, token: str, provider: str) -> sdk.OpenAI:
    """Return a client of OpenAI behind compactd."""

    def OpenAI(**options: Any) -> sdk.OpenAI:
        return sdk.OpenAI(api_key="none", base_url=provider + "/v1", **options)

    # doc:begin three
    transport = compactd.httpx.Transport(url, token, session="chat-42")
    http_client = httpx.Client(transport=transport)
    client = OpenAI(http_client=http_client)  # or Anthropic(http_client=http_client)
    # doc:end three
    return client


def main() -> None:
    client = agent(os.environ["WORKER"], os.environ["TOKEN"], os.environ["PROVIDER"])
    messages: list[dict[str, Any]] = []
    for i in range(20):
        messages.append({"role": "user", "content": f"Question {i} {'and more ' * 500}"})
        answer = client.create("/chat/completions", model=os.environ["MODEL"], messages=messages, max_tokens=1024)
        message = answer["choices"][0]["message"]
        messages.append(message)
        messages += [{"role": "tool", "tool_call_id": c["id"], "content": "Done."} for c in message["tool_calls"]]
    print(len(messages))


if __name__ == "__main__":
    main()

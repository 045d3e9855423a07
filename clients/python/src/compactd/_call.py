"""Requests of a model, with their histories."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from compactd._json import Object, Value

LARGEST = 32 << 20  # bytes of a body


class Api(NamedTuple):
    """A kind of request with a history."""

    path: str  # the end of it
    format: str
    provider: str
    messages: str  # members of the body
    system: str  # "" where the messages contain it
    output: tuple[str, ...]  # members with the most tokens of an answer


APIS = (
    Api("/chat/completions", "openai", "openai", "messages", "", ("max_completion_tokens", "max_tokens")),
    Api("/responses", "openai-responses", "openai", "input", "instructions", ("max_output_tokens",)),
    Api("/messages", "anthropic", "anthropic", "messages", "system", ("max_tokens",)),
)


def api_of(method: str, path: str, header: Callable[[str], str | None]) -> Api | None:
    """Return the kind of a request, None where its body must not change."""
    signed = (header("Authorization") or "").startswith("AWS4-HMAC")
    length = header("Content-Length") or "0"
    if method != "POST" or signed or header("Content-Encoding") or not length.isdigit() or int(length) > LARGEST:
        return None
    return next((api for api in APIS if path.endswith(api.path)), None)


class Call:
    """A request of a model: what its body has, and digests of its history."""

    def __init__(self, api: Api, session: str, path: str, body: bytes, settings: Mapping[str, Any]):
        """Read a body. Raises ValueError where it has no history to send."""
        self.api, self.session, self.body = api, session, body
        self.object = Object(body.decode(), api.messages)
        messages = self.object.data(api.messages)
        at_provider = (
            self.object.data("previous_response_id") is not None or self.object.data("conversation") is not None
        )
        if not messages or not isinstance(messages, list) or at_provider:
            raise ValueError("no history")
        self.messages: list[Value] = messages
        self.model = self._model(path, settings)
        self.sums = [hashlib.sha256(api.format.encode()).digest()]  # of the first n messages, by n
        for m in messages:
            self.sums.append(hashlib.sha256(self.sums[-1] + m.text.encode()).digest())
        setup = [str(self.model.get("name", "")), self._text(api.system), self._text("tools")]
        self.setup = hashlib.sha256("\0".join(setup).encode(errors="replace")).digest()

    def _text(self, member: str) -> str:
        return self.object.members[member].text if member in self.object.members else ""

    def _model(self, path: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the model of the call, where the settings name no other. Azure has it in the path."""
        name = self.object.data("model")
        deployment = unquote(path).partition("/deployments/")[2].partition("/")[0]
        model = {"provider": self.api.provider, "name": name if isinstance(name, str) and name else deployment}
        for member in reversed(self.api.output):
            if type(n := self.object.data(member)) is int:
                model["max_output_tokens"] = n
        return {k: v for k, v in {**model, **settings}.items() if v}

    def settings(self) -> dict[str, str]:
        """Return system and tools as members of a sync, in their own text."""
        members = {"system": self._text(self.api.system), "tools": self._text("tools")}
        return {name: text for name, text in members.items() if text not in ("", "null")}

    def with_messages(self, messages: list[Value]) -> bytes:
        """Return the body with other messages."""
        return self.object.replace(self.api.messages, [m.text for m in messages]).encode()

    def around(self) -> int:
        """Return how many bytes the body has around the array of messages."""
        start, end = self.object.places[self.api.messages]
        return len(self.body) - len(self.object.text[start:end].encode())

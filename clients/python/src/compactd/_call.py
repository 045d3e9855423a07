"""Requests of a model, with their histories."""

import hashlib
import json
import re
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


class History:
    """A history that is about to be sent, as the provider gets it."""

    def __init__(
        self,
        session: str,
        format: str,
        model: dict[str, Any],
        system: str,
        tools: str,
        messages: list[Value],
        thinking: Any,
    ):
        """Take the parts of a request; system and tools are JSON, "" where it has none."""
        self.session, self.format, self.model, self.messages = session, format, model, messages
        members = {"system": system, "tools": tools}
        self.settings = {name: text for name, text in members.items() if text not in ("", "null")}
        # A model whose thinking is enabled, and not adaptive, demands that of its open tool loop.
        self.demands_thinking = isinstance(thinking, dict) and thinking.get("type") == "enabled"
        self.sums = [hashlib.sha256(format.encode()).digest()]  # of the content of the first n messages, by n
        for m in messages:
            content = _content(m).encode(errors="surrogatepass")
            self.sums.append(hashlib.sha256(self.sums[-1] + content).digest())
        setup = "\0".join((str(model.get("name", "")), system, tools))
        self.setup = hashlib.sha256(setup.encode(errors="replace")).digest()
        self._rest = len(system.encode()) + len(tools.encode())

    def size(self, pieces: list["Piece"]) -> int:
        """Return the weight of some messages, instructions and tools included."""
        return self._rest + sum(weight(p.value.text) + 1 for p in pieces)

    def kept(self, start: int, end: int) -> list["Piece"]:
        """Return the caller's own messages of a range."""
        return [Piece(self.messages[i], i) for i in range(start, end)]


_MEDIUM = 4096  # bytes that an image, a sound or a document counts: about a thousand tokens
_media = re.compile(r'"(?:data:[^",\\]*,)?([A-Za-z0-9+/=_-]{4097,})"')  # base64


def weight(text: str) -> int:
    """Return how many bytes of a message count for the window: those of a medium are no measure."""
    size = len(text.encode(errors="surrogatepass"))
    if size <= _MEDIUM:
        return size
    return size - sum(m.end(1) - m.start(1) - _MEDIUM for m in _media.finditer(text))


def _content(m: Value) -> str:
    """Return a message without marks for a cache, which agents move with each call; one block of text is its text."""
    blocks = m.data.get("content") if isinstance(m.data, dict) else None
    if "cache_control" not in m.text and not (isinstance(blocks, list) and len(blocks) == 1):
        return m.text
    data = _unmarked(m.data)
    block = data["content"][0] if isinstance(blocks, list) and len(blocks) == 1 else None
    if isinstance(block, dict) and block.keys() == {"type", "text"} and block["type"] == "text":
        data["content"] = block["text"]
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _unmarked(v) for k, v in value.items() if k != "cache_control"}
    return [_unmarked(v) for v in value] if isinstance(value, list) else value


def _is_trigger(message: Any) -> bool:
    """Return whether an item has the provider compact the history in front of it."""
    return isinstance(message, dict) and message.get("type") == "compaction_trigger"


class Piece(NamedTuple):
    """A message to send: the caller's own, one that was made of it, or one that was added."""

    value: Value
    own: int | None  # index of the caller's message
    made: bool = False


class Call(History):
    """A request of a model: its history, and the rest of its body."""

    def __init__(self, api: Api, session: str, path: str, body: bytes, settings: Mapping[str, Any]):
        """Read a body. Raises ValueError where it has no history to send."""
        self._body, self._messages, self._object = body, api.messages, Object(body.decode(), api.messages)
        data = self._object.data
        messages = data(api.messages)
        at_provider = data("previous_response_id") is not None or data("conversation") is not None
        if not messages or not isinstance(messages, list) or at_provider or _is_trigger(messages[-1].data):
            raise ValueError("no history")
        text = self._object.text_of
        super().__init__(
            session,
            api.format,
            self._model(api, path, settings),
            text(api.system),
            text("tools"),
            messages,
            data("thinking"),
        )

    def _model(self, api: Api, path: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the model of the call, where the settings name no other. Azure has it in the path."""
        name = self._object.data("model")
        deployment = unquote(path).partition("/deployments/")[2].partition("/")[0]
        model = {"provider": api.provider, "name": name if isinstance(name, str) and name else deployment}
        most = settings.get("context_window") or float("inf")  # a larger number is no reserve
        for member in reversed(api.output):
            if type(n := self._object.data(member)) is int and 0 < n < most:
                model["max_output_tokens"] = n
        return {k: v for k, v in {**model, **settings}.items() if v}

    def with_pieces(self, pieces: list[Piece]) -> bytes:
        """Return the body with some messages: as it came where they are the caller's own."""
        if len(pieces) == len(self.messages) and not any(p.made for p in pieces):
            return self._body
        return self._object.replace(self._messages, [p.value.text for p in pieces]).encode()

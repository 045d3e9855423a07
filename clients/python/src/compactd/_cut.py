"""Cuts a history where no worker answers: crude, and valid."""

import json
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from compactd._call import History, Piece, weight
from compactd._json import Object, Value

CUTTABLE = ("openai", "openai-responses", "anthropic")  # dialects of histories that can be cut


def cut(history: History, pieces: list[Piece], most: int) -> list[Piece]:
    """Return the instructions, the first prompt, and the newest turns.

    Where these exceed most bytes, the oldest are left out until half of the room is free: the calls that
    follow append to the same messages, and the provider's cache holds. Where no whole turn fits, it goes
    on at a call.
    """
    messages = [p.value.data for p in pieces]
    head = next((i + 1 for i, m in enumerate(messages) if _is_prompt(m)), 0)
    starts = list(_starts(messages, head))
    prompts = [i for i in starts if _is_prompt(messages[i])]
    up_to = list(accumulate((weight(p.value.text) + 1 for p in pieces), initial=0))  # bytes of the first n
    room = most - history.size(pieces[:head])
    start = head
    for end in range(head, len(pieces) + 1):
        if up_to[end] - up_to[start] > room:  # a longer history begins with the cuts of a shorter one
            behind = [[i for i in places if start < i < end] for places in (prompts, starts)]
            fitting = (i for places in behind for n in (room // 2, room) for i in places if up_to[end] - up_to[i] <= n)
            start = next(fitting, max(behind[1], default=start))
    return _without_thinking(history, pieces[:head] + pieces[start:])


def _starts(messages: list[Any], head: int) -> Iterator[int]:
    """List where a history may go on behind its head: at all places without an open call.

    An item of reasoning belongs to the next one.
    """
    open_calls: set[str] = set()
    for i, m in enumerate(messages):
        calls, results = _pairs(m)
        if i >= head and not open_calls and not results and (i == 0 or not _is_reasoning(messages[i - 1])):
            yield i
        open_calls = (open_calls | calls) - results


def _blocks(message: Any) -> list[dict[str, Any]]:
    content = message.get("content") if isinstance(message, dict) else None
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


def _pairs(message: Any) -> tuple[set[str], set[str]]:
    """Return the ids of the calls in a message, and of the results."""
    if not isinstance(message, dict):
        return set(), set()
    kind, role = str(message.get("type") or ""), message.get("role")
    calls = [b.get("id") for b in message.get("tool_calls") or ()] + [
        b.get("id") for b in _blocks(message) if b.get("type") == "tool_use"
    ]
    results = [b.get("tool_use_id") for b in _blocks(message) if b.get("type") == "tool_result"]
    if message.get("function_call"):  # the older form of calls, without ids
        calls.append("")
    if role in ("tool", "function"):
        results.append(message.get("tool_call_id"))
    if kind.endswith("_call") and message.get("call_id"):  # without, its provider has made it
        calls.append(message["call_id"])
    elif kind == "mcp_approval_request":
        calls.append(message.get("id"))
    elif kind.endswith("_output") or kind == "mcp_approval_response":
        results.append(message.get("call_id") or message.get("approval_request_id") or message.get("id"))
    return {str(c or "") for c in calls}, {str(r or "") for r in results}


def _is_prompt(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") == "user" and not _pairs(message)[1]


def _is_reasoning(message: Any) -> bool:
    return isinstance(message, dict) and message.get("type") == "reasoning"


THINKING = ("thinking", "redacted_thinking")


def _without_thinking(history: History, pieces: list[Piece]) -> list[Piece]:
    """Leave out thinking whose signature covers the messages before it: the model may refuse it."""
    loop = len(pieces)
    if history.demands_thinking:
        loop = max((i for i, p in enumerate(pieces) if _is_prompt(p.value.data)), default=0)
    kept: list[Piece] = []
    for p in pieces[:loop]:
        value = _stripped(history, p.value)
        if value is not None:
            kept.append(p if value is p.value else Piece(value, p.own, made=True))
    return kept + pieces[loop:]


def _stripped(history: History, m: Value) -> Value | None:
    """Return a message without thinking, itself where it has none, None where nothing is left."""
    claude = history.format == "openai" and "claude" in str(history.model.get("name")).lower()
    if claude and "reasoning_details" in m.data:
        members = {k: v for k, v in Object(m.text).members.items() if k != "reasoning_details"}
        text = ",".join(f"{json.dumps(k)}:{v.text}" for k, v in members.items())
        return Value({k: v.data for k, v in members.items()}, "{" + text + "}")
    if not any(b.get("type") in THINKING for b in _blocks(m.data)):
        return m
    message = Object(m.text, "content")
    kept = [b for b in message.data("content") if b.data.get("type") not in THINKING]
    if all(b.data.get("type") == "text" and not b.data.get("text", "").strip() for b in kept):
        return None
    return Value({**m.data, "content": [b.data for b in kept]}, message.replace("content", [b.text for b in kept]))

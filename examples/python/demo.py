"""An agent of 24 turns on nats-py (pip install nats-py), whose model is a fake one. It prints what it
holds at the end."""

import asyncio
import json
import os
import re
import time
import uuid

import nats
from agent import Session

TURNS = 24
MODEL = {"provider": "anthropic", "name": "claude-sonnet-4-20250514", "context_window": 16000}


class Watched(Session):
    """A session that counts the answers to its requests."""

    resyncs = 0

    async def resync(self):
        await super().resync()
        self.resyncs += not self.missed


def valid(history, last):
    """Report whether user and assistant alternate, and nothing new is missing or duplicate."""
    prompts = [re.fullmatch(r"Describe part (\d+)\.", str(m["content"])) for m in history]
    parts = [int(found[1]) for found in prompts if found]
    in_turns = [m["role"] for m in history] == (["user", "assistant"] * len(history))[: len(history)]
    return in_turns and parts == sorted(set(parts)) and parts[-2:] == [last - 1, last][-len(parts) :]


async def think(history, turn):
    """Answer as a fake model with long answers. A real one takes seconds."""
    if not valid(history, turn):
        raise SystemExit(f"this is no history: {history}")
    await asyncio.sleep(0.05)
    text = "There is a lot to say about it. " * 100
    return {"role": "assistant", "content": f"To {len(history)} messages: {text}"}


async def refused(msg):
    """An agent that goes on sends its history again, with replaces_from 1."""
    print("refused:", msg.data.decode())
    os._exit(1)


async def main():
    servers = os.environ.get("NATS_URL", "nats://127.0.0.1:4222")
    nc = await nats.connect(servers, max_reconnect_attempts=-1)
    session = Watched(nc, f"example-python-{uuid.uuid4()}", model=MODEL)
    outcomes = await session.subscribe(refused)
    for turn in range(1, TURNS + 1):
        if turn == 8:
            await outcomes.unsubscribe()  # simulates a lost connection
        if turn == 18:
            outcomes = await session.subscribe(refused)
        prompt = {"role": "user", "content": f"Describe part {turn}."}
        answer = await think(await session.history() + [prompt], turn)
        await session.publish([prompt, answer])

    # Your agent has no reason to wait. This one wants something to show.
    end = time.monotonic() + 10
    messages = await session.history()
    while not session.resyncs and time.monotonic() < end:
        await asyncio.sleep(0.01)
        messages = await session.history()
    await nc.close()
    line = {
        "turns": TURNS,
        "generation": session.held["generation"],
        "resyncs": session.resyncs,
        "messages": len(messages),
        "history_valid": valid(messages, TURNS),
    }
    print(json.dumps(line, separators=(",", ":")))
    if line["generation"] == 0 or line["resyncs"] == 0:
        raise SystemExit("no compaction was published" if line["generation"] == 0 else "no outcome was missed")


asyncio.run(main())

"""An agent of 24 turns on nats-py (pip install nats-py), whose model is a fake one. It prints what it
holds at the end."""

import asyncio
import json
import os
import time
import uuid

import nats
from agent import Session

MODEL = {"provider": "anthropic", "name": "claude-sonnet-4-20250514", "context_window": 16000}


class Watched(Session):
    """A session that counts what it is answered when it asks."""

    resyncs = 0

    async def resync(self):
        await super().resync()
        self.resyncs += not self.missed


async def think(history):
    """Stand for a model that has much to say. A real one takes seconds."""
    await asyncio.sleep(0.05)
    text = "There is a lot to say about it. " * 100
    return {"role": "assistant", "content": f"To {len(history)} messages: {text}"}


async def refused(msg):
    """An agent that goes on sends what it holds anew, with replaces_from 1."""
    print("refused:", msg.data.decode())
    os._exit(1)


async def main():
    servers = os.environ.get("NATS_URL", "nats://127.0.0.1:4222")
    nc = await nats.connect(servers, max_reconnect_attempts=-1)
    session = Watched(nc, f"example-python-{uuid.uuid4()}", model=MODEL)
    outcomes = await session.listen(refused)
    for turn in range(1, 25):
        if turn == 8:
            await outcomes.unsubscribe()  # a lost connection, as it were
        if turn == 18:
            outcomes = await session.listen(refused)
        prompt = {"role": "user", "content": f"Tell me about part {turn}."}
        answer = await think(await session.history() + [prompt])
        await session.publish([prompt, answer])

    # Your agent has no reason to wait. This one wants something to show.
    end = time.monotonic() + 10
    messages = await session.history()
    while not session.resyncs and time.monotonic() < end:
        await asyncio.sleep(0.01)
        messages = await session.history()
    await nc.close()
    roles = [m["role"] for m in messages]
    line = {
        "turns": 24,
        "generation": session.held["generation"],
        "resyncs": session.resyncs,
        "messages": len(messages),
        "history_valid": len(roles) > 0 and roles == ["user", "assistant"] * (len(roles) // 2),
    }
    print(json.dumps(line, separators=(",", ":")))
    if line["generation"] == 0 or line["resyncs"] == 0:
        raise SystemExit("no compaction was told" if line["generation"] == 0 else "no outcome was missed")


asyncio.run(main())

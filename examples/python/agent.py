"""A whole agent on nats-py (pip install nats-py): it publishes its turns, takes the
histories it is told, and asks for what it missed. Its model is a fake one."""

import asyncio
import json
import os
import uuid

import nats
import nats.errors

TURNS = 24
SESSION = f"example-python-{uuid.uuid4()}"
MODEL = {"provider": "anthropic", "name": "claude-sonnet-4-20250514", "context_window": 16000}


class Agent:
    def __init__(self, nc):
        self.nc, self.js = nc, nc.jetstream()
        self.prefix = []  # the history told last, up to the turn through
        self.own = []  # what each turn after it appended
        self.turn = self.through = self.generation = 0
        self.told, self.seen, self.missed = [], 0, False

    async def publish(self, *appended):
        """Send what was appended since the last turn, as the next turn."""
        id = str(uuid.uuid4())  # one for each turn, the same when it is sent again
        payload = json.dumps({"id": id, "turn": self.turn + 1, "generation": self.generation, "messages": appended, "model": MODEL})
        for attempt in range(5):  # no answer: perhaps it is stored, perhaps not
            try:
                await self.js.publish(f"session.turn.default.{SESSION}", payload.encode(), headers={"Nats-Msg-Id": id})
                break
            except nats.errors.Error:
                if attempt == 4 or self.nc.is_closed:
                    raise
                await asyncio.sleep(1)
        self.turn += 1
        self.own.append(appended)


    async def hear(self, msg):
        """Keep an outcome for the next turn border; it says whether one before it was missed."""
        self.missed |= int(msg.headers["Nats-Last-Sequence"]) != self.seen
        self.seen = int(msg.headers["Nats-Sequence"])
        self.told.append(json.loads(msg.data))

    def take(self):
        """Apply what was told since the last turn border; never wait for it."""
        told, self.told = self.told, []
        for ev in told:
            self.apply(ev)

    def apply(self, ev):
        """Take a history in place of all turns up to the one it stands for."""
        through = ev["through"]["turn"]
        if ev.get("compacted", True) and "messages" in ev and ev["generation"] > self.generation and through >= self.through:
            self.prefix, self.own = ev["messages"], self.own[through - self.through :]
            self.generation, self.through = ev["generation"], through

    def history(self):
        """What goes into the next call of the model."""
        return self.prefix + [m for turn in self.own for m in turn]


    async def resync(self):
        """Ask a worker for the history, page by page, and apply it."""
        whole = await self.ask(1)
        for page in range(2, whole["pages"] + 1):
            more = await self.ask(page)
            if (more["generation"], more["through"]) != (whole["generation"], whole["through"]):
                return  # it moved: once more, later
            whole["messages"] += more["messages"]
        self.apply(whole)
        self.missed = False

    async def ask(self, page):
        msg = await self.nc.request("compactd.context.default", json.dumps({"session": SESSION, "page": page}).encode(), timeout=15)
        if msg.headers and "Nats-Service-Error-Code" in msg.headers:
            raise RuntimeError(msg.data.decode())
        return json.loads(msg.data)


async def refused(msg):
    """An acknowledged turn may still be refused. An agent that goes on would resync."""
    print("refused:", msg.data.decode())
    os._exit(1)


async def think(history):
    """Stand for a model that has much to say. A real one takes seconds."""
    await asyncio.sleep(0.05)
    return {"role": "assistant", "content": f"To {len(history)} messages: " + "There is a lot to say about it. " * 100}


async def main():
    nc = await nats.connect(os.environ.get("NATS_URL", "nats://127.0.0.1:4222"), max_reconnect_attempts=-1)
    a, resyncs = Agent(nc), 0
    await nc.subscribe(f"session.rejected.default.{SESSION}", cb=refused)
    sub = await nc.subscribe(f"session.compacted.default.{SESSION}", cb=a.hear)
    for n in range(1, TURNS + 1):
        if n == 8:
            await sub.unsubscribe()  # a lost connection, as it were
        if n == 18:
            sub = await nc.subscribe(f"session.compacted.default.{SESSION}", cb=a.hear)
        a.take()
        if a.missed:
            await a.resync()
            resyncs += 1
        prompt = {"role": "user", "content": f"Tell me about part {n}."}
        await a.publish(prompt, await think(a.history() + [prompt]))
    messages = a.history()
    valid = bool(messages) and all(m["role"] == ("user", "assistant")[i % 2] for i, m in enumerate(messages))
    print(json.dumps({"turns": a.turn, "generation": a.generation, "resyncs": resyncs, "messages": len(messages), "history_valid": valid}))
    await nc.close()
    if a.generation == 0:
        raise SystemExit("no compaction was told")


asyncio.run(main())

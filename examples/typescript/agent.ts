// A whole agent on the NATS client for Node: it publishes its turns, takes the
// histories it is told, and asks for what it missed. Its model is a fake one.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { jetstream } from "@nats-io/jetstream";
import { connect, type Msg } from "@nats-io/transport-node";

type Message = { role: string; content: string };
type History = { generation: number; through: { turn: number }; messages?: Message[]; compacted?: boolean; pages?: number };

const turns = 24;
const session = `example-ts-${randomUUID()}`;
const nc = await connect({ servers: process.env.NATS_URL || "nats://127.0.0.1:4222" });
const js = jetstream(nc);

let prefix: Message[] = []; // the history told last, up to the turn through
let own: Message[][] = []; // what each turn after it appended
let turn = 0; // the last one published
let through = 0;
let generation = 0;

// doc:begin turn
// publish sends what was appended since the last turn, as the next turn.
async function publish(...appended: Message[]) {
  const id = randomUUID(); // one for each turn, the same when it is sent again
  const payload = JSON.stringify({
    id, turn: turn + 1, generation, messages: appended,
    model: { provider: "anthropic", name: "claude-sonnet-4-20250514", context_window: 16000 },
  });
  for (let attempt = 1; ; attempt++) { // no answer: perhaps it is stored, perhaps not
    try {
      await js.publish(`session.turn.default.${session}`, payload, { msgID: id });
      break;
    } catch (err) {
      if (attempt === 5 || nc.isClosed()) throw err;
      await sleep(1000);
    }
  }
  turn++;
  own.push(appended);
}
// doc:end turn

// doc:begin swap
let told: History[] = []; // since the last turn border
let seen = 0; // Nats-Sequence of the last outcome
let missed = false;

const listen = () => nc.subscribe(`session.compacted.default.${session}`, {
  callback: (err, m) => {
    if (err) throw err;
    missed ||= Number(m.headers?.get("Nats-Last-Sequence")) !== seen;
    seen = Number(m.headers?.get("Nats-Sequence"));
    told.push(m.json<History>());
  },
});

// take applies what was told since the last turn border, and never waits for it.
function take() {
  for (const ev of told.splice(0)) apply(ev);
}

// apply takes a history in place of all turns up to the one it stands for.
function apply(ev: History) {
  if (ev.compacted !== false && ev.messages && ev.generation > generation && ev.through.turn >= through) {
    prefix = ev.messages;
    own = own.slice(ev.through.turn - through);
    ({ generation, through: { turn: through } } = ev);
  }
}

// history is what goes into the next call of the model.
const history = () => [...prefix, ...own.flat()];
// doc:end swap

// doc:begin missed
// resync asks a worker for the history, page by page, and applies it.
async function resync() {
  const ask = async (page: number) => {
    const m: Msg = await nc.request("compactd.context.default", JSON.stringify({ session, page }), { timeout: 15_000 });
    if (m.headers?.get("Nats-Service-Error-Code")) throw new Error(m.string());
    return m.json<History>();
  };
  const whole = await ask(1);
  for (let page = 2; page <= (whole.pages ?? 1); page++) {
    const next = await ask(page);
    if (next.generation !== whole.generation || next.through.turn !== whole.through.turn) return; // it moved: once more, later
    whole.messages?.push(...(next.messages ?? []));
  }
  apply(whole);
  missed = false;
}
// doc:end missed

// An acknowledged turn may still be refused. An agent that goes on would resync.
nc.subscribe(`session.rejected.default.${session}`, {
  callback: (err, m) => {
    console.error("refused:", err ?? m.string());
    process.exit(1);
  },
});

// think stands for a model that has much to say. A real one takes seconds.
async function think(history: Message[]): Promise<Message> {
  await sleep(50);
  return { role: "assistant", content: `To ${history.length} messages: ${"There is a lot to say about it. ".repeat(100)}` };
}

let resyncs = 0;
let sub = listen();
for (let n = 1; n <= turns; n++) {
  if (n === 8) sub.unsubscribe(); // a lost connection, as it were
  if (n === 18) sub = listen();
  take();
  if (missed) {
    await resync();
    resyncs++;
  }
  const prompt = { role: "user", content: `Tell me about part ${n}.` };
  await publish(prompt, await think([...history(), prompt]));
}
// Your agent has no reason to wait. This one wants something to show.
for (const end = Date.now() + 10_000; resyncs === 0 && Date.now() < end; await sleep(10)) {
  take();
  if (!missed) continue;
  await resync();
  resyncs++;
}
const messages = history();
const valid = messages.length > 0 && messages.every((m, i) => m.role === ["user", "assistant"][i % 2]);
console.log(JSON.stringify({ turns: turn, generation, resyncs, messages: messages.length, history_valid: valid }));
await nc.close();
if (generation === 0 || resyncs === 0) {
  console.error(generation === 0 ? "no compaction was told" : "no outcome was missed");
  process.exitCode = 1;
}

// A whole agent on the NATS client for Node: it publishes its turns, and takes the
// histories it is told. Its model is a fake one.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";

const turns = 24;
const session = `example-node-${randomUUID()}`;
const nc = await connect({ servers: process.env.NATS_URL || "nats://127.0.0.1:4222" });
const js = jetstream(nc);

let prefix = []; // the history told last, up to the turn through
let own = []; // what each turn after it appended
let turn = 0; // the last one published
let through = 0;
let generation = 0;

// doc:begin turn
// publish sends what was appended since the last turn, as the next turn.
async function publish(...appended) {
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
const told = []; // since the last turn border
nc.subscribe(`session.compacted.default.${session}`, {
  callback: (err, m) => err ? console.error(err) : told.push(m.json()),
});

// take applies what was told since the last turn border, and never waits for it.
function take() {
  for (const ev of told.splice(0)) apply(ev);
}

// apply takes a history in place of all turns up to the one it stands for.
function apply(ev) {
  if (ev.compacted && ev.messages && ev.generation > generation) {
    prefix = ev.messages;
    own = own.slice(ev.through.turn - through);
    ({ generation, through: { turn: through } } = ev);
  }
}

// history is what goes into the next call of the model.
const history = () => [...prefix, ...own.flat()];
// doc:end swap

// doc:begin missed
// catchUp applies the newest outcome that is stored, and returns its generation.
async function catchUp() {
  const { streams } = await jetstreamManager(nc);
  const m = await streams.getMessage("OUTCOMES", { last_by_subj: `out.*.compacted.default.${session}` });
  if (!m) return 0; // nothing was told yet
  const ev = m.json();
  apply(ev);
  return ev.generation;
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
async function think(history) {
  await sleep(50);
  return { role: "assistant", content: `To ${history.length} messages: ${"There is a lot to say about it. ".repeat(100)}` };
}

for (let n = 1; n <= turns; n++) {
  take();
  const prompt = { role: "user", content: `Tell me about part ${n}.` };
  await publish(prompt, await think([...history(), prompt]));
}
// Your agent has no reason to wait. This one wants something to show.
for (const end = Date.now() + 10_000; generation === 0 && Date.now() < end; take()) await sleep(10);
const stored = await catchUp(); // the newest generation in OUTCOMES
const messages = history();
const valid = messages.length > 0 && messages.every((m, i) => m.role === ["user", "assistant"][i % 2]);
console.log(JSON.stringify({ turns: turn, generation, stored, messages: messages.length, history_valid: valid }));
await nc.close();
if (generation === 0) {
  console.error("no compaction was told");
  process.exitCode = 1;
}

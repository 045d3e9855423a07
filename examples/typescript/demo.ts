// An agent of 24 turns, whose model is a fake one. It prints what it holds at the end.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "@nats-io/transport-node";
import { Session } from "./agent.js";

type Message = { role: string; content: unknown };

const turns = 24;
let calls = 0; // of the model

// Watched counts the answers to its requests.
class Watched extends Session<Message> {
  resyncs = 0;
  override async resync() {
    await super.resync();
    if (!this.missed) this.resyncs++;
  }
}

// valid reports whether user and assistant alternate, and nothing new is missing or duplicate.
function valid(history: Message[], last: number): boolean {
  const prompts = history.map((m) => /^Describe part (\d+)\.$/.exec(String(m.content)));
  const parts = prompts.flatMap((found) => (found ? [Number(found[1])] : []));
  return history.every((m, i) => m.role === (i % 2 ? "assistant" : "user")) &&
    parts.every((part, i) => i === 0 || part > parts[i - 1]) &&
    parts.at(-1) === last && (last === 1 || parts.at(-2) === last - 1);
}

// think is a fake model with long answers. A real one takes seconds.
async function think(history: Message[]): Promise<Message> {
  if (!valid(history, ++calls)) throw new Error(`this is no history: ${JSON.stringify(history)}`);
  await sleep(50);
  const text = "There is a lot to say about it. ".repeat(100);
  return { role: "assistant", content: `To ${history.length} messages: ${text}` };
}

function refused(why: string) {
  console.error("refused:", why); // an agent that goes on sends its history again, with replaces_from 1
  process.exit(1);
}

const nc = await connect({ servers: process.env.NATS_URL || "nats://127.0.0.1:4222" });
const model = { provider: "anthropic", name: "claude-sonnet-4-20250514", context_window: 16000 };
const session = new Watched(nc, `example-ts-${randomUUID()}`, { model });

// doc:begin ask
// ask is one turn: the model gets the history, and the turn adds prompt and answer to it.
async function ask(text: string) {
  const prompt = { role: "user", content: text };
  const answer = await think([...(await session.history()), prompt]);
  await session.publish([prompt, answer]);
}
// doc:end ask

let outcomes = session.subscribe(refused);
for (let turn = 1; turn <= turns; turn++) {
  if (turn === 8) outcomes.unsubscribe(); // simulates a lost connection
  if (turn === 18) outcomes = session.subscribe(refused);
  await ask(`Describe part ${turn}.`);
}

// Your agent has no reason to wait. This one wants something to show.
let messages = await session.history();
for (const end = Date.now() + 10_000; session.resyncs === 0 && Date.now() < end; await sleep(10)) {
  messages = await session.history();
}
const line = {
  turns,
  generation: session.held.generation,
  resyncs: session.resyncs,
  messages: messages.length,
  history_valid: valid(messages, turns),
};
console.log(JSON.stringify(line));
await nc.close();
if (line.generation === 0 || line.resyncs === 0) {
  console.error(line.generation === 0 ? "no compaction was published" : "no outcome was missed");
  process.exitCode = 1;
}

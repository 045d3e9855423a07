// Runs an agent of agents.mjs against a worker and a provider, and prints what compactd did to its calls.
//
//   node run.mjs --list | NAME
//
// Environment: WORKER, TOKEN, SESSION, PROVIDER (its URL), MODEL (as in a turn), STREAM (1 or nothing),
// RETRIES of a call without an answer. Without WORKER the provider is a gateway, and the agent has nothing
// of compactd.

import { readFile } from "node:fs/promises";
import { compactd } from "compactd";
import { agents } from "./agents.mjs";

/** The requests of an agent, and those that the provider gets. */
class Recorder {
  compactions = 0;
  changed = 0; // messages that an agent sent otherwise than in the call before
  waits = []; // in milliseconds, from the agent's call to the provider's
  same = { bytes: 0, of: 0 }; // prefixes of calls that no compaction lies between
  #own = [];
  #sent = { messages: [], compactions: 0 };
  #began = 0;

  began(messages) {
    const texts = messages.map((m) => JSON.stringify(m));
    this.changed += this.#own.filter((text, i) => text !== texts[i]).length;
    this.#own = texts;
    this.#began = performance.now();
  }

  sent(messages) {
    this.waits.push(performance.now() - this.#began);
    const texts = messages.map((m) => JSON.stringify(m));
    const { messages: last, compactions } = this.#sent;
    if (compactions === this.compactions) {
      const differs = last.findIndex((text, i) => text !== texts[i]);
      this.same.bytes += last.slice(0, differs < 0 ? last.length : differs).join().length;
      this.same.of += last.join().length;
    }
    this.#sent = { messages: texts, compactions: this.compactions };
  }
}

const messagesOf = (body) => JSON.parse(body).messages ?? JSON.parse(body).input;

/** The value that a share of some numbers is not above. */
function quantile(values, share) {
  const sorted = values.toSorted((a, b) => a - b);
  return Number(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]?.toFixed(1));
}

async function main(name) {
  const { on, run, middleware } = agents[name];
  const { WORKER: url, TOKEN: token, SESSION, PROVIDER, MODEL, STREAM, RETRIES } = process.env;
  const model = JSON.parse(MODEL);
  const recorder = new Recorder();
  const problems = [];
  const { version } = JSON.parse(await readFile(new URL(`node_modules/${on}/package.json`, import.meta.url), "utf8"));
  const options = {
    url, token, model, session: SESSION, waitMs: 60_000, retryAfterMs: 1, // so that a slow machine is not a slow worker
    onCompacted: () => recorder.compactions++,
    onProblem: ({ code, message }) => problems.push(`${code}: ${message}`),
  };
  const base = fetch;
  const provider = (input, init) => {
    recorder.sent(messagesOf(init.body));
    return base(input, init);
  };
  const generations = {}; // as reported by the gateway, by the number that the provider gave to the call
  const gateway = async (input, init) => {
    const began = performance.timeOrigin + performance.now();
    const headers = new Headers(init.headers);
    headers.set("x-began", began.toFixed(3));
    const response = await base(input, { ...init, headers });
    if (response.ok) generations[response.headers.get("x-call")] = Number(response.headers.get("x-compactd-generation"));
    return response;
  };
  const fitted = url ? compactd({ ...options, fetch: provider }) : gateway;
  const env = {
    url: PROVIDER, model: model.name, stream: !!STREAM, retries: Number(RETRIES ?? 0),
    fetch: (input, init) => {
      recorder.began(messagesOf(init.body));
      return fitted(input, init);
    },
  };
  if (middleware) {
    const { compactdMiddleware } = await import("compactd/ai-sdk");
    const began = { transformParams: ({ params }) => (recorder.began(params.prompt), params) };
    Object.assign(env, { fetch: provider, middleware: [began, compactdMiddleware(options)] });
  }
  const error = await run(env).then(() => undefined, String);
  const { compactions, changed, waits, same } = recorder;
  const report = { version, compactions, changed, problems, error, generations, p50: quantile(waits, 0.5), p99: quantile(waits, 0.99), prefix: same.bytes / same.of };
  console.log(JSON.stringify(report));
}

if (process.argv[2] === "--list") {
  const missing = (on) => readFile(new URL(`node_modules/${on}/package.json`, import.meta.url)).then(() => false, () => true);
  console.log(JSON.stringify(await Promise.all(Object.entries(agents).map(async ([name, { on, wire, middleware }]) => ({ name, wire, on, middleware, missing: await missing(on) })))));
} else {
  await main(process.argv[2]);
}

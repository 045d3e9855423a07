import assert from "node:assert/strict";
import { test } from "node:test";
import { Conversation } from "../dist/index.js";
import { serve } from "./serve.mjs";

const history = ["first", "x".repeat(600), "second", "y".repeat(600), "third"].map((content, i) => ({ role: i % 2 ? "assistant" : "user", content }));
const codec = { to: (m) => m, from: (m) => m };
const budget = { available_input_tokens: 1000, estimated_input_tokens: 890 };

/** A conversation of a worker that changes nothing; its requests, and its problems. */
async function converse(options = {}) {
  const requests = [];
  const problems = [];
  const url = await serve((_, response, body) => {
    const request = JSON.parse(body);
    requests.push(request);
    const count = (request.prefix?.count ?? 0) + request.messages.length;
    response.end(JSON.stringify({ v: 1, count, hash: "ab", view: "0:ab", changed: false, parts: [{ keep: [0, count] }], warnings: [], budget }));
  });
  const onProblem = (problem) => problems.push(problem);
  return { requests, problems, conversation: new Conversation({ url, token: "t", session: "s", format: "openai", codec, waitMs: 60_000, onProblem, ...options }) };
}

// A provider's error has its message for the worker, whatever an SDK made of it, and at most its beginning and end.
test("errors of a provider", async () => {
  const { requests, conversation } = await converse();
  const sent = await conversation.fit(history);
  const message = "prompt is too long";
  const circular = Object.assign(new Error(message), { code: "too_long" });
  circular.self = circular;
  const cases = [
    [new Error(message), { message }],
    [Object.assign(new Error(message), { code: "too_long" }), { message, code: "too_long" }],
    [circular, message],
    [{ message, tokens: 5n }, message],
    [{ error: { message } }, { error: { message } }],
    [message, message],
  ];
  for (const [error, expected] of cases) {
    assert.equal(await sent.refused(error, 400), undefined); // the same would be sent again
    assert.deepEqual(requests.at(-1).refused.error, expected);
  }
  for (const error of [`${message}${"é".repeat(300_000)}.`, { message, echo: "\u{1F600}".repeat(300_000), end: "." }]) {
    await sent.refused(error, 400);
    const text = JSON.stringify(requests.at(-1).refused.error);
    assert(text.includes(message) && /\."}?$/.test(text));
    assert(Buffer.byteLength(text) < 65 << 10);
  }
});

// A value that is no JSON is a problem to report, and no error of a call. A setting is one of the constructor.
test("values that are no JSON", async () => {
  const { requests, problems, conversation } = await converse();
  const sent = await conversation.fit(history);
  sent.used({ input_tokens: 5n });
  assert.deepEqual(problems.map((p) => p.code), ["client_codec"]);
  assert.equal((await conversation.fit(history)).messages.length, history.length);
  assert.equal(requests[1].usage, undefined);
  assert.equal((await conversation.fit(history, { model: { max_output_tokens: 5n } })).messages, history);
  assert.equal(requests.length, 2);
  await assert.rejects(converse({ policy: { budget: 5n } }), TypeError);
});

// A call that its agent gives up is no sign that a worker is away.
test("aborted", async () => {
  const { problems, conversation } = await converse();
  await conversation.fit(history);
  const longer = [...history, { role: "assistant", content: "z".repeat(600) }, { role: "user", content: "fourth" }];
  const sent = await conversation.fit(longer, { signal: AbortSignal.abort() });
  assert.deepEqual(sent.messages, longer);
  assert.deepEqual(problems, []);
});

// Where no worker answers, a history in a dialect that cannot be cut stays whole.
test("dialects that stay whole", async () => {
  let away = false;
  const fetch = globalThis.fetch;
  globalThis.fetch = (...args) => (away ? Promise.reject(new Error("away")) : fetch(...args));
  const { problems, conversation } = await converse({ format: "gemini" });
  globalThis.fetch = fetch;
  const contents = history.map(({ role, content }) => ({ role: role === "user" ? role : "model", parts: [{ text: content }] }));
  await conversation.fit(contents);
  away = true;
  const longer = [...contents, ...contents.slice(1)];
  const sent = await conversation.fit(longer);
  assert.deepEqual(sent.messages, longer);
  assert.equal(sent.changed, false);
  assert.deepEqual(problems.map((p) => p.code), ["unavailable"]);
});

// A fetch removes a name of dots from a path, and a lone surrogate is no text.
test("names that no path has", async () => {
  for (const session of [".", "..", "\uD800"]) {
    const { requests, problems, conversation } = await converse({ session });
    assert.equal((await conversation.fit(history)).changed, false);
    assert.deepEqual(problems.map((p) => p.code), ["bad_id"]);
    assert.equal(requests.length, 0);
  }
});

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { compactd, withSession } from "../dist/index.js";
import { serve } from "./serve.mjs";

const hi = '{"model":"m", "messages":[{"role":"user","content":"Größe"}]}';

/** A worker that keeps each history, or is away. */
async function newWorker() {
  const worker = { requests: 0, away: false, sessions: [] };
  worker.url = await serve((request, response, body) => {
    worker.requests++;
    worker.sessions.push(decodeURIComponent(request.url.split("/").at(-2)));
    if (worker.away) return response.writeHead(503).end('{"code":"unavailable","message":"m"}');
    const count = JSON.parse(body).messages.length;
    response.end(JSON.stringify({ v: 1, count, hash: "ab", view: "0:ab", changed: false, parts: [{ keep: [0, count] }], warnings: [], budget: {} }));
  });
  return worker;
}

const echo = () => serve((_, response, body) => response.end(body));
const post = { method: "POST", body: hi, headers: { "content-type": "application/json", "content-length": String(Buffer.byteLength(hi)) } };
const settings = (worker) => ({ url: worker.url, token: "t", session: "s", waitMs: 60_000 });

// A body may be a text, bytes, or that of a Request.
test("bodies", async () => {
  const worker = await newWorker();
  const url = `${await echo()}/v1/chat/completions`;
  const fetch = compactd(settings(worker));
  for (const args of [[url, post], [new URL(url), { ...post, body: Buffer.from(hi) }], [new Request(url, post)], [new Request(url, { method: "POST" }), { body: hi }]]) {
    const response = await fetch(...args);
    assert.equal(await response.text(), hi);
    assert.equal(response.url, url);
    assert.equal(response.status, 200);
  }
  assert.equal(worker.requests, 4);
});

// A body of more than 32 MiB, which a worker refuses, passes unchanged.
test("large bodies", async () => {
  const worker = await newWorker();
  const body = JSON.stringify({ messages: [{ role: "user", content: "é".repeat(17 << 20) }] });
  const sent = [];
  const fetch = compactd({ ...settings(worker), fetch: async (_, init) => (sent.push(init.body), new Response()) });
  await fetch("http://127.0.0.1/v1/chat/completions", { method: "POST", body });
  assert.equal(worker.requests, 0);
  assert(sent[0] === body);
});

// After three failures no worker is requested, until the time to try again has come: then one
// request finds out that it is back.
test("circuit", async () => {
  const worker = await newWorker();
  const url = `${await echo()}/v1/chat/completions`;
  worker.away = true;
  let fetch = compactd({ ...settings(worker), retryAfterMs: 60_000 });
  for (let i = 0; i < 20; i++) assert.equal(await (await fetch(url, post)).text(), hi);
  assert.equal(worker.requests, 3);

  fetch = compactd({ ...settings(worker), retryAfterMs: 1 });
  for (let i = 0; i < 3; i++) await fetch(url, post);
  worker.away = false;
  for (const until = Date.now() + 60_000; worker.requests < 8; await fetch(url, post)) assert(Date.now() < until);
});

// withSession names the session of a request, before the settings do.
test("sessions", async () => {
  const worker = await newWorker();
  const url = `${await echo()}/v1/chat/completions`;
  let session = "a";
  const fetch = compactd({ ...settings(worker), session: () => session });
  await fetch(url, post);
  session = undefined;
  await fetch(url, post);
  await Promise.all(["b", "c"].map((name) => withSession(name, () => fetch(url, post))));
  session = Promise.resolve("d");
  await fetch(url, post);
  assert.deepEqual(worker.sessions.sort(), ["a", "b", "c", "d"]);
});

// An error of a callback does not reach the agent, and that of its promise does not end the process.
test("callbacks that throw", async () => {
  const worker = await newWorker();
  worker.away = true;
  for (const onProblem of [() => assert.fail("of the user"), async () => assert.fail("of the user")]) {
    const response = await compactd({ ...settings(worker), onProblem })(`${await echo()}/v1/chat/completions`, post);
    assert.equal(await response.text(), hi);
  }
});

// Whatever a worker answers, the agent's call is made. An answer without an end is not read to it.
test("hostile answers", async () => {
  const keep = { keep: [0, 1] };
  const parts = [1, "a", null, { keep: 1 }, { keep: [0] }, { keep: [0, "1"] }, { keep: [1, 0] }, { edit: "a" }].map((part) => ({ parts: [part] }));
  const answers = [{}, { parts: {} }, { parts: "a" }, ...parts, ...[5, [null], "a"].map((warnings) => ({ parts: [keep], warnings })), { parts: [keep], budget: null }];
  const texts = [...answers.map((a) => JSON.stringify({ changed: true, ...a })), "", "5", "null", "[]", "[".repeat(100_000)];
  let answer;
  const url = await serve((_, response) => answer(response));
  const provider = `${await echo()}/v1/chat/completions`;
  const problemOf = async (waitMs) => {
    const problems = [];
    const response = await compactd({ ...settings({ url }), waitMs, onProblem: (p) => problems.push(p) })(provider, post);
    assert.equal(await response.text(), hi);
    assert.deepEqual(problems.map((p) => p.code), ["unavailable"]);
    return problems[0].message;
  };
  for (const text of texts) {
    answer = (response) => response.end(text);
    assert.match(await problemOf(60_000), /not from a worker/);
  }
  const part = Buffer.alloc(1 << 20, " ");
  answer = function write(response) {
    while (!response.destroyed && response.write(part));
    if (!response.destroyed) response.once("drain", () => write(response));
  };
  assert.match(await problemOf(60_000), /too large/);
  answer = (response) => response.write(" ");
  assert.match(await problemOf(100), /Timeout/);
});

// A stream that its reader cancels ends at the provider.
test("cancel", async () => {
  const worker = await newWorker();
  let ended;
  const url = await serve((_, response) => {
    ended = once(response, "close");
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write('data: {"choices":[{"delta":{"content":"a"}}]}\n\n');
  });
  const response = await compactd(settings(worker))(`${url}/v1/chat/completions`, post);
  for await (const part of response.body) {
    assert.match(Buffer.from(part).toString(), /content/);
    break;
  }
  await ended;
});

// Requests that cannot be read, and messages of no dialect, are matters of the SDK and the provider.
test("requests that are none", async () => {
  const worker = await newWorker();
  const url = await echo();
  const fetch = compactd(settings(worker));
  await assert.rejects(fetch("/v1/chat/completions", post), TypeError);
  const odd = '{"messages":[null,1,{"role":"assistant","tool_calls":{}},{"content":[null,{"type":"text"}]}]}';
  for (const path of ["/v1/chat/completions", "/v1/messages"]) {
    assert.equal(await (await fetch(url + path, { method: "POST", body: odd })).text(), odd);
  }
  const request = new Request(`${url}/v1/chat/completions`, post);
  await request.text();
  await assert.rejects(fetch(request), TypeError);
});

// Messages that a worker has are not sent again, but for those with media that it may have by their hash
// alone; where it needs them, the whole history is.
test("prefix", async () => {
  const requests = [];
  const url = await serve((_, response, body) => {
    const { prefix, messages } = JSON.parse(body);
    requests.push([prefix?.count ?? 0, messages.length]);
    if (requests.length === 3) return response.end('{"v":1,"need":"all"}');
    const count = (prefix?.count ?? 0) + messages.length;
    response.end(JSON.stringify({ v: 1, count, hash: "ab", view: "0:ab", changed: false, parts: [{ keep: [0, count] }], warnings: [], budget: {} }));
  });
  const fetch = compactd(settings({ url }));
  const provider = `${await echo()}/v1/chat/completions`;
  const contents = ["a", "b", "c", "d".repeat(256 << 10), "e"];
  const send = async (n) => {
    const body = JSON.stringify({ messages: contents.slice(0, n).map((content) => ({ role: "user", content })) });
    assert.equal(await (await fetch(provider, { method: "POST", body })).text(), body);
  };
  for (let n = 1; n <= 5; n++) await send(n);
  contents[0] = "edited";
  await send(5);
  assert.deepEqual(requests, [[0, 1], [1, 1], [2, 1], [0, 3], [3, 1], [0, 5], [0, 5]]);
});

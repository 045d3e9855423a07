// Runs the files of clients/conformance: it is the agent, the worker and the provider of an adapter, and
// compares what the adapter sends and returns. ../conformance/README.md describes the files.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { constants, createGzip } from "node:zlib";

const token = "a-token";
const key = "Bearer a-provider-key"; // in each request of an agent that has no other
const actions = ["request", "fit", "refused", "used"];
const during = ["sync", "answer", "provider", "responds", "chunk", "cut"];

/** Reads a file: its options, and its requests with what follows from each. */
export async function read(file) {
  const text = await readFile(file, "utf8");
  const sections = [...text.matchAll(/^-- (\S+) --\n([^]*?)(?=^-- \S+ --\n|$(?![^]))/gm)].map(([, name, text], i) => ({ name, text, number: i + 1 }));
  const script = { options: {}, steps: [] };
  let restart = false;
  for (const s of sections) {
    const step = script.steps.at(-1);
    if (s.name === "options") script.options = JSON.parse(s.text);
    else if (s.name === "restart") restart = true;
    else if (actions.includes(s.name)) {
      script.steps.push({ action: s, restart, events: [], results: {} });
      restart = false;
    } else if (during.includes(s.name)) step.events.push(s);
    else step.results[s.name] = trim(s.text);
  }
  assert(script.steps.length > 0, `${file} has no step`);
  return script;
}

const trim = (text) => text.replace(/\n$/, "");

/** A section with a head: a first line, headers, and a body behind an empty line. */
function message({ text, number }) {
  const at = text.indexOf("\n\n");
  const [first, ...lines] = trim(at < 0 ? text : text.slice(0, at)).split("\n");
  const headers = Object.fromEntries([["Content-Type", "application/json"], ...lines.map((line) => line.split(": "))]);
  return { first, headers, body: at < 0 ? "" : trim(text.slice(at + 2)), status: /^\d+$/.test(first) ? Number(first) : 0, number };
}

/** Plays a file against an adapter; start returns a fetch, or a Conversation for files of the core. */
export async function play(script, start) {
  const state = { failures: [], step: undefined, at: 0, responded: "", problems: [], compacted: [], known: new Map(), abort: undefined, ended: undefined };
  const worker = await listen((request, response, body) => serveWorker(state, request, response, body));
  const provider = await listen((request, response, body) => serveProvider(state, request, response, body));
  const setup = {
    url: worker.url, token, session: script.options.session, model: script.options.model,
    waitMs: script.options.wait_ms ?? 60_000, // so that a slow machine is not a slow worker
    onProblem: ({ code }) => state.problems.push(code),
    onCompacted: (_, { generation }) => state.compacted.push(generation),
  };
  try {
    let adapter = start(setup);
    for (const step of script.steps) {
      if (step.restart) adapter = start(setup);
      Object.assign(state, { step, at: 0, problems: [], compacted: [] });
      if (step.action.name === "request") await request(state, adapter, provider.url);
      else await actCore(state, adapter);
      await state.ended; // a request to the worker that has no answer
      const { events, results, action: { number } } = step;
      assert.deepEqual(state.failures, []);
      assert.equal(state.at, events.length, `section ${events[state.at]?.number}, ${events[state.at]?.name}, has not come`);
      assert.deepEqual(state.problems, results.problems?.split(/\s+/) ?? [], `problems of section ${number}`);
      assert.equal(state.compacted.join(" "), results.compacted ?? "", `compacted of section ${number}`);
    }
  } finally {
    for (const server of [worker, provider]) server.close();
  }
}

async function request(state, fetch, url) {
  const { action, results } = state.step;
  const { first, headers, body, number } = message(action);
  const [method, path] = first.split(" ");
  const abort = new AbortController();
  state.abort = () => abort.abort();
  const expected = results.response && !["same", "error"].includes(results.response) ? message({ text: results.response }) : undefined;
  let response;
  try {
    response = await fetch(url + path, { method, headers: { Authorization: key, ...headers }, body, signal: abort.signal });
  } catch (error) {
    return assert.equal(results.response, "error", `section ${number}: ${error.stack}`);
  }
  assert.notEqual(results.response, "error", `section ${number} succeeds`);
  const got = await textOf(response);
  assert.deepEqual(state.failures, []);
  assert.equal(got, expected?.body ?? state.responded, `response of section ${number}`);
  if (expected) assert.equal(response.status, expected.status);
}

/** The codec of the agent of the core: a provider gets role and content, which is the text. */
export const codec = {
  to: ({ role, text }) => ({ role, content: text }),
  from: ({ role, content }, own) => ({ role, text: content, ...(own?.note && { note: own.note }) }),
};

/** Does what a step of the core is about: fit, refused or used. */
async function actCore(state, conversation) {
  const { action: { name, text, number }, results } = state.step;
  const value = JSON.parse(text);
  let sent;
  if (name === "used") return state.sent.used(value);
  if (name === "fit") {
    state.history = value;
    sent = await conversation.fit(value);
    assert.equal(JSON.stringify(value), JSON.stringify(JSON.parse(text)), `section ${number}: the agent's own messages are others now`);
  } else {
    sent = await state.sent.refused(value.error, value.status);
  }
  assert.deepEqual(state.failures, []);
  const own = (m) => (state.history.includes(m) ? state.history.indexOf(m) : m);
  assert.equal(sent ? JSON.stringify(sent.messages.map(own)) : "none", results.fitted, `fitted of section ${number}`);
  state.sent = sent ?? state.sent;
}

async function textOf(response) {
  const parts = [];
  const text = () => Buffer.concat(parts).toString();
  try {
    for await (const part of response.body ?? []) parts.push(part);
  } catch {
    return text() + "<cut>";
  }
  return text();
}

/** The next event, which must be of a kind. */
function next(state, kind) {
  const event = state.step.events[state.at];
  if (event?.name !== kind) return undefined;
  state.at++;
  return event;
}

/** Takes a request to one side: what is expected of it, and its answer. */
function come(state, response, kind, reply) {
  const want = next(state, kind);
  const answer = want && next(state, reply);
  if (answer) return { want, answer };
  state.failures.push(`section ${state.step.action.number}: a request to the ${kind} was not expected`);
  response.writeHead(501).end();
}

/** Records an assertion that fails in a server, where no test sees it. */
function check(state, assertion) {
  try {
    assertion();
  } catch (error) {
    state.failures.push(error.message);
  }
}

function serveWorker(state, request, response, body) {
  const { want, answer } = come(state, response, "sync", "answer") ?? {};
  if (!want) return;
  check(state, () => {
    const [, tenant, session] = /^\/v1\/sessions\/([^/]+)\/([^/]+)\/sync$/.exec(request.url);
    const got = { ...whole(state, JSON.parse(body)), tenant, session: decodeURIComponent(session) };
    assert.equal(request.headers.authorization, `Bearer ${token}`);
    for (const [member, value] of Object.entries(JSON.parse(want.text))) assert.deepEqual(got[member] ?? null, value, `section ${want.number}: ${member}`);
  });
  const { status, body: text } = message(answer);
  if (["abort", "hang"].includes(trim(answer.text))) state.ended = once(response, "close");
  switch (trim(answer.text)) {
    case "away":
      return request.socket.destroy();
    case "abort":
      return state.abort();
    case "hang":
      return;
  }
  if (!status) state.known.set(JSON.parse(answer.text).hash, whole(state, JSON.parse(body)).messages);
  response.writeHead(status || 200).end(status ? text : trim(answer.text));
}

/** A request with the messages that its prefix stands for. */
function whole({ known }, { prefix, ...request }) {
  return prefix ? { ...request, messages: [...known.get(prefix.hash).slice(0, prefix.count), ...request.messages] } : request;
}

async function serveProvider(state, request, response, body) {
  const { want, answer } = come(state, response, "provider", "responds") ?? {};
  if (!want) return;
  const { first, headers, body: own } = message(state.step.action);
  check(state, () => {
    const expected = trim(want.text);
    assert.equal(body, expected === "same" ? own : expected, `section ${want.number}`);
    assert.equal(request.url, first.split(" ")[1]);
    for (const [name, value] of Object.entries({ Authorization: key, ...headers })) assert.equal(request.headers[name.toLowerCase()], value);
  });
  const { status, headers: sent, body: start } = message(answer);
  const parts = [start];
  for (let chunk; (chunk = next(state, "chunk")); ) parts.push(chunk.text);
  const cut = !!next(state, "cut");
  state.responded = parts.join("") + (cut ? "<cut>" : "");
  response.writeHead(status, sent);
  response.flushHeaders();
  const gzip = sent["Content-Encoding"] === "gzip" && createGzip({ flush: constants.Z_SYNC_FLUSH }); // a fetch decompresses it
  const to = gzip || response;
  if (gzip) gzip.pipe(response);
  for (const part of parts) await new Promise((written) => to.write(part, written));
  if (cut) request.socket.destroy();
  else to.end();
}

async function listen(serve) {
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    await serve(request, response, Buffer.concat(parts).toString());
  });
  await new Promise((listens) => server.listen(0, "127.0.0.1", listens));
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => (server.close(), server.closeAllConnections()) };
}

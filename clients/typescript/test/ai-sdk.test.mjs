import assert from "node:assert/strict";
import { test } from "node:test";
import { compactdMiddleware } from "../dist/ai-sdk.js";
import { serve } from "./serve.mjs";

const user = (text) => ({ role: "user", content: [{ type: "text", text }], providerOptions: { own: text } });
const prompt = [user("a"), user("b"), user("c")];
const tooLong = { message: "prompt is too long: 210000 tokens > 200000 maximum" };

/** A worker that leaves out the first two messages of a refused call, and keeps its requests. */
async function newWorker() {
  const requests = [];
  const url = await serve((_, response, body) => {
    const request = JSON.parse(body);
    requests.push(request);
    const parts = request.refused ? [{ message: { role: "user", content: "[Summary]" }, stands_for: [0, 2] }, { keep: [2, 3] }] : [{ keep: [0, 3] }];
    const view = request.refused ? "1:ab" : "0:ab";
    response.end(JSON.stringify({ v: 1, count: 3, hash: "ab", view, generation: 0, changed: !!request.refused, parts, warnings: [], budget: {} }));
  });
  return { requests, middleware: compactdMiddleware({ url, token: "t", session: "s", waitMs: 60_000 }) };
}

/** A model that streams some parts for its first call and others for the next ones. */
function newModel(first, ...others) {
  const prompts = [];
  const streams = [first, ...others];
  const doStream = async ({ prompt }) => {
    prompts.push(prompt);
    const parts = streams.shift();
    if (!Array.isArray(parts)) throw parts;
    return { stream: ReadableStream.from(parts), request: 1 };
  };
  const doGenerate = async (params) => ({ content: await partsOf(await doStream(params)), usage: { inputTokens: 7 } });
  return { provider: "google.generative-ai", modelId: "gemini-3", doStream, doGenerate, prompts };
}

const partsOf = async ({ stream }) => {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return parts;
};
const answer = [{ type: "stream-start" }, { type: "text-delta", delta: "d" }, { type: "finish", usage: { inputTokens: 5 } }];

// A refusal, before a stream or in it before its first content, is answered by a shorter history. The kept
// messages are the framework's own objects, and the usage belongs to the history that was sent.
for (const [name, refusal] of Object.entries({ before: Object.assign(new Error(), { statusCode: 400, responseBody: JSON.stringify(tooLong) }), within: [{ type: "stream-start" }, { type: "error", error: tooLong }] })) {
  test(`refused ${name} a stream`, async () => {
    const { requests, middleware } = await newWorker();
    const model = newModel(refusal, answer, answer);
    const params = { prompt, maxOutputTokens: 9 };
    assert.deepEqual(await partsOf(await middleware.wrapStream({ model, params })), answer);
    assert.deepEqual(model.prompts, [prompt, [{ role: "user", content: [{ type: "text", text: "[Summary]" }] }, prompt[2]]]);
    assert.equal(model.prompts[1][1], prompt[2]);
    assert.deepEqual(requests[0].model, { provider: "google", name: "gemini-3", max_output_tokens: 9 });
    assert.deepEqual(requests[1].refused.error, tooLong);
    await middleware.wrapStream({ model, params });
    assert.deepEqual(requests[2].usage, { inputTokens: 5, view: "1:ab", count: 3 });
  });
}

// A stream that is replaced by another one ends at its provider.
test("the stream of a refusal", async () => {
  const { middleware } = await newWorker();
  const model = newModel();
  const parts = [{ type: "stream-start" }, { type: "error", error: tooLong }];
  const cancelled = new Promise((cancel) => {
    const refused = new ReadableStream({ pull: (to) => parts.length && to.enqueue(parts.shift()), cancel });
    const streams = [refused, ReadableStream.from(answer)];
    model.doStream = async () => ({ stream: streams.shift() });
  });
  assert.deepEqual(await partsOf(await middleware.wrapStream({ model, params: { prompt } })), answer);
  await cancelled;
});

// The error of a stream before its first content reaches the agent, and does not end the process.
test("a stream that fails", async () => {
  const { middleware } = await newWorker();
  const model = newModel();
  const error = new Error("aborted");
  model.doStream = async () => ({ stream: new ReadableStream({ start: (to) => to.enqueue(answer[0]), pull: (to) => to.error(error) }, { highWaterMark: 0 }) });
  await assert.rejects(partsOf(await middleware.wrapStream({ model, params: { prompt } })), error);
  await new Promise(setImmediate); // until an unhandled rejection is one
});

// Any other error is the framework's to handle.
test("other errors", async () => {
  const { requests, middleware } = await newWorker();
  const error = Object.assign(new Error("slow down"), { statusCode: 429 });
  await assert.rejects(middleware.wrapGenerate({ model: newModel(error), params: { prompt } }), error);
  const late = [{ type: "text-delta", delta: "d" }, { type: "error", error: tooLong }];
  assert.deepEqual(await partsOf(await middleware.wrapStream({ model: newModel(late), params: { prompt } })), late);
  assert.equal(requests.length, 2);
});

// Bytes of a file are base64 for a worker, those of a Buffer too; the model gets its own object.
test("bytes", async () => {
  const { requests, middleware } = await newWorker();
  const model = newModel(answer);
  const bytes = [Buffer.from("abc"), new Uint8Array([97, 98, 99]), new URL("https://example.com/a.png")];
  const prompt = bytes.map((data) => ({ role: "user", content: [{ type: "file", mediaType: "image/png", data }] }));
  await middleware.wrapGenerate({ model, params: { prompt } });
  assert.deepEqual(requests[0].messages.map((m) => m.content[0].data), ["YWJj", "YWJj", "https://example.com/a.png"]);
  assert.equal(model.prompts[0][0].content[0].data, bytes[0]);
});

// The types of AI SDK 6 take no middleware without a version.
test("version", () => {
  assert.equal(compactdMiddleware({ url: "", token: "" }).specificationVersion, "v3");
});

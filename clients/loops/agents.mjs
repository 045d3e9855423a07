// Three agents on the SDKs of providers. Each holds its history in the objects of its SDK, and
// fits it into the window before each call.
//
//   node agents.mjs chat|responses|anthropic
//
// Environment: SYNC, TOKEN, MODEL (as in a turn), PROVIDER (its base URL), STEPS. It prints a line
// of JSON: the calls, those that were refused, and the objects that are no longer what they were.

import OpenAI from "openai";
import Anthropic from "@anthropic-ai/sdk";
import { Conversation } from "./fit.mjs";

const { SYNC, TOKEN, PROVIDER, STEPS = "60" } = process.env;
const model = JSON.parse(process.env.MODEL);
const result = (step) => `line ${step} of it. `.repeat(200);
const openai = () => new OpenAI({ apiKey: "none", baseURL: PROVIDER, maxRetries: 0 });

const agents = {
  chat: {
    format: "openai",
    async step(history, fit, step) {
      const answer = await openai().chat.completions.create({ model: model.name, messages: await fit() });
      const { message } = answer.choices[0];
      history.push(message, ...message.tool_calls.map((c) => ({ role: "tool", tool_call_id: c.id, content: result(step) })));
      return answer.usage;
    },
  },
  responses: {
    format: "openai-responses",
    async step(history, fit, step) {
      const answer = await openai().responses.create({ model: model.name, input: await fit(), store: false, include: ["reasoning.encrypted_content"] });
      const calls = answer.output.filter((item) => item.type === "function_call");
      history.push(...answer.output, ...calls.map((c) => ({ type: "function_call_output", call_id: c.call_id, output: result(step) })));
      return answer.usage;
    },
  },
  anthropic: {
    format: "anthropic",
    async step(history, fit, step) {
      const anthropic = new Anthropic({ apiKey: "none", baseURL: PROVIDER, maxRetries: 0 });
      const thinking = { type: "enabled", budget_tokens: 1024 };
      const answer = await anthropic.messages.create({ model: model.name, max_tokens: 2048, thinking, messages: await fit() });
      const calls = answer.content.filter((block) => block.type === "tool_use");
      history.push({ role: answer.role, content: answer.content });
      history.push({ role: "user", content: calls.map((c) => ({ type: "tool_result", tool_use_id: c.id, content: result(step) })) });
      return answer.usage;
    },
  },
};

const agent = agents[process.argv[2]];
const conversation = new Conversation(SYNC, TOKEN, { model, format: agent.format, wait_ms: 8000 });
const history = [{ role: "user", content: "Find out why the client never gives up, and read every file." }];
const before = []; // each object as it was when it was first sent
const report = { calls: 0, refused: [], own: 0, made: 0, changed: 0 };
let usage;

for (let step = 0; step < Number(STEPS); step++) {
  const counted = (sent) => {
    const own = sent.filter((m) => history.includes(m)).length;
    report.own += own;
    report.made += sent.length - own;
    return sent;
  };
  for (const m of history.slice(before.length)) before.push(JSON.stringify(m));
  try {
    report.calls++;
    usage = await agent.step(history, async () => counted(await conversation.fit(history, usage)), step);
  } catch (error) {
    report.refused.push(String(error));
    const shorter = await conversation.refused(history, error); // a refusal for length is answered by a history that fits
    if (!shorter) break;
    usage = await agent.step(history, () => counted(shorter), step);
  }
}
report.changed = before.filter((text, i) => JSON.stringify(history[i]) !== text).length;
console.log(JSON.stringify(report));

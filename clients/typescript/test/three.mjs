// An agent of twenty questions, which sends its whole history with each call. The package test runs
// it in an empty project, against a provider that refuses what exceeds its window.
// doc:begin three
import OpenAI from "openai";
import { compactd } from "compactd";

const fetch = compactd({ url: process.env.WORKER, token: process.env.TOKEN, session: "chat-42" });
const openai = new OpenAI({ fetch });
// doc:end three

const messages = [];
for (let i = 0; i < 20; i++) {
  messages.push({ role: "user", content: `Question ${i} ${"and more ".repeat(500)}` });
  const answer = await openai.chat.completions.create({ model: process.env.MODEL, messages, max_tokens: 1024 });
  const { message } = answer.choices[0];
  messages.push(message, ...message.tool_calls.map((c) => ({ role: "tool", tool_call_id: c.id, content: "Done." })));
}
console.log(messages.length);

// Looks up a session with the official MCP client, and prints one line: what it found, or the
// status that it was refused with.
//
//   ENDPOINT=http://127.0.0.1:8224/mcp/default/chat-42 TOKEN=… node client.mjs
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const client = new Client({ name: "compactd-test", version: "1.0.0" });
const transport = new StreamableHTTPClientTransport(new URL(process.env.ENDPOINT), {
  requestInit: { headers: { Authorization: `Bearer ${process.env.TOKEN}` } },
});
try {
  await client.connect(transport);
} catch (e) {
  console.log(JSON.stringify({ refused: e.code ?? e.message }));
  process.exit(0);
}
const calls = {
  recall: { turn: 1, index: 0 },
  search_history: { text: "word 2", limit: 3 },
  what_was_dropped: { since_generation: 0 },
  context_stats: {},
  files: {},
  compact_now: { focus: "the words" },
};
const out = { server: client.getServerVersion().name, tools: {}, resources: {}, templates: [] };
for (const tool of (await client.listTools()).tools) {
  const result = await client.callTool({ name: tool.name, arguments: calls[tool.name] });
  out.tools[tool.name] = result.isError ? `ERROR ${result.content[0].text}` : result.content[0].text;
}
const wrong = await client.callTool({ name: "recall", arguments: { turn: 999 } });
out.wrong = wrong.isError ? wrong.content[0].text : "no error";
for (const resource of (await client.listResources()).resources) {
  out.resources[resource.name] = (await client.readResource({ uri: resource.uri })).contents[0].text;
}
for (const template of (await client.listResourceTemplates()).resourceTemplates) {
  out.templates.push(template.uriTemplate);
}
const whole = await client.readResource({ uri: "compactd://session/generation/0" });
out.messages = JSON.parse(whole.contents[0].text).messages.length;
await client.close();
console.log(JSON.stringify(out));

// Agents on SDKs and frameworks. Each makes steps until its model calls no tool, and holds its history in
// objects of its own. All that it has of compactd is the fetch that it gets, or the middleware.

const task = "Find out why the client never gives up, and read every file.";
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const parameters = { type: "object", properties: { path: { type: "string" } }, required: ["path"], additionalProperties: false };

/** The result of the tool: most are long. */
const readFile = ({ path }) => `line of ${path}. `.repeat(/^f\d*[05]/.test(path) ? 20 : 200);

async function openai({ url, fetch, retries }) {
  const { default: OpenAI } = await import("openai");
  return new OpenAI({ apiKey: "none", baseURL: `${url}/v1`, maxRetries: retries, fetch });
}

async function anthropic({ url, fetch, retries }) {
  const { default: Anthropic } = await import("@anthropic-ai/sdk");
  return new Anthropic({ apiKey: "none", baseURL: url, maxRetries: retries, fetch });
}

async function chat(env) {
  const client = await openai(env);
  const image = { type: "image_url", image_url: { url: `data:image/png;base64,${pixel}` } };
  const messages = [{ role: "user", content: [{ type: "text", text: task }, image] }];
  for (;;) {
    const request = { model: env.model, messages };
    const message = env.stream
      ? await client.chat.completions.stream({ ...request, stream_options: { include_usage: true } }).finalMessage()
      : (await client.chat.completions.create(request)).choices[0].message;
    messages.push(message);
    if (!message.tool_calls?.length) return;
    for (const c of message.tool_calls) messages.push({ role: "tool", tool_call_id: c.id, content: readFile(JSON.parse(c.function.arguments)) });
  }
}

async function responses(env) {
  const client = await openai(env);
  const image = { type: "input_image", image_url: `data:image/png;base64,${pixel}`, detail: "auto" };
  const input = [{ role: "user", content: [{ type: "input_text", text: task }, image] }];
  for (;;) {
    const request = { model: env.model, input, store: false, include: ["reasoning.encrypted_content"] };
    const { output } = env.stream ? await client.responses.stream(request).finalResponse() : await client.responses.create(request);
    input.push(...output);
    const calls = output.filter((item) => item.type === "function_call");
    if (calls.length === 0) return;
    for (const c of calls) input.push({ type: "function_call_output", call_id: c.call_id, output: readFile(JSON.parse(c.arguments)) });
  }
}

async function messages(env) {
  const client = await anthropic(env);
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: pixel } };
  const messages = [{ role: "user", content: [{ type: "text", text: task }, image] }];
  for (;;) {
    const request = { model: env.model, max_tokens: 1024, thinking: { type: "adaptive" }, messages };
    const { role, content } = env.stream ? await client.messages.stream(request).finalMessage() : await client.messages.create(request);
    messages.push({ role, content });
    const calls = content.filter((block) => block.type === "tool_use");
    if (calls.length === 0) return;
    messages.push({ role: "user", content: calls.map((c) => ({ type: "tool_result", tool_use_id: c.id, content: readFile(c.input) })) });
  }
}

/** An agent on a major version of the AI SDK, with a model of a provider. */
const aiSDK = (major, wire) => async (env) => {
  const ai = await import(`ai${major}`);
  const isClaude = wire === "messages";
  const module = await import(`ai${major}-${isClaude ? "anthropic" : "openai"}`);
  const provider = isClaude
    ? module.createAnthropic({ apiKey: "none", baseURL: `${env.url}/v1`, fetch: env.fetch })
    : module.createOpenAI({ apiKey: "none", baseURL: `${env.url}/v1`, fetch: env.fetch });
  const model = isClaude ? provider(env.model) : provider[wire](env.model);
  const request = {
    model: env.middleware ? ai.wrapLanguageModel({ model, middleware: env.middleware }) : model,
    messages: [{ role: "user", content: [{ type: "text", text: task }, { type: "image", image: Buffer.from(pixel, "base64") }] }],
    tools: { read_file: ai.tool({ description: "Reads a file.", inputSchema: ai.jsonSchema(parameters), execute: readFile }) },
    stopWhen: ai.stepCountIs(1000),
    maxRetries: env.retries,
    providerOptions: { openai: { store: false, include: ["reasoning.encrypted_content"] } },
    onError() {}, // it is thrown below
  };
  const result = env.stream ? ai.streamText(request) : await ai.generateText(request);
  await result.steps;
};

const agentsSDK = (wire) => async (env) => {
  const { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, run, setTracingDisabled, tool } = await import("@openai/agents");
  setTracingDisabled(true);
  const Model = wire === "chat" ? OpenAIChatCompletionsModel : OpenAIResponsesModel;
  const agent = new Agent({
    name: "reader",
    instructions: "Be brief.",
    model: new Model(await openai(env), env.model),
    modelSettings: wire === "chat" ? {} : { store: false, providerData: { include: ["reasoning.encrypted_content"] } },
    tools: [tool({ name: "read_file", description: "Reads a file.", parameters, strict: true, execute: readFile })],
  });
  const result = await run(agent, task, { maxTurns: 1000, stream: env.stream });
  if (env.stream) await result.completed;
};

const langchain = (wire) => async (env) => {
  const { createAgent, tool } = await import("langchain");
  const { ChatOpenAI } = await import("@langchain/openai");
  const { ChatAnthropic } = await import("@langchain/anthropic");
  const settings = { model: env.model, apiKey: "none", maxRetries: env.retries };
  const model = wire === "messages"
    ? new ChatAnthropic({ ...settings, maxTokens: 1024, anthropicApiUrl: env.url, clientOptions: { fetch: env.fetch } })
    : new ChatOpenAI({ ...settings, useResponsesApi: wire === "responses", zdrEnabled: true, configuration: { baseURL: `${env.url}/v1`, fetch: env.fetch } });
  const agent = createAgent({ model, tools: [tool(readFile, { name: "read_file", description: "Reads a file.", schema: parameters })] });
  const input = { messages: [{ role: "user", content: task }] };
  if (!env.stream) return agent.invoke(input, { recursionLimit: 1000 });
  for await (const _ of await agent.stream(input, { recursionLimit: 1000, streamMode: "messages" }));
};

// pi takes no fetch: the global one is replaced.
async function pi(env) {
  const { Agent } = await import("@earendil-works/pi-agent-core");
  const model = {
    id: env.model, name: env.model, api: "openai-completions", provider: "openai", baseUrl: `${env.url}/v1`,
    reasoning: false, input: ["text"], cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, contextWindow: 16384, maxTokens: 1024,
  };
  const execute = async (_, args) => ({ content: [{ type: "text", text: readFile(args) }], details: {} });
  const tools = [{ name: "read_file", label: "Read", description: "Reads a file.", parameters, execute }];
  const agent = new Agent({ initialState: { systemPrompt: "Be brief.", model, tools }, getApiKey: () => "none" });
  globalThis.fetch = env.fetch;
  await agent.prompt(task);
  if (agent.state.errorMessage) throw new Error(agent.state.errorMessage);
}

/** The agents, with the package that each is on. */
export const agents = {
  "openai/chat": { on: "openai", wire: "chat", run: chat },
  "openai/responses": { on: "openai", wire: "responses", run: responses },
  "anthropic-sdk": { on: "@anthropic-ai/sdk", wire: "messages", run: messages },
  "openai-agents/chat": { on: "@openai/agents", wire: "chat", run: agentsSDK("chat") },
  "openai-agents/responses": { on: "@openai/agents", wire: "responses", run: agentsSDK("responses") },
  "langchain/chat": { on: "langchain", wire: "chat", run: langchain("chat") },
  "langchain/responses": { on: "langchain", wire: "responses", run: langchain("responses") },
  "langchain/messages": { on: "langchain", wire: "messages", run: langchain("messages") },
  pi: { on: "@earendil-works/pi-agent-core", wire: "chat", run: pi },
};
for (const major of [5, 6, 7]) {
  for (const wire of ["chat", "responses", "messages"]) agents[`ai-${major}/${wire}`] = { on: `ai${major}`, wire, run: aiSDK(major, wire) };
  for (const wire of ["chat", "messages"]) agents[`ai-${major}/${wire}/middleware`] = { on: `ai${major}`, wire, run: aiSDK(major, wire), middleware: true };
}

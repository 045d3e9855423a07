import type { Attempt } from "./core.js";
import type { Format, History, Model } from "./history.js";
import { elements, parse, spans } from "./json.js";

/** A kind of request with a history. */
interface API {
  path: string; // the end of it
  format: Format;
  provider: string;
  messages: string; // members of the body
  system?: string; // absent where the messages contain it
  output: string[]; // members with the most tokens of an answer
}

const apis: API[] = [
  { path: "/chat/completions", format: "openai", provider: "openai", messages: "messages", output: ["max_completion_tokens", "max_tokens"] },
  { path: "/responses", format: "openai-responses", provider: "openai", messages: "input", system: "instructions", output: ["max_output_tokens"] },
  { path: "/messages", format: "anthropic", provider: "anthropic", messages: "messages", system: "system", output: ["max_tokens"] },
];

const mostBytes = 32 << 20; // of a request to a worker

/** A request of a model, with its history. */
export interface Call extends Omit<History, "session"> {
  signal?: AbortSignal | null;
  /** Sends the request with some messages. */
  send(attempt: Attempt): Promise<Response>;
}

/** Reads a request; undefined where its body must not change. */
export async function read(base: typeof fetch, input: string | URL | Request, init: RequestInit | undefined, set?: Model): Promise<Call | undefined> {
  const request = input instanceof Request ? input : undefined;
  const { pathname } = new URL(request?.url ?? String(input));
  const headers = new Headers(init?.headers ?? request?.headers);
  const api = apis.find((a) => pathname.endsWith(a.path));
  const isSigned = headers.get("authorization")?.startsWith("AWS4-HMAC") || headers.has("content-encoding");
  if (!api || isSigned || (init?.method ?? request?.method)?.toUpperCase() !== "POST") return undefined;
  const body = await textOf(init?.body ?? request);
  const parsed = body === undefined ? undefined : parse(body);
  const found = isObject(parsed) ? spans(body!) : undefined;
  if (!found || parsed.previous_response_id || parsed.conversation || !parsed[api.messages]?.length) return undefined;
  if (parsed[api.messages].at?.(-1)?.type === "compaction_trigger") return undefined; // the provider compacts what is in front of it
  const text = (name = "") => (parsed[name] == null ? undefined : body!.slice(...found.get(name)!));
  const array = text(api.messages)!;
  if (!array.startsWith("[")) return undefined;
  const [before, after] = [body!.slice(0, found.get(api.messages)![0]), body!.slice(found.get(api.messages)![1])];
  return {
    format: api.format,
    model: modelOf(api, parsed, pathname, set),
    system: text(api.system),
    tools: text("tools"),
    messages: elements(array),
    size: Buffer.byteLength(before) + Buffer.byteLength(after),
    signal: init?.signal ?? request?.signal,
    send({ pieces, changed }) {
      if (!changed) return base(input, request ? { ...init, body } : init);
      headers.delete("content-length"); // some SDKs write that of their own body
      return base(input, { ...init, headers, body: `${before}[${pieces.map((p) => p.text).join()}]${after}` });
    },
  };
}

/** The model of a call, where the settings name no other. Azure has it in the path. */
function modelOf(api: API, body: any, path: string, set?: Model): Model {
  const deployment = /\/deployments\/([^/]+)/.exec(path)?.[1];
  const name = typeof body.model === "string" && body.model ? body.model : deployment;
  const most = set?.context_window || Infinity; // a larger number is no reserve
  const max_output_tokens = api.output.map((member) => body[member]).find((n) => Number.isInteger(n) && n > 0 && n < most);
  return { provider: api.provider, name, max_output_tokens, ...set };
}

/** A body as text; undefined where it is none, or too large for a worker. */
async function textOf(body: unknown): Promise<string | undefined> {
  if (body instanceof Request) body = await body.clone().arrayBuffer();
  if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) {
    try {
      body = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body as ArrayBuffer);
    } catch {
      return undefined;
    }
  }
  return typeof body === "string" && Buffer.byteLength(body) <= mostBytes ? body : undefined;
}

const isObject = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value);

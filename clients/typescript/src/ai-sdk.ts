import { Conversation } from "./conversation.js";
import type { Options } from "./core.js";
import { refuses } from "./response.js";

/** Messages of a prompt have parts; those that compactd made may have a text. */
const codec = {
  to: withText,
  from({ content, ...message }: any, own?: any) {
    const isText = typeof content === "string" && message.role !== "system";
    return { ...own, ...message, content: isText ? [{ type: "text", text: content }] : content };
  },
};

/** A value of JSON with its bytes as base64; a Buffer would be a list of numbers. */
function withText(value: any): any {
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (Array.isArray(value)) return value.map(withText);
  if (typeof value !== "object" || value === null || typeof value.toJSON === "function") return value;
  return Object.fromEntries(Object.entries(value).map(([name, v]) => [name, withText(v)]));
}

type Call = (model: any, params: any, used: (usage: object) => void) => Promise<any>;

/** A middleware for any model of the AI SDK 5 to 7, also of providers that the fetch does not read. */
export function compactdMiddleware(options: Options) {
  const conversation = new Conversation<any>({ ...options, format: "ai-sdk", codec });
  const wrap = (call: Call) => async ({ model, params }: any) => {
    const { maxOutputTokens: max_output_tokens, abortSignal: signal, tools } = params;
    const of = { provider: model.provider.split(".")[0], name: model.modelId, max_output_tokens };
    let sent = await conversation.fit(params.prompt, { model: of, tools, signal });
    const make = () => call(model, { ...params, prompt: sent.messages }, (usage) => sent.used(usage)).catch(failed);
    let made = await make();
    const again = made.refusal && (await sent.refused(made.refusal.responseBody ?? made.refusal, made.refusal.statusCode));
    if (again) {
      made.result?.stream.cancel().catch(ignore);
      sent = again;
      made = await make();
    }
    if (made.error) throw made.error;
    return made.result;
  };
  return {
    specificationVersion: "v3" as any, // which the types of 6 demand, and no version reads
    wrapGenerate: wrap(async (model, params, used) => {
      const result = await model.doGenerate(params);
      used(result.usage);
      return { result };
    }),
    wrapStream: wrap(async (model, params, used) => opened(await model.doStream(params), used)),
  };
}

const ignore = () => {};
const failed = (error: any) => ({ error, refusal: refuses(error?.statusCode, () => String(error.responseBody ?? error.message)) && error });

/** Reads a stream up to its first content, in the place of which the provider may refuse the call. */
async function opened(result: any, used: (usage: object) => void) {
  const seen = new TransformStream({ transform: (part, to) => (part.type === "finish" && used(part.usage), to.enqueue(part)) });
  const [ahead, stream] = result.stream.tee();
  const reader = ahead.getReader();
  const next = async () => (await reader.read().catch(() => ({}))).value;
  let part = await next();
  while (["stream-start", "response-metadata", "raw"].includes(part?.type)) part = await next();
  reader.cancel().catch(ignore); // the other one goes on, and has the error of the stream
  return { result: { ...result, stream: stream.pipeThrough(seen) }, refusal: part?.type === "error" && part.error };
}

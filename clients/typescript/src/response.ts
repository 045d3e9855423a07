import { parse } from "./json.js";
import type { Refusal } from "./core.js";

// Bounds of what is read before the caller reads, and of one line of a stream.
const mostHeld = 64 << 10;
const mostJSON = 4 << 20;
const mostLine = 1 << 20;

const refusals = [400, 413, 422];
/** Words of refusals for length under statuses of others, which go to no worker. */
const tooLong = new Map([[429, "Extra usage is required for "], [500, "exceeds the available context size"]]);

/** Whether a response with this status and text may be a refusal for length. */
export const refuses = (status: unknown, text: () => string) =>
  refusals.includes(status as number) || (tooLong.has(status as number) && text().includes(tooLong.get(status as number)!));

/** A response whose beginning was read. */
export interface Inspected {
  response: Response; // the same bytes
  refusal?: Refusal;
  cancel(): Promise<void>;
}

/**
 * Reads the beginning of a response: a refusal, the whole of an answer that is no stream, or a
 * stream up to its first content. The usage is read while the bytes pass.
 */
export async function inspect(r: Response, onUsage: (usage: object) => unknown): Promise<Inspected> {
  const isError = refusals.includes(r.status) || tooLong.has(r.status);
  if ((!isError && r.status !== 200) || typeof r.body?.getReader !== "function") {
    const refusal = !r.body && refuses(r.status, () => "") ? { status: r.status, text: "" } : undefined;
    return { response: r, refusal, cancel: async () => {} };
  }
  const isStream = !isError && !!r.headers.get("content-type")?.startsWith("text/event-stream");
  const events = isStream ? new Events(onUsage) : undefined;
  const body = new Body(r.body, (chunk) => events?.read(chunk));
  await body.hold(isError || isStream ? mostHeld : mostJSON, () => !!events?.content);
  if (!isError && !events) addUsage({}, parse(body.text()), onUsage);
  let refusal: Refusal | undefined;
  if (refuses(r.status, () => body.text())) refusal = { status: r.status, text: body.text() };
  else if (events?.refusal) refusal = { status: 0, text: events.refusal };
  const response = new Response(body.stream(), r);
  Object.defineProperty(response, "url", { value: r.url }); // which no constructor takes
  return { response, refusal, cancel: () => body.cancel() };
}

/** The bytes of a response, of which some are read ahead. */
class Body {
  readonly #reader;
  readonly #held: Uint8Array[] = [];
  #ended = false;
  #error: unknown;

  constructor(from: ReadableStream<Uint8Array>, readonly seen: (chunk: Uint8Array) => void) {
    this.#reader = from.getReader();
  }

  /** Reads until something is found, the end, or about most bytes. */
  async hold(most: number, found: () => boolean) {
    for (let size = 0; size < most && !found(); ) {
      const chunk = await this.#read();
      if (!chunk) return;
      this.#held.push(chunk);
      size += chunk.length;
    }
  }

  /** The bytes that are held, as text. */
  text(): string {
    return Buffer.concat(this.#held).toString();
  }

  /** All bytes, as they come. */
  stream(): ReadableStream<Uint8Array> {
    const pull = async (to: ReadableStreamDefaultController<Uint8Array>) => {
      const chunk = this.#held.shift() ?? (await this.#read());
      if (chunk) to.enqueue(chunk);
      else if (this.#error) to.error(this.#error);
      else to.close();
    };
    return new ReadableStream({ pull, cancel: (reason) => this.#reader.cancel(reason) }, { highWaterMark: 0 });
  }

  async cancel() {
    await this.#reader.cancel().catch(() => {}); // the connection is gone
  }

  async #read(): Promise<Uint8Array | undefined> {
    if (this.#ended) return undefined;
    try {
      const { value } = await this.#reader.read();
      if (value) this.seen(value);
      else this.#ended = true;
      return value;
    } catch (error) {
      this.#ended = true;
      this.#error = error;
      return undefined;
    }
  }
}

/** The events of a stream. */
class Events {
  content = false; // or a refusal has come
  refusal?: string;
  readonly #counts = {};
  readonly #decoder = new TextDecoder();
  #line = "";

  constructor(readonly onUsage: (usage: object) => unknown) {}

  read(chunk: Uint8Array) {
    const lines = this.#decoder.decode(chunk, { stream: true }).split("\n");
    lines.forEach((part, i) => {
      if (i > 0) this.#line = "";
      this.#line += part.slice(0, mostLine - this.#line.length);
      if (i < lines.length - 1 && this.#line.startsWith("data:")) this.#event(this.#line.slice(5).trim());
    });
  }

  #event(data: string) {
    const hasUsage = data.includes('"usage"');
    if (this.content && !hasUsage) return;
    const event = parse(data);
    if (!this.content) {
      if (isError(event)) this.refusal = data;
      this.content = !!this.refusal || !isPreamble(event);
    }
    if (hasUsage) addUsage(this.#counts, event, this.onUsage);
  }
}

/** Adds the usage in an answer or an event to that of earlier events. */
function addUsage(counts: object, event: any, onUsage: (usage: object) => unknown) {
  const usage = (event?.response ?? event?.message ?? event)?.usage;
  if (typeof usage === "object" && usage) onUsage(Object.assign(counts, usage));
}

function isError(event: any): boolean {
  return event?.type === "error" || event?.type === "response.failed" || (event?.type === undefined && !!event?.error);
}

/** Whether an event comes before content: an error may still follow it. */
function isPreamble(event: any): boolean {
  const kind: unknown = event?.type;
  if (kind === undefined) return Array.isArray(event?.choices) && !event.choices.some(hasContent);
  return ["response.created", "response.in_progress", "response.queued", "message_start", "ping"].includes(kind as string);
}

/** Whether a choice of chat completions has more than the role. */
function hasContent(choice: any): boolean {
  const { role: _, ...more } = choice?.delta ?? {};
  return choice?.finish_reason != null || Object.values(more).some((value) => value != null && value !== "");
}

import { createHash } from "node:crypto";
import type { SyncRequest } from "./api.js";

export type Format = NonNullable<SyncRequest["format"]>;
export type Model = NonNullable<SyncRequest["model"]>;

/** The history in a request to a model, as texts of JSON. */
export interface History {
  session: string;
  format: Format;
  model: Model;
  system?: string;
  tools?: string;
  messages: string[];
  size: number; // bytes of the request beside its messages
}

/** A message to send: its text, and the position of the caller's own that it is or was made of. */
export interface Piece {
  text: string;
  own?: number;
}

/** The caller's own messages from a position on. */
export function kept(messages: string[], from = 0, to = messages.length): Piece[] {
  return messages.slice(from, to).map((text, i) => ({ text, own: from + i }));
}

/** Digests of the first n messages, for some n in ascending order. */
export function digests(h: History, counts: Iterable<number>): Map<number, string> {
  const found = new Map<number, string>();
  const hash = createHash("sha256").update(h.format);
  let at = 0;
  for (const n of counts) {
    for (; at < n; at++) hash.update(contentOf(h.messages[at]!)).update(",");
    found.set(n, hash.copy().digest("base64"));
  }
  return found;
}

/** Leaves out marks for a cache, and the options of the AI SDK that had nothing else. */
function withoutMarks(name: string, value: any): unknown {
  if (name === "cache_control" || name === "cacheControl") return undefined;
  const isEmpty = name === "providerOptions" && Object.values(value ?? {}).every((v) => JSON.stringify(v) === "{}");
  return isEmpty ? undefined : value;
}

/** A message without marks for a cache, which agents move with each call; one block of text is its text. */
function contentOf(message: string): string {
  if (!/cache_?control|"content":\[\{"type":"text"/i.test(message)) return message;
  const { content, ...rest } = JSON.parse(message, withoutMarks);
  const [block, ...others] = Array.isArray(content) ? content : [];
  const isText = block?.type === "text" && others.length === 0 && Object.keys(block).length === 2;
  return JSON.stringify({ ...rest, content: isText ? block.text : content });
}

/** A digest of model, instructions and tools. */
export function setupOf(h: History): string {
  return createHash("sha256").update([h.model.name, h.system, h.tools].join("\0")).digest("base64");
}

const mediumWeight = 4096; // of an image, a sound or a document, in bytes: about a thousand tokens
const media = /"(?:data:[^",\\]*,)?([\w+/=-]{4097,})"/g; // base64

/** How many bytes of a message count for the window: those of a medium are no measure. */
export function weightOf(text: string): number {
  const size = Buffer.byteLength(text);
  if (size <= mediumWeight) return size;
  return [...text.matchAll(media)].reduce((n, [, data]) => n - data!.length + mediumWeight, size);
}

/** The weight of a request with some messages. */
export function sizeOf(h: History, pieces: Piece[]): number {
  return pieces.reduce((n, { text }) => n + weightOf(text) + 1, h.size);
}

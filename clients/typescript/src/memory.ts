import type { SyncResponse } from "./api.js";
import { digests, kept, setupOf, type History, type Piece } from "./history.js";

export const remembered = 256; // conversations

/** The last answer of a conversation. */
export interface Answer {
  session: string;
  format: string;
  count: number; // messages that it is about
  digest: string; // of them
  setup: string;
  sync: SyncResponse;
  made: (string | undefined)[]; // the texts of its messages, by part
  bytes: number; // of the request that was sent
  usage?: object; // of its call, until it is sent
}

/** The answers of conversations, the newest at the end. */
export class Memory {
  #answers: Answer[] = [];

  /** The answer about the longest history that this one begins with, and the digest of this one. */
  find(h: History): { last?: Answer; digest: string } {
    const { length } = h.messages;
    const own = this.#answers.filter((a) => a.session === h.session && a.format === h.format && a.count <= length);
    own.sort((a, b) => a.count - b.count); // of equal ones the newest stays last
    const known = digests(h, [...own.map((a) => a.count), length]);
    return { last: own.findLast((a) => known.get(a.count) === a.digest), digest: known.get(length)! };
  }

  /** Remembers an answer about a history with some digest in the place of the one before it. */
  put(h: History, digest: string, last: Answer | undefined, sync: SyncResponse, made: Answer["made"]): Answer {
    const answer = { session: h.session, format: h.format, count: h.messages.length, digest, setup: setupOf(h), sync, made, bytes: 0 };
    this.#answers = [...this.#answers.filter((other) => other !== last), answer].slice(-remembered);
    return answer;
  }
}

/** Returns the messages to send of a history that begins with the one of an answer. */
export function extend(a: Answer, messages: string[]): Piece[] {
  const sent = (a.sync.parts ?? []).flatMap((p, i): Piece[] => {
    const text = a.made[i];
    if (p.keep) return kept(messages, ...p.keep);
    return text === undefined ? [] : [{ text, own: p.edit ?? undefined }];
  });
  return [...sent, ...kept(messages, a.count)];
}

/** How many bytes of a request fit into the window; undefined where that is not known. A tenth is left free, because it is an estimate. */
export function roomOf(a: Answer): number | undefined {
  const { available_input_tokens: available, estimated_input_tokens: estimated } = a.sync.budget;
  return estimated > 0 ? Math.floor(((a.bytes * available) / estimated) * 0.9) : undefined;
}

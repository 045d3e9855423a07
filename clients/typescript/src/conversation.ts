import type { SyncResponse } from "./api.js";
import { Core, type Attempt, type Options } from "./core.js";
import type { Format, History, Model } from "./history.js";
import { sessionOf } from "./session.js";

/** Converts between the messages of an agent and those of its provider. */
export interface Codec<M> {
  /** A message as the provider gets it. */
  to(message: M): unknown;
  /** A message that compactd made. Own is the agent's message that it is an edit of: what the provider does not get should be copied from it. */
  from(message: any, own?: M): M;
}

/** Settings of a call beside its history. */
export interface CallOptions {
  model?: Model;
  system?: string | unknown[];
  tools?: unknown[];
  signal?: AbortSignal;
}

/**
 * Keeps a history of messages of any type inside a window, for agents and frameworks that hold
 * objects with more in them than the provider gets. Messages that are kept are the agent's own
 * objects. It has no state of a history, and no error of compactd reaches the agent.
 *
 *     let sent = await conversation.fit(history);
 *     let answer = await call(sent.messages).catch(async (error) => {
 *       sent = (await sent.refused(error.body, error.status)) ?? fail(error);
 *       return call(sent.messages);
 *     });
 *     sent.used(answer.usage);
 */
export class Conversation<M> {
  readonly #core: Core;

  constructor(readonly options: Options & { format: Format; codec: Codec<M> }) {
    this.#core = new Core(options);
  }

  /** Returns the messages of a whole history, with its new prompt, to send. The agent keeps its history. */
  async fit(history: M[], call: CallOptions = {}): Promise<Fitted<M>> {
    const session = await sessionOf(this.options);
    const h = session && history.length > 0 && this.#read(session, history, call);
    if (!h) return { messages: history, changed: false, refused: async () => undefined, used() {} };
    return this.#fitted(h, history, call, await this.#core.fit(h, call.signal), true);
  }

  #fitted(h: History, own: M[], { signal }: CallOptions, attempt: Attempt, first: boolean): Fitted<M> {
    const { messages, changed } = this.#write(h, own, attempt);
    const { answer } = attempt;
    return {
      messages,
      changed,
      budget: answer?.sync.budget,
      refused: async (error, status = 0) => {
        if (!first || error == null) return undefined;
        const again = await this.#core.shorter(h, attempt, { status, text: textOf(error) }, signal);
        return again && this.#fitted(h, own, { signal }, again, false);
      },
      used: (usage) => {
        try {
          if (answer && usage) answer.usage = JSON.parse(JSON.stringify(usage)); // a copy, which the agent cannot change
        } catch (error) {
          this.#failed(h.session, error);
        }
      },
    };
  }

  /** The history as the provider gets it; undefined where a message cannot be converted. */
  #read(session: string, history: M[], { model, system, tools }: CallOptions): History | undefined {
    try {
      const messages = history.map((m) => JSON.stringify(this.options.codec.to(m)) ?? "null");
      const texts = { system: JSON.stringify(system), tools: JSON.stringify(tools) };
      const size = Buffer.byteLength(texts.system ?? "") + Buffer.byteLength(texts.tools ?? "");
      const of = { ...model, ...this.options.model };
      JSON.stringify(of); // it is sent later
      return { session, format: this.options.format, model: of, ...texts, messages, size };
    } catch (error) {
      this.#failed(session, error);
      return undefined;
    }
  }

  #write(h: History, own: M[], { pieces, changed }: Attempt): { messages: M[]; changed: boolean } {
    try {
      const messages = pieces.map(({ text, own: i }) => {
        if (i === undefined) return this.options.codec.from(JSON.parse(text));
        return text === h.messages[i] ? own[i]! : this.options.codec.from(JSON.parse(text), own[i]);
      });
      return { messages, changed };
    } catch (error) {
      this.#failed(h.session, error);
      return { messages: own, changed: false };
    }
  }

  #failed(session: string, error: unknown) {
    this.#core.report(session, { code: "client_codec", message: String(error), hint: "Correct the codec of the conversation." });
  }
}

/** An error as JSON, which lacks the message of an Error, or as text. */
function textOf(error: any): string {
  if (typeof error === "string") return error;
  try {
    return JSON.stringify(error instanceof Error ? { ...error, message: error.message } : error) ?? String(error);
  } catch {
    return String(error?.message ?? ""); // it contains itself
  }
}

/** The messages to send with one call. */
export interface Fitted<M> {
  messages: M[];
  /** They are others than those of the agent. */
  changed: boolean;
  /** Of the call with these messages; absent where no worker answered. */
  budget?: SyncResponse["budget"];
  /**
   * Returns the messages to send instead, once, after the provider refused the call as too long, with its error and
   * the HTTP status. It is undefined for any other refusal, for the second of a call, and where
   * nothing shorter would be accepted: the refusal is the agent's to handle.
   */
  refused(error: unknown, status?: number): Promise<Fitted<M> | undefined>;
  /** Takes what the provider counted for the call. */
  used(usage: object | undefined): void;
}

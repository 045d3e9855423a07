import type { SyncResponse } from "./api.js";
import { Circuit } from "./circuit.js";
import { cut, isCuttable } from "./cut.js";
import { kept, setupOf, sizeOf, type History, type Model, type Piece } from "./history.js";
import { object } from "./json.js";
import { extend, Memory, remembered, roomOf, type Answer } from "./memory.js";
import { request, type Address, type Problem, type Synced } from "./worker.js";

/** Settings of an adapter. */
export interface Options {
  /** Where the listener of a worker for agents is, such as http://127.0.0.1:8224. */
  url: string;
  /** A token of the role agent. */
  token: string;
  /** The tenant of all sessions. Default "default". */
  tenant?: string;
  /**
   * The name of the conversation, or a function that returns the one of the current request. Names
   * of {@link withSession} come first. A request without a name passes unchanged.
   */
  session?: string | (() => string | undefined | Promise<string | undefined>);
  /** Facts that the requests do not contain, such as the window. Absent members are read from the request. */
  model?: Model;
  /** Settings of the sessions; see docs/format/wire.md. */
  policy?: object;
  /** The most that a call waits for a worker, in milliseconds. Default 500. */
  waitMs?: number;
  /** The time without requests to a worker after three failures of a session, in milliseconds. Default 5000. */
  retryAfterMs?: number;
  /** Called when a worker does not answer or refuses, and with warnings of its answers: each code of a session once, until an answer for the session is without it. Its errors are ignored. */
  onProblem?: (problem: Problem) => void;
  /** Called with the first answer of a new generation of a session. Its budget is that of the shorter history. Its errors are ignored. */
  onCompacted?: (session: string, answer: SyncResponse) => void;
}

/** The part of a history that is sent. */
export interface Attempt {
  pieces: Piece[];
  changed: boolean; // they are others than the caller's
  answer?: Answer; // absent where no worker answered
  late?: boolean; // a worker may answer when it has more time
}

/** A provider's refusal: its status, 0 in a stream, and its text. */
export interface Refusal {
  status: number;
  text: string;
}

const refusedWaitMs = 6000; // a worker decides for five seconds
const mostWaitMs = 8000; // that a worker accepts

/** Fits histories into windows. */
export class Core {
  readonly #options: Options;
  readonly #worker: Address;
  readonly #waitMs: number;
  readonly #memory = new Memory();
  readonly #circuits = new Map<string, Circuit>(); // of sessions: others are served while a large history is late
  #problems: { session: string; code: string }[] = []; // that were reported, and are not over; the session "" is all

  constructor(options: Options) {
    this.#options = options;
    JSON.stringify([options.model, options.policy]); // a value that is no JSON is an error here, and none of a call
    const { url, token, tenant = "default" } = options;
    this.#worker = { url, token, tenant, fetch: globalThis.fetch };
    this.#waitMs = options.waitMs ?? 500;
  }

  /** Returns the part of a history to send. */
  async fit(h: History, signal?: AbortSignal | null): Promise<Attempt> {
    const { last, digest } = this.#memory.find(h);
    const usage = last?.usage && { ...last.usage, view: last.sync.view, count: last.count };
    delete last?.usage; // it is sent once
    const waitMs = Math.min(Math.floor(this.#waitMs * 0.75), mostWaitMs); // so that a late answer comes before the call is given up
    const synced = await this.#ask(h, this.#waitMs, { usage, wait_ms: waitMs }, signal, last);
    if (typeof synced === "object") return this.#answered(h, digest, last, synced);
    if (signal?.aborted) return attemptOf(h); // no call follows
    return { ...this.#without(h, last), late: synced === "late" };
  }

  /** Returns the messages to send after a refusal; undefined where it would be refused again. */
  async shorter(h: History, sent: Attempt, { status, text }: Refusal, signal?: AbortSignal | null): Promise<Attempt | undefined> {
    const { answer, late } = sent;
    if (!answer && !late) return undefined;
    const refused = { view: answer?.sync.view, status: status || undefined, error: errorOf(text) };
    const synced = await this.#ask(h, refusedWaitMs, { refused }, signal);
    if (typeof synced !== "object") return undefined;
    const again = this.#answered(h, answer?.digest ?? this.#memory.find(h).digest, answer, synced);
    if (synced.sync.code) return sizeOf(h, again.pieces) < sizeOf(h, sent.pieces) ? again : undefined; // too long by estimate
    const texts = ({ pieces }: Attempt) => pieces.map((p) => p.text).join();
    return texts(again) === texts(sent) ? undefined : again;
  }

  /** The answer of a worker, which has the messages of its last answer; undefined for none. */
  async #ask(h: History, limitMs: number, more: object, signal?: AbortSignal | null, last?: Answer): Promise<Synced | "late" | undefined> {
    const circuit = this.#circuitOf(h.session);
    if (!circuit.enter()) return undefined;
    const settings = Object.entries({ format: h.format, model: h.model, policy: this.#options.policy, ...more });
    const members = [...settings.map(([name, value]) => [name, JSON.stringify(value)] as const), ["system", h.system], ["tools", h.tools]] as const;
    const limit = signal ? AbortSignal.any([AbortSignal.timeout(limitMs), signal]) : AbortSignal.timeout(limitMs);
    const send = (prefix?: { count: number; hash: string }) => {
      const messages = `[${h.messages.slice(prefix?.count).join()}]`;
      return request(this.#worker, h.session, object([...members, ["prefix", JSON.stringify(prefix)], ["messages", messages]]), h.messages.length, limit);
    };
    try {
      const synced = (await send(prefixOf(h, last))) ?? (await send());
      circuit.succeeded();
      return synced;
    } catch (error) {
      if (signal?.aborted) return undefined;
      const problem = error as Problem;
      if (isAway(problem)) circuit.failed();
      else circuit.succeeded();
      if (problem.code !== "not_overflow") this.report(h.session, problem);
      return limit.aborted ? "late" : undefined;
    }
  }

  #circuitOf(session: string): Circuit {
    let circuit = this.#circuits.get(session);
    if (!circuit) {
      if (this.#circuits.size >= remembered) this.#circuits.clear();
      this.#circuits.set(session, (circuit = new Circuit(this.#options.retryAfterMs ?? 5000)));
    }
    return circuit;
  }

  #answered(h: History, digest: string, last: Answer | undefined, { sync, made }: Synced): Attempt {
    const { warnings } = sync;
    this.#problems = this.#problems.filter(({ session, code }) => session && (session !== h.session || warnings.some((w) => w.code === code)));
    for (const warning of warnings) this.report(h.session, warning);
    if ((sync.generation ?? 0) > (last?.sync.generation ?? 0)) ignoreErrors(() => this.#options.onCompacted?.(h.session, sync));
    const answer = this.#memory.put(h, digest, last, sync, made);
    const attempt = attemptOf(h, answer);
    answer.bytes = sizeOf(h, attempt.pieces);
    return { ...attempt, answer };
  }

  /** Returns the messages to send when no worker answers. */
  #without(h: History, last?: Answer): Attempt {
    const known = last?.setup === setupOf(h) ? last : undefined;
    const attempt = attemptOf(h, known);
    const room = known && roomOf(known);
    if (room === undefined || !isCuttable(h) || sizeOf(h, attempt.pieces) <= room) return attempt;
    let pieces: Piece[];
    try {
      pieces = cut(h, attempt.pieces, room);
    } catch {
      return attempt; // a message has another shape
    }
    this.report(h.session, {
      code: "client_cut",
      message: "the history exceeds the window, and no worker answers: its oldest turns are left out",
      hint: "Start a worker. Nothing is lost: its next answer is made of the whole history.",
    });
    return { pieces, changed: true };
  }

  /** Calls onProblem, once until the problem is over. */
  report(of: string, problem: Problem) {
    const { code } = problem;
    const session = isAway(problem) ? "" : of;
    if (this.#problems.some((p) => p.session === session && p.code === code)) return;
    this.#problems = [...this.#problems, { session, code }].slice(-remembered);
    ignoreErrors(() => this.#options.onProblem?.(problem));
  }
}

/** Whether a problem means that the next request would fail too. */
function isAway({ code }: Problem): boolean {
  return ["unavailable", "unauthorized", "forbidden"].includes(code);
}

const largeMessage = 256 << 10; // whose media a worker may have by their hash alone

/** The messages that a worker has with an answer, where these are in the session and in none of its branches. */
function prefixOf(h: History, last?: Answer): { count: number; hash: string } | undefined {
  const { count = 0, hash = "", session = "" } = last?.sync ?? {};
  const isKnown = count > 0 && !session && h.messages.slice(0, count).every((m) => m.length <= largeMessage);
  return isKnown ? { count, hash } : undefined;
}

/** Applies an answer to a history that begins with the one it is about. */
function attemptOf(h: History, answer?: Answer): Attempt {
  if (!answer?.sync.changed) return { pieces: kept(h.messages), changed: false };
  return { pieces: extend(answer, h.messages), changed: true };
}

/** Calls a function of the user, whose errors, and those of its promise, must not end the agent. */
function ignoreErrors(call: () => unknown) {
  try {
    Promise.resolve(call()).catch(() => {});
  } catch {}
}

const mostError = 64 << 10; // bytes of an error; a worker refuses a larger one than 256 KiB

/** The error of a provider, an object or a text: beginning and end of a long one. */
function errorOf(text: string): unknown {
  const bytes = Buffer.from(text);
  if (bytes.length > mostError) text = `${bytes.subarray(0, mostError / 2)} … ${bytes.subarray(-mostError / 2)}`;
  try {
    const error = JSON.parse(text) as unknown;
    return typeof error === "object" && error ? error : text;
  } catch {
    return text;
  }
}

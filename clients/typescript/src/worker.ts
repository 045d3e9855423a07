import type { SyncResponse, WorkerError } from "./api.js";
import { elements, members, parse } from "./json.js";

/** A problem of compactd, which its user may want to see. */
export interface Problem {
  code: string;
  message: string;
  hint: string;
}

/** An answer of a worker, and the texts of the messages in it, by part. */
export interface Synced {
  sync: SyncResponse;
  made: (string | undefined)[];
}

/** Where a worker is. */
export interface Address {
  url: string;
  token: string;
  tenant: string;
  fetch: typeof fetch; // the one below compactd, also where compactd is the global one
}

/** Sends a history of some messages to a worker; undefined where it needs those behind a prefix. It throws a Problem. */
export async function request(at: Address, session: string, body: string, count: number, signal: AbortSignal): Promise<Synced | undefined> {
  const url = `${at.url.replace(/\/$/, "")}/v1/sessions/${at.tenant}/${escaped(session)}/sync`;
  const headers = { authorization: `Bearer ${at.token}`, "content-type": "application/json" };
  let status: number, text: string;
  try {
    const response = await at.fetch(url, { method: "POST", headers, body, signal });
    status = response.status;
    text = await textOf(response);
  } catch (error) {
    throw unavailable(at, String((error as Error).cause ?? error));
  }
  if (status !== 200) throw refused(at, status, text);
  const sync = parse(text) as SyncResponse | undefined;
  if (sync?.need) return undefined;
  const answer = { parts: [], warnings: [], budget: {}, ...sync } as unknown as SyncResponse;
  if (!isAnswer(answer) || !covers(answer, count)) throw unavailable(at, "the answer is not from a worker");
  return { sync: answer, made: madeOf(text) };
}

/** A name in a path. A fetch takes . and .. for steps in the path, also where they are escaped. */
function escaped(session: string): string {
  if (!/^\.\.?$|\p{Surrogate}/u.test(session)) return encodeURIComponent(session);
  throw { code: "bad_id", message: `a session cannot have the name ${JSON.stringify(session)}`, hint: "Use another name." } satisfies Problem;
}

const largest = 32 << 20; // bytes of an answer

async function textOf({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    if ((size += chunk.length) > largest) throw new Error("the answer is too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

const isObject = (value: unknown) => typeof value === "object" && value !== null;
const isList = (value: unknown) => Array.isArray(value) && value.every(isObject);

function isAnswer({ parts, warnings, budget }: SyncResponse): boolean {
  return isList(parts) && isList(warnings) && isObject(budget);
}

/** Whether the parts of an answer are about each message of a history once, in their order. */
function covers({ parts }: SyncResponse, count: number): boolean {
  let next = 0;
  for (const p of parts ?? []) {
    for (const range of [p.keep, p.drop, p.stands_for, p.edit == null ? null : [p.edit, p.edit + 1]]) {
      if (!range) continue;
      if (range[0] !== next || range[1]! < next) return false;
      next = range[1]!;
    }
  }
  return next === count;
}

function madeOf(answer: string): Synced["made"] {
  const parts = members(answer)?.get("parts");
  return parts?.startsWith("[") ? elements(parts).map((part) => members(part)?.get("message")) : [];
}

function refused(at: Address, status: number, text: string): Problem {
  const error = parse(text) as Partial<WorkerError> | undefined;
  if (error?.code) return { code: error.code, message: error.message ?? "", hint: error.hint ?? "" };
  if (status === 401) {
    return { code: "unauthorized", message: "the token is missing or wrong", hint: "Check the token, and its tenant in the file of tokens." };
  }
  return unavailable(at, `HTTP status ${status}`);
}

function unavailable(at: Address, message: string): Problem {
  return {
    code: "unavailable",
    message: `no worker answers at ${at.url}: ${message}`,
    hint: "Start one with: worker --agents HOST:PORT --agents-tokens FILE",
  };
}

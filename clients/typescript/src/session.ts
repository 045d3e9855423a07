import { AsyncLocalStorage } from "node:async_hooks";
import type { Options } from "./core.js";

const sessions = new AsyncLocalStorage<string>();

/** Names the conversation of the requests that a function makes. */
export function withSession<T>(session: string, run: () => T): T {
  return sessions.run(session, run);
}

/** The name of the conversation of the current request. */
export function sessionOf({ session }: Options): string | undefined | Promise<string | undefined> {
  return sessions.getStore() ?? (typeof session === "function" ? session() : session);
}

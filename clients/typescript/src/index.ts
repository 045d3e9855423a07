import { AsyncLocalStorage } from "node:async_hooks";
import { read } from "./call.js";
import { Core, type Attempt, type Options } from "./core.js";
import { inspect, type Inspected } from "./response.js";

export type { SyncResponse } from "./api.js";
export type { Options } from "./core.js";
export type { Model } from "./history.js";
export type { Problem } from "./worker.js";

const sessions = new AsyncLocalStorage<string>();

/** Names the conversation of the requests that a function makes. */
export function withSession<T>(session: string, run: () => T): T {
  return sessions.run(session, run);
}

/**
 * Returns a fetch for the SDK of a provider: it sends the history of each request to compactd, and
 * the messages of the answer to the provider.
 *
 *     const openai = new OpenAI({ fetch: compactd({ url, token, session: "chat-42" }) });
 *
 * Its errors are those of the fetch below it.
 */
export function compactd(options: Options & { /** Sends the requests. Default the global fetch. */ fetch?: typeof fetch }): typeof fetch {
  const base = options.fetch ?? globalThis.fetch;
  const core = new Core(options);
  return async (input, init) => {
    const named = typeof options.session === "function" ? options.session() : options.session;
    const session = sessions.getStore() ?? named;
    const call = session ? await read(base, input, init, options.model).catch(() => undefined) : undefined; // base has the error
    if (!session || !call) return base(input, init);
    const h = { ...call, session };
    const send = async ({ messages, answer }: Attempt): Promise<Inspected> => {
      call.signal?.throwIfAborted();
      const response = await call.send(messages === h.messages ? undefined : messages);
      return answer ? inspect(response, (usage) => (answer.usage = usage)) : { response, cancel: async () => {} };
    };
    const sent = await core.fit(h, call.signal);
    const first = await send(sent);
    const again = first.refusal && (await core.shorter(h, sent, first.refusal, call.signal));
    if (!again) return first.response;
    await first.cancel();
    return (await send(again)).response;
  };
}

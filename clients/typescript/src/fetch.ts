import { read } from "./call.js";
import { Core, type Attempt, type Options } from "./core.js";
import { inspect, type Inspected } from "./response.js";
import { sessionOf } from "./session.js";

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
    const session = await sessionOf(options);
    const call = session ? await read(base, input, init, options.model).catch(() => undefined) : undefined; // base has the error
    if (!session || !call) return base(input, init);
    const h = { ...call, session };
    const send = async (attempt: Attempt): Promise<Inspected> => {
      call.signal?.throwIfAborted();
      const response = await call.send(attempt);
      const { answer, late } = attempt;
      return answer || late ? inspect(response, (usage) => answer && (answer.usage = usage)) : { response, cancel: async () => {} };
    };
    const sent = await core.fit(h, call.signal);
    const first = await send(sent);
    const again = first.refusal && (await core.shorter(h, sent, first.refusal, call.signal));
    if (!again) return first.response;
    await first.cancel();
    return (await send(again)).response;
  };
}

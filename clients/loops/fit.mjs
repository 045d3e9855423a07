// What of its history an agent sends: one request before each call of its model, with fetch alone.

/** A conversation at a worker, such as `http://127.0.0.1:8224/v1/sessions/default/chat-42/sync`. */
export class Conversation {
  #last; // the newest answer, and the texts of the history that it is about
  #away = false; // a first failure is retried until `timeout`, the ones after it are not

  /**
   * @param config fields of each request: model, format, system, tools, policy, wait_ms
   * @param timeout the most that one call waits for a worker, in milliseconds
   * @param onProblem called with each error; the agent goes on without compactd
   */
  constructor(url, token, config, { timeout = 2000, onProblem = console.warn } = {}) {
    Object.assign(this, { url, token, config, timeout, onProblem });
  }

  /**
   * Returns what of the history to send: the agent's own objects, except where compactd made a message.
   * Never throws: without a worker it is the last answer with the messages since, or the history itself.
   * @param history every message so far, the new prompt at its end
   * @param usage what the provider counted for the call before, as it came
   */
  async fit(history, usage) {
    const last = this.#known(history);
    const answer = await this.#ask(history, last, usage && last?.view && { usage: { ...usage, view: last.view, count: last.texts.length } });
    if (answer) return applied(answer.parts, history);
    if (last) delete last.view; // the usage of a call without an answer belongs to no view
    return last ? [...applied(last.parts, history), ...history.slice(last.texts.length)] : history;
  }

  /** The history to send after a provider refused one as too long; undefined where none would help. */
  async refused(history, { status, error, message }) {
    const last = this.#known(history);
    const refused = { ...(last?.view && { view: last.view }), ...(status && { status }), error: error ?? message };
    const answer = await this.#ask(history, last, { refused }, Math.max(this.timeout, 8000));
    return answer && answer.retry !== false ? applied(answer.parts, history) : undefined;
  }

  /** The last answer, if the history begins with the messages that it is about. */
  #known(history) {
    return this.#last?.texts.every((text, i) => text === JSON.stringify(history[i])) ? this.#last : undefined;
  }

  async #ask(history, last, more, timeout = this.timeout) {
    const body = { ...this.config, ...(last?.branch && { branch: last.branch }), ...more };
    const signal = AbortSignal.timeout(timeout);
    const again = !this.#away || more?.refused;
    try {
      let answer = { need: "all" };
      if (last?.count) answer = await this.#post({ ...body, prefix: { count: last.count, hash: last.hash }, messages: history.slice(last.count) }, signal, again);
      if (answer.need === "all") answer = await this.#post({ ...body, messages: history }, signal, again);
      if (history.length && !answer.parts) throw new Error(`${this.url} is no worker`);
      const branch = [last?.branch, answer.branch].filter(Boolean).join("/"); // where a sub-agent's history is
      this.#last = { ...answer, branch, texts: history.map((m) => JSON.stringify(m)) };
      this.#away = false;
      return answer;
    } catch (error) {
      this.#away = true;
      this.onProblem(error);
    }
  }

  async #post(body, signal, again) {
    const headers = { authorization: `Bearer ${this.token}` };
    for (;;) {
      const response = await fetch(this.url, { method: "POST", headers, body: JSON.stringify(body), signal }).catch((error) => error);
      if (response.ok) return response.json();
      const away = response instanceof Error || response.status === 503; // to send the same again is safe
      if (!away || !again || signal.aborted) throw response instanceof Error ? response : new Error(`${response.status}: ${await response.text()}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

const applied = (parts = [], history) => parts.flatMap((p) => (p.keep ? history.slice(...p.keep) : p.message ? [p.message] : []));

// What of its history an agent sends: one request before each call of its model, with fetch alone.

/** A conversation at a worker, such as `http://127.0.0.1:8224/v1/sessions/default/chat-42/sync`. */
export class Conversation {
  #last = {};

  constructor(url, token, config) {
    Object.assign(this, { url, token, config });
  }

  /**
   * Returns what of the history to send: the agent's own objects, except where compactd made a message.
   * @param history every message so far, the new prompt at its end
   * @param usage what the provider counted for the call before, as it came
   */
  async fit(history, usage) {
    const { count, hash, view } = this.#last;
    const body = { ...this.config, ...(usage && { usage: { ...usage, view } }) };
    let answer = { need: "all" };
    if (count) answer = await this.#post({ ...body, prefix: { count, hash }, messages: history.slice(count) });
    if (answer.need === "all") answer = await this.#post({ ...body, messages: history });
    this.#last = answer;
    return answer.parts.flatMap((p) => (p.keep ? history.slice(...p.keep) : p.message ? [p.message] : []));
  }

  async #post(body) {
    const headers = { authorization: `Bearer ${this.token}` };
    const response = await fetch(this.url, { method: "POST", headers, body: JSON.stringify(body) });
    const answer = await response.json();
    if (!response.ok) throw new Error(`${answer.code}: ${answer.message}`);
    return answer;
  }
}

const most = 3; // failures in a row, after which a worker is away

/** Lets requests through until three failed in a row, and then one in each interval. */
export class Circuit {
  #failures = 0;
  #closedUntil = 0;

  constructor(readonly interval: number) {}

  /** Whether a request may be made. */
  enter(): boolean {
    if (this.#failures < most) return true;
    if (performance.now() < this.#closedUntil) return false;
    this.#wait(); // the next request waits for the result of this one
    return true;
  }

  succeeded() {
    this.#failures = 0;
  }

  failed() {
    this.#failures++;
    this.#wait();
  }

  #wait() {
    this.#closedUntil = performance.now() + this.interval;
  }
}

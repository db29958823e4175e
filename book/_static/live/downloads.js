// Fetches that count their bytes, and that end with a reason when a file does not come.

const direct = globalThis.fetch.bind(globalThis);
const TICKS = 10; // of the clock, until patience ends

// patience: seconds without a byte of any file; total: bytes of all files, if known.
export class Downloads {
  constructor({ patience, total, onbytes }) {
    Object.assign(this, { patience, total, onbytes, bytes: 0, open: 0 });
    this.abort = new AbortController();
    this.failure = new Promise((_, reject) => { this.fail = reject; });
    this.failure.catch(() => {});
  }

  // Like the browser's own; the answer is the browser's too, so that it can keep compiled code.
  fetch = async (resource, options = {}) => {
    const url = new URL(resource.url ?? resource, globalThis.location);
    const name = decodeURIComponent(url.pathname.split("/").at(-1));
    this.#watch(1, name);
    let answer;
    try {
      answer = await direct(url, { ...options, signal: this.abort.signal });
    } catch {
      throw this.#failed(`${name} cannot be reached`);
    }
    if (!answer.ok) throw this.#failed(`the server answers ${answer.status} for ${name}`);
    this.#count(answer.clone(), name);
    return answer;
  };

  async #count(answer, name) {
    const reader = answer.body.getReader();
    let came = 0;
    try {
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        came += part.value.length;
        this.bytes += part.value.length;
        this.#watch(0, name);
        this.onbytes(this.bytes, this.total);
      }
      this.#watch(-1, name);
    } catch {
      this.#failed(`the connection broke after ${(came / 1e6).toFixed(1)} MB of ${name}`);
    }
  }

  // The clock restarts with each byte, and stops while nothing is awaited.
  #watch(change, name) {
    this.open += change;
    clearTimeout(this.clock);
    if (this.open) this.#tick(TICKS, name);
  }

  // While Python keeps this thread busy, what comes is not seen: that counts as one tick at most.
  #tick(left, name) {
    this.clock = setTimeout(() => {
      if (left > 1) return this.#tick(left - 1, name);
      this.#failed(`nothing has come for ${this.patience} s (${name})`);
      this.abort.abort();
    }, 1000 * this.patience / TICKS);
  }

  #failed(text) {
    clearTimeout(this.clock);
    this.failed ??= new Error(text);
    this.fail(this.failed);
    return this.failed;
  }
}

// The bytes of a file of the site. A range is asked for where some of it have come before.

// A sentence for the reader.
export class Told extends Error {}

// What may go better at the next try.
export class Break extends Told {}

const REFUSED = { 401: "wants a password", 403: "refuses this page", 404: "has no such file", 410: "has the file no more" };
const PASSING = new Set([408, 429, 500, 502, 503, 504]);

// The bytes from `begin` on, piece by piece as they come.
//
// signal: an AbortSignal that ends it; patience: seconds of silence after which the connection is given up.
// Throws Break or Told, the latter with the `status` of the answer, or what the signal was aborted with.
export async function* bytesOf(address, { begin = 0, signal, patience }) {
  const { host, pathname } = new URL(address), name = pathname.split("/").at(-1);
  const abort = new AbortController(), stop = () => abort.abort(signal.reason);
  let clock, answer;
  const silent = () => abort.abort(new Break(`${host} has sent nothing of ${name} for ${patience} s.`));
  const soon = async (promise) => {
    clock = setTimeout(silent, 1000 * patience);
    return promise.finally(() => clearTimeout(clock));
  };
  signal?.throwIfAborted();
  signal?.addEventListener("abort", stop);
  try {
    const headers = begin ? { Range: `bytes=${begin}-` } : {};
    answer = await soon(fetch(address, { headers, signal: abort.signal, cache: "no-store" }));
    const { status, ok } = answer;
    if (PASSING.has(status)) throw new Break(passing(host, status));
    if (!ok) throw Object.assign(new Told(`${host} ${REFUSED[status] ?? "does not send the file"} (${status}: ${name}).`), { status });
    let before = status === 206 ? 0 : begin; // a site that knows no ranges begins at the beginning
    const reader = answer.body.getReader();
    for (;;) {
      const { value, done } = await soon(reader.read());
      if (done) return;
      const part = value.subarray(Math.min(before, value.length));
      before -= value.length - part.length;
      if (part.length) yield part;
    }
  } catch (error) {
    signal?.throwIfAborted();
    if (abort.signal.aborted) throw abort.signal.reason;
    if (!(error instanceof TypeError)) throw error;
    throw new Break(navigator.onLine ? answer ? broken(address) : `${host} cannot be reached.` : "There is no connection to the network.");
  } finally {
    signal?.removeEventListener("abort", stop);
    abort.abort(); // what is not wanted any more
  }
}

function passing(host, status) {
  if (status === 429) return `${host} has received too many requests from this network (429); wait a few minutes and try again.`;
  return `${host} cannot answer at the moment (${status}).`;
}

export const broken = (address) => `The connection to ${new URL(address).host} broke.`;

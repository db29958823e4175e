// Bytes of a file on another site. A range is asked for by a plain GET, which needs no permission beforehand.

// A sentence for the reader.
export class Told extends Error {}

// What may go better at the next try.
export class Break extends Told {}

const REFUSED = {
  401: "wants a password",
  403: "refuses this page",
  404: "has no such file",
  410: "has the file no more",
  416: "has a shorter file than it said",
};
const PASSING = new Set([408, 429, 500, 502, 503, 504]);

// The bytes from `begin` to before `end`, or all of a file, piece by piece as they come.
//
// signal: an AbortSignal that ends it; patience: seconds of silence after which the connection is given
// up; onanswer: called with {etag, total}, each null where the other site does not show it.
// Throws Break or Told, or what the signal was aborted with.
export async function* bytesOf(address, { begin = 0, end = Infinity, signal, patience, onanswer = () => {} }) {
  const { host, pathname } = new URL(address), name = pathname.split("/").at(-1);
  const abort = new AbortController(), stop = () => abort.abort(signal.reason);
  let clock, answer, came = begin;
  const silent = () => abort.abort(new Break(`${host} has sent nothing of ${name} for ${patience} s.`));
  const soon = async (promise) => {
    clock = setTimeout(silent, 1000 * patience);
    return promise.finally(() => clearTimeout(clock));
  };
  signal?.throwIfAborted();
  signal?.addEventListener("abort", stop);
  try {
    const headers = end < Infinity ? { Range: `bytes=${begin}-${end - 1}` } : {};
    const options = { headers, signal: abort.signal, cache: "no-store", credentials: "omit" };
    answer = await soon(fetch(address, options));
    if (PASSING.has(answer.status)) throw new Break(passing(host, answer.status));
    if (!answer.ok) throw new Told(`${host} ${REFUSED[answer.status] ?? "does not send the file"} (${answer.status}: ${name}).`);
    onanswer(about(answer, { begin, host, name }));
    let skipped = answer.status === 206 ? begin : 0; // a site that knows no ranges begins at the beginning
    const reader = answer.body.getReader();
    for (;;) {
      const { value, done } = await soon(reader.read());
      if (done || came === end) break; // it has come to its end, or sends more than was asked for
      const useful = value.subarray(Math.min(value.length, Math.max(0, came - skipped)), Math.min(value.length, end - skipped));
      skipped += value.length;
      came += useful.length;
      if (useful.length) yield useful;
    }
    if (end < Infinity && came < end) throw new Break(broken(host));
  } catch (error) {
    signal?.throwIfAborted();
    if (abort.signal.aborted) throw abort.signal.reason;
    if (!(error instanceof TypeError)) throw error;
    throw new Break(navigator.onLine ? answer ? broken(host) : unreachable(host) : OFFLINE);
  } finally {
    signal?.removeEventListener("abort", stop);
    abort.abort(); // what is not wanted any more
  }
}

// All of them at once.
export async function allBytesOf(address, options) {
  const parts = [];
  for await (const part of bytesOf(address, options)) parts.push(part);
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

function about({ status, headers }, { begin, host, name }) {
  const [, first, total] = /^bytes (\d+)-\d+\/(\d+)$/.exec(headers.get("Content-Range") ?? "") ?? [];
  if (status === 206 && first !== undefined && Number(first) !== begin) {
    throw new Told(`${host} sends another part of ${name} than it was asked for.`);
  }
  return { etag: headers.get("ETag"), total: total === undefined ? null : Number(total) };
}

function passing(host, status) {
  if (status === 429) return `Too many requests have come to ${host} from here (429); it wants some minutes of peace.`;
  return `${host} cannot answer at the moment (${status}).`;
}

const broken = (host) => `The connection to ${host} broke.`;

// A browser does not tell a page which of the two it is.
const unreachable = (host) => (
  `${host} cannot be reached from this page: there is no connection to it, or it does not let pages of other sites read its files. Try again later.`
);

const OFFLINE = "There is no connection to the network.";

// The published weights on their way into the page: fetched in ranges, made into 8 bits, kept. The other site is one of
// the test's, the store a browser's cache; its private files are asked of a browser.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { openPage } from "./dom.mjs";
import { known } from "./known.mjs";

const { Published } = await import("../../book/_static/published/fetching.js");
const { quantizeRows } = await import("../../book/_static/published/rows.js");
const folders = known("published"), { rounded } = folders;
const bytesOf = (base64) => new Uint8Array(Buffer.from(base64, "base64"));
const WEIGHTS = "model.safetensors", TEXTS = ["config.json", "vocab.json", "merges.txt"];
const HEADER = [null, null], FIRST = [...HEADER, null]; // its length and itself; and what lies between two masks
const CHUNK = 1 << 16;

// A site that does what sites do: `faults` are used up, one a request for the weights, before it behaves: a status,
// ["break", n] and ["stall", n] after n bytes, "long" for more than was asked for, "elsewhere" for another part.
class Hub {
  constructor(name = "float32") {
    this.files = Object.fromEntries(Object.entries(folders[name].files).map(([file, text]) => [file, bytesOf(text)]));
    Object.assign(this, { faults: [], requests: [], sent: 0, ranges: true, shows: true, reached: true, etag: `"${name}"` });
    this.over = new Promise((end) => { this.end = end; });
  }

  async fetch(address, { headers, signal }) {
    const name = String(address).split("/").at(-1), wanted = /bytes=(\d+)-(\d+)/.exec(headers.Range ?? "");
    this.requests.push([name, headers.Range]);
    if (!this.reached) throw new TypeError("Failed to fetch");
    const fault = name === WEIGHTS ? this.faults.shift() ?? null : null, [kind, after] = Array.isArray(fault) ? fault : [fault];
    if (typeof kind === "number") return new Response("", { status: kind });
    const file = this.files[name], part = wanted && this.ranges;
    const first = part ? Number(wanted[1]) + (kind === "elsewhere") : 0;
    const last = part ? Number(wanted[2]) + 1 + (kind === "long" ? 100 : 0) : file.length;
    const body = file.subarray(first, last), range = `bytes ${first}-${first + body.length - 1}/${file.length}`;
    const shown = this.shows ? { ETag: this.etag, ...part && { "Content-Range": range } } : {};
    return new Response(this.#stream(body, kind, after ?? body.length, signal), { status: part ? 206 : 200, headers: shown });
  }

  #stream(body, kind, after, signal) {
    let at = 0;
    return new ReadableStream({
      pull: async (stream) => {
        if (at >= Math.min(after, body.length)) {
          if (kind === "stall" && !signal.aborted) await Promise.race([this.over, new Promise((end) => { signal.addEventListener("abort", end); })]);
          if (signal.aborted) stream.error(signal.reason);
          else if (kind === "break") stream.error(new TypeError("network error"));
          else if (at < body.length) [after, kind] = [body.length, null];
          else stream.close();
        }
        if (at < Math.min(after, body.length)) {
          const some = body.subarray(at, Math.min(at + CHUNK, after));
          this.sent += some.length;
          at += some.length;
          stream.enqueue(some);
        }
      },
    });
  }
}

// What a browser has: a cache that may be full, and locks that its tabs share.
function browser() {
  openPage();
  const kept = new Map(), held = new Map();
  const cache = {
    full: false,
    match: async (url) => kept.get(String(url))?.clone(),
    put: async (url, response) => {
      if (cache.full) throw new DOMException("full", "QuotaExceededError");
      kept.set(String(url), new Response(await response.blob()));
    },
    keys: async () => [...kept.keys()],
    delete: async (url) => kept.delete(url),
  };
  globalThis.caches = { open: async () => cache };
  async function request(name, { ifAvailable, signal }, act) {
    if (ifAvailable && held.has(name)) return act(null);
    while (held.has(name)) await Promise.race([held.get(name), signal && new Promise((end) => { signal.addEventListener("abort", end); })]);
    const work = Promise.resolve(act({ name }));
    held.set(name, work.catch(() => {}));
    return work.finally(() => held.delete(name));
  }
  Object.assign(navigator, { onLine: true, locks: { request }, storage: { estimate: async () => ({ quota: 1e9, usage: 0 }) } });
  return { cache, kept };
}

let hub, here;

beforeEach(() => {
  here = browser();
  hub = new Hub();
  globalThis.fetch = (...all) => hub.fetch(...all);
});

const tab = (settings = {}) => new Published("https://hub.test/gpt2/", { patience: 60, pause: 0.001, ...settings });

// Fetches it; how that ended, in words, and what was said on the way.
async function fetched(published = tab(), abort = new AbortController()) {
  const said = [], all = [];
  const onprogress = (about) => {
    all.push(about);
    if (about.why) said.push(about.why);
  };
  const ending = await published.fetch({ signal: abort.signal, onprogress }).then(() => "whole", ({ message }) => message);
  return { ending, said, all };
}

async function content(published = tab(), name = WEIGHTS) {
  await published.look();
  const { data } = (await published.files()).find((file) => file.name === name);
  return Buffer.from(await data.arrayBuffer());
}

async function isWhole(published = tab(), name = "float32") {
  assert.ok((await content(published)).equals(bytesOf(folders[name].made)));
}

// What becomes of it -------------------------------------------------------------------------------------------------

test("the quantised file equals Python's bit for bit, and masks are not fetched", async () => {
  for (const name of ["float32", "float16"]) {
    here = browser();
    hub = new Hub(name);
    const { ending, all } = await fetched();
    assert.equal(ending, "whole");
    await isWhole(tab(), name);
    for (const text of TEXTS) assert.ok((await content(tab(), text)).equals(hub.files[text]));
    const asked = hub.requests.filter(([file]) => file === WEIGHTS).map(([, range]) => range.slice(6).split("-").map(Number));
    const header = 8 + Number(new DataView(hub.files[WEIGHTS].buffer).getBigUint64(0, true));
    assert.equal(asked.reduce((sum, [first, last]) => sum + last + 1 - first, 0), header + folders[name].useful);
    assert.ok(all.every(({ came }, i) => !i || came >= all[i - 1].came));
    assert.deepEqual(all.at(-1), { came: folders[name].useful, total: folders[name].useful });
  }
});

test("ties are rounded as in NumPy", () => {
  const { rows, q, scales } = rounded;
  const found = quantizeRows(new Float32Array(rows.flat()), rows[0].length);
  assert.deepEqual([...found.q], q);
  assert.deepEqual([...found.scales], [...Float32Array.from(scales)]);
});

// What goes wrong ----------------------------------------------------------------------------------------------------

test("a broken connection is reported and recovered from", async () => {
  for (const [fault, words] of [
    [["break", 100_000], /^The connection to hub.test broke\./], [429, /^Too many requests/], [503, /cannot answer at the moment \(503\)/],
  ]) {
    here = browser();
    hub = new Hub();
    hub.faults = [...FIRST, fault, ...HEADER, fault];
    const { ending, said } = await fetched();
    assert.equal(ending, "whole");
    assert.ok(said.length === 2 && said.every((why) => words.test(why)), said.join());
    assert.ok(said[0].endsWith("The next try comes in 0.001 s."));
    await isWhole();
  }
});

test("a stalled connection is reported and recovered from", async () => {
  hub.faults = [...FIRST, ["stall", 100_000]];
  const { ending, said } = await fetched(tab({ patience: 1 }));
  assert.equal(ending, "whole");
  assert.ok(said.some((why) => why.startsWith("hub.test has sent nothing of model.safetensors for 1 s.")));
  await isWhole();
});

test("fetched parts are not fetched again, even on a later visit", async () => {
  hub.faults = [...FIRST, ["break", 4_500_000], ...Array(9).fill(503)];
  const { ending, said } = await fetched();
  assert.ok(ending.includes("cannot answer") && said.length === 4, "five tries that bring nothing are enough");
  assert.deepEqual(said.map((why) => /in ([\d.]+) s/.exec(why)[1]), ["0.001", "0.002", "0.004", "0.008"]);
  const before = hub.sent, look = await tab().look();
  assert.ok(look.came > 4e6 && look.came < look.total && !look.isWhole && look.kept > 0);
  hub.faults = [];
  assert.equal((await fetched()).ending, "whole");
  assert.ok(hub.sent - before < look.total - look.came + 10_000);
  await isWhole();
  hub.requests.length = 0;
  assert.ok((await tab().look()).isWhole);
  await isWhole();
  assert.deepEqual(hub.requests, [], "once it is here nothing is asked for");
});

test("a refusal is reported at once", async () => {
  for (const status of [401, 403, 404, 410, 416, 418]) {
    hub = new Hub();
    hub.faults = [status];
    const { ending, said } = await fetched();
    assert.ok(ending.endsWith(`(${status}: model.safetensors).`) && !said.length);
    assert.equal(hub.requests.length, 1);
    assert.equal((await tab().look()).kept, 0);
  }
  hub.reached = false;
  const { ending, said } = await fetched();
  assert.ok(ending.includes("it does not let pages of other sites read its files") && !said.length);
  navigator.onLine = false;
  assert.deepEqual((await fetched()).ending, "There is no connection to the network.");
});

test("without range requests the file is read from the beginning, and the excess is left unread", async () => {
  hub.ranges = false;
  assert.equal((await fetched()).ending, "whole");
  await isWhole();
  for (const shows of [true, false]) {
    here = browser();
    Object.assign(hub, { ranges: true, shows, faults: [...HEADER, "long", "long"] });
    assert.equal((await fetched()).ending, "whole");
    await isWhole();
  }
  here = browser();
  Object.assign(hub, { shows: true, faults: [...HEADER, "elsewhere"] });
  assert.ok((await fetched()).ending.includes("another part of model.safetensors than it was asked for"));
});

test("a changed file is fetched again: without a visible ETag its header tells", async () => {
  for (const shows of [true, false]) {
    here = browser();
    hub = new Hub();
    Object.assign(hub, { shows, faults: [...FIRST, ["break", 4_500_000], 404] });
    await fetched();
    assert.ok((await tab().look()).came > 0);
    hub = Object.assign(new Hub("another"), { shows });
    const { ending, said } = await fetched();
    assert.ok(ending === "whole" && said.length === 1 && said[0].includes("it starts again"));
    await isWhole(tab(), "another");
  }
  here = browser();
  let mark = 0;
  Object.defineProperty(hub, "etag", { get() { mark += 1; return `"${mark}"`; } });
  hub.shows = true;
  const { ending, said } = await fetched();
  assert.ok(ending.includes("changes while it is fetched") && said.length === 1);
});

test("a damaged file is refused with an explanation", async () => {
  const swapped = (from, to) => (file) => Buffer.from(Buffer.from(file).toString("latin1").replace(from, to), "latin1");
  for (const [change, words] of [
    [(file) => Buffer.concat([Buffer.from("<html>"), file]), "it does not begin like one"],
    [swapped('"F32"', '"F64"'), "not of F32 or F16"], [swapped('{"', '["'), "its header is not JSON"],
    [swapped("[20000, 60]", "[20001, 60]"), "is not as long"], [swapped("wpe.weight", "wxe.weight"), "is no weight of GPT-2"],
    [(file) => file.subarray(0, -5000), "The connection to"],
  ]) {
    here = browser();
    hub = Object.assign(new Hub(), { shows: false });
    hub.files[WEIGHTS] = change(hub.files[WEIGHTS]);
    const { ending } = await fetched();
    assert.ok(ending.includes(words), `${words}: ${ending}`);
  }
});

// Room, and other tabs -----------------------------------------------------------------------------------------------

test("too little space is reported before anything is fetched", async () => {
  navigator.storage.estimate = async () => ({ quota: 2e6, usage: 1.1e6 });
  const { ending } = await fetched();
  assert.ok(ending.includes("The model takes 1 MB") && ending.includes("keep no more than 1 MB"));
  assert.ok(hub.sent < 10_000);
});

// Begins to fetch, and waits until a piece has come; the site stalls then.
async function begun() {
  hub.faults = [...FIRST, ["stall", 4_500_000]];
  const abort = new AbortController(), ended = fetched(tab(), abort);
  while (hub.faults.length || !(await tab().look()).came) await pause(1);
  return { abort, ended };
}

test("a full disk is reported, and fetched parts are kept", async () => {
  const { ended } = await begun();
  here.cache.full = true;
  hub.end();
  assert.ok((await ended).ending.startsWith("The disk is full"));
  here.cache.full = false;
  assert.ok((await tab().look()).came > 0);
  assert.equal((await fetched()).ending, "whole");
  await isWhole();
});

test("forgotten weights are deleted", async () => {
  await fetched();
  const { kept } = await tab().look(), one = tab();
  await one.look();
  assert.equal(await one.forget(), kept);
  assert.ok(kept > 1_300_000);
  assert.deepEqual(await one.look(), { kept: 0, came: 0, total: null, isWhole: false });
  assert.equal(here.kept.size, 0);
});

test("only one of two tabs fetches, and a pause keeps fetched parts", async () => {
  const { abort, ended } = await begun(), other = fetched(), third = tab();
  await third.look();
  await assert.rejects(third.forget(), /Another tab of this browser fetches it: pause it there first/);
  abort.abort(new Error("paused"));
  assert.equal((await ended).ending, "paused");
  const { ending, said } = await other;
  assert.ok(ending === "whole" && said[0].startsWith("Another tab of this browser fetches it"));
  assert.equal(hub.requests.filter(([name]) => name === "vocab.json").length, 1);
  await isWhole();
});

test("a browser that cannot store files is reported", async () => {
  caches.open = async () => { throw new DOMException("no", "SecurityError"); };
  assert.equal(await tab().look(), null);
  assert.ok((await fetched()).ending.includes("keeps nothing for this page"));
  assert.deepEqual(hub.requests, []);
});

// The published model on its way into the page: fetched in pieces, checked, kept. The site is one of the test's, the store a
// browser's cache; its private files are asked of a browser.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { beforeEach, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { openPage } from "./dom.mjs";

const { Published } = await import("../../book/_static/published/fetching.js");
const PIECE = 400_000, CHUNK = 1 << 16;
const digestOf = (bytes) => createHash("sha256").update(bytes).digest("hex");

// A file of three pieces, with their list.
function made(seed) {
  const whole = Uint8Array.from({ length: 2.5 * PIECE }, (_, i) => (i * i + seed * i) >> 3);
  const parts = [0, 1, 2].map((i) => whole.subarray(i * PIECE, (i + 1) * PIECE));
  const pieces = parts.map((part, i) => ({ name: `${i}.bin`, size: part.length, sha256: digestOf(part) }));
  const manifest = { name: "model.gguf", size: whole.length, sha256: digestOf(whole), pieces };
  const files = { "manifest.json": new TextEncoder().encode(JSON.stringify(manifest)) };
  parts.forEach((part, i) => { files[`${i}.bin`] = part; });
  return { whole, manifest, files };
}

const ours = made(1), another = made(2);

// A site that does what sites do: `faults` are used up, one a request for a piece, before it behaves: a status,
// ["break", n] and ["stall", n] after n bytes, "short" for fewer bytes than there are, "damage" for other bytes.
class Site {
  constructor({ files } = ours) {
    Object.assign(this, { files: { ...files }, faults: [], requests: [], sent: 0, ranges: true, reached: true });
    this.over = new Promise((end) => { this.end = end; });
  }

  async fetch(address, { headers, signal }) {
    const name = String(address).split("/").at(-1), wanted = /bytes=(\d+)-/.exec(headers.Range ?? "");
    this.requests.push([name, headers.Range]);
    if (!this.reached) throw new TypeError("Failed to fetch");
    const fault = name.endsWith(".bin") ? this.faults.shift() ?? null : null, [kind, after] = Array.isArray(fault) ? fault : [fault];
    if (typeof kind === "number") return new Response("", { status: kind });
    if (!this.files[name]) return new Response("", { status: 404 });
    const part = wanted && this.ranges, end = kind === "short" ? -1000 : undefined;
    const body = this.files[name].slice(part ? Number(wanted[1]) : 0, end);
    if (kind === "damage") body[7] ^= 1;
    return new Response(this.#stream(body, kind, after ?? body.length, signal), { status: part ? 206 : 200 });
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

let site, here;

beforeEach(() => {
  here = browser();
  site = new Site();
  globalThis.fetch = (...all) => site.fetch(...all);
});

const tab = (settings = {}, { manifest } = ours) => (
  new Published("https://book.test/pieces/", manifest.sha256, { patience: 60, pause: 0.001, ...settings })
);

// Fetches it; how that ended, in words, and what was said on the way.
async function fetched(published = tab(), abort = new AbortController()) {
  const said = [], all = [];
  const onprogress = (about) => (about.why ? said.push(about.why) : all.push(about));
  const ending = await published.fetch({ signal: abort.signal, onprogress }).then(() => "whole", ({ message }) => message);
  return { ending, said, all };
}

async function isWhole(published = tab(), { whole } = ours) {
  assert.ok((await published.look()).isWhole);
  const [{ name, data }] = await published.files();
  assert.equal(name, "model.gguf");
  assert.ok(Buffer.from(await data.arrayBuffer()).equals(whole));
}

// What becomes of it -------------------------------------------------------------------------------------------------

test("the pieces become the file, and once it is here nothing is asked for", async () => {
  assert.deepEqual(await tab().look(), { came: 0, total: null, isWhole: false });
  const { ending, all, said } = await fetched();
  assert.equal(ending, "whole");
  assert.deepEqual(said, []);
  assert.ok(all.every(({ came }, i) => !i || came >= all[i - 1].came));
  assert.deepEqual(all.at(-1), { came: ours.whole.length, total: ours.whole.length });
  assert.deepEqual(site.requests, [["manifest.json", undefined], ...[0, 1, 2].map((i) => [`${i}.bin`, undefined])]);
  site.requests.length = 0;
  await isWhole();
  assert.equal((await fetched()).ending, "whole");
  assert.deepEqual(site.requests, []);
});

// What goes wrong ----------------------------------------------------------------------------------------------------

test("after a break it goes on where it broke, with ranges and without", async () => {
  for (const ranges of [true, false]) {
    for (const [fault, words] of [
      [["break", 100_000], /^The connection to book.test broke\./], [429, /^book.test has received too many requests/], [503, /cannot answer at the moment \(503\)/],
      ["short", /^The connection to book.test broke\./],
    ]) {
      here = browser();
      site = Object.assign(new Site(), { ranges, faults: [null, fault] });
      const { ending, said } = await fetched();
      assert.equal(ending, "whole");
      assert.ok(said.length === 1 && words.test(said[0]) && said[0].endsWith("The next try comes in 0.001 s."), said.join());
      const from = typeof fault === "number" ? undefined : `bytes=${fault === "short" ? PIECE - 1000 : 100_000}-`;
      assert.deepEqual(site.requests[3], ["1.bin", from]);
      await isWhole();
    }
  }
});

test("a site that falls silent is reported and recovered from", async () => {
  site.faults = [["stall", 100_000]];
  const { ending, said } = await fetched(tab({ patience: 0.2 }));
  assert.equal(ending, "whole");
  assert.ok(said.some((why) => why.startsWith("book.test has sent nothing of 0.bin for 0.2 s.")));
  await isWhole();
});

test("five tries that bring nothing are enough, and what has come is not fetched again on a later visit", async () => {
  site.faults = [null, ["break", 100_000], ...Array(9).fill(503)];
  const { ending, said } = await fetched();
  assert.ok(ending.includes("cannot answer"));
  assert.deepEqual(said.map((why) => /in ([\d.]+) s/.exec(why)[1]), ["0.001", "0.002", "0.004", "0.008"]);
  assert.deepEqual(await tab().look(), { came: PIECE, total: ours.whole.length, isWhole: false });
  const before = site.sent;
  site.faults = [];
  assert.equal((await fetched()).ending, "whole");
  assert.equal(site.sent - before, ours.whole.length - PIECE);
  await isWhole();
});

test("as long as something comes it goes on", async () => {
  site.faults = Array.from({ length: 9 }, () => ["break", 40_000]);
  const { ending, said } = await fetched();
  assert.deepEqual([ending, said.length], ["whole", 9]);
  await isWhole();
});

test("a site without ranges that always breaks at one place is left", async () => {
  Object.assign(site, { ranges: false, faults: Array.from({ length: 20 }, () => ["break", 100_000]) });
  assert.ok((await fetched()).ending.endsWith("broke."));
  assert.equal(site.faults.length, 15);
});

test("a refusal is reported at once", async () => {
  for (const status of [401, 403, 404, 410, 416, 418]) {
    site = new Site();
    site.faults = [status];
    const { ending, said } = await fetched();
    assert.ok(ending.endsWith(`(${status}: 0.bin).`) && !said.length);
    assert.equal((await tab().look()).came, 0);
  }
  await tab().look();
  here = browser();
  site = Object.assign(new Site(), { reached: false });
  assert.deepEqual([(await fetched()).ending, site.requests.length], ["book.test cannot be reached.", 1]);
  navigator.onLine = false;
  assert.equal((await fetched()).ending, "There is no connection to the network.");
});

test("a site that has no model says so in one sentence", async () => {
  const none = "This copy of the book holds no model: run make live, then build it again.";
  delete site.files["manifest.json"];
  assert.equal((await fetched()).ending, none);
  site.files["manifest.json"] = new TextEncoder().encode("<!doctype html>");
  assert.equal((await fetched()).ending, none);
  site = new Site(another);
  assert.ok((await fetched()).ending.startsWith("The site has another model than this page asks for"));
  assert.equal((await tab().look()).came, 0);
});

test("a damaged piece is fetched again once", async () => {
  site.faults = [null, "damage"];
  const { ending, said } = await fetched();
  assert.equal(ending, "whole");
  assert.ok(said.length === 1 && said[0].startsWith("Piece 2 of 3 has arrived damaged."));
  await isWhole();
  here = browser();
  site.faults = [null, "damage", "damage"];
  assert.equal((await fetched()).ending, "Piece 2 of 3 has arrived damaged twice: try again later.");
  assert.equal((await tab().look()).came, PIECE);
});

test("another model takes the place of the one that is kept", async () => {
  await fetched();
  site = new Site(another);
  const next = tab({}, another);
  assert.equal((await next.look()).came, 0);
  assert.equal((await fetched(next)).ending, "whole");
  await isWhole(next, another);
  assert.equal(here.kept.size, 4);
});

// Room, and other tabs -----------------------------------------------------------------------------------------------

test("too little space is reported before anything is fetched", async () => {
  navigator.storage.estimate = async () => ({ quota: 2e6, usage: 1.1e6 });
  const { ending } = await fetched();
  assert.ok(ending.includes("The model takes 1 MB") && ending.includes("keep no more than 1 MB"));
  assert.equal(site.requests.length, 1);
});

// Begins to fetch, and waits until a piece has come; the site stalls then.
async function begun() {
  site.faults = [null, ["stall", 100_000]];
  const abort = new AbortController(), published = tab(), ended = fetched(published, abort);
  while (site.faults.length || (await published.look()).came < PIECE + 100_000) await pause(1);
  return { abort, ended, published };
}

test("a full disk is reported, and pieces that are here are kept", async () => {
  const { ended } = await begun();
  here.cache.full = true;
  site.end();
  assert.ok((await ended).ending.startsWith("The disk is full"));
  here.cache.full = false;
  assert.equal((await tab().look()).came, PIECE);
  assert.equal((await fetched()).ending, "whole");
  await isWhole();
});

test("a forgotten model is deleted", async () => {
  await fetched();
  const one = tab();
  await one.look();
  assert.equal(await one.forget(), ours.whole.length);
  assert.deepEqual(await one.look(), { came: 0, total: null, isWhole: false });
  assert.equal(here.kept.size, 0);
});

test("after a pause it goes on where it was", async () => {
  const { abort, ended, published } = await begun();
  abort.abort(new Error("paused"));
  assert.equal((await ended).ending, "paused");
  assert.equal((await fetched(published)).ending, "whole");
  assert.deepEqual(site.requests.slice(3), [["1.bin", "bytes=100000-"], ["2.bin", undefined]]);
  await isWhole();
});

test("what is kept in part is fetched again, and what another tab has fetched is not", async () => {
  const { abort, ended, published } = await begun();
  abort.abort(new Error("paused"));
  await ended;
  site.faults = [null, 503, 503, 503, 503, 503];
  await fetched();
  assert.equal((await published.look()).came, 2 * PIECE);
  const address = [...here.kept.keys()].find((url) => url.endsWith(ours.manifest.pieces[0].sha256));
  here.kept.set(address, new Response(new Blob([])));
  site.requests.length = 0;
  assert.equal((await fetched(published)).ending, "whole");
  assert.deepEqual(site.requests, [["0.bin", undefined], ["2.bin", undefined]]);
  await isWhole();
});

test("only one of two tabs fetches", async () => {
  const { abort, ended } = await begun(), other = fetched(), third = tab();
  await third.look();
  await assert.rejects(third.forget(), /Another tab is fetching it: pause it there first/);
  abort.abort(new Error("paused"));
  await ended;
  const { ending, said } = await other;
  assert.ok(ending === "whole" && said[0].startsWith("Another tab is already fetching it"));
  assert.equal(site.requests.filter(([name]) => name === "0.bin").length, 1);
  await isWhole();
});

test("a browser that cannot store files is reported", async () => {
  caches.open = async () => { throw new DOMException("no", "SecurityError"); };
  assert.equal(await tab().look(), null);
  assert.ok((await fetched()).ending.includes("keeps nothing for this page"));
  assert.deepEqual(site.requests, []);
});

// How Python comes to a page: what is downloaded and watched, when it begins, what the service worker keeps.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { beforeEach, test } from "node:test";
import { runInNewContext } from "node:vm";
import { happening, openPage } from "./dom.mjs";
import { Python } from "./live.mjs";

let answer; // what the network gives
globalThis.fetch = (...all) => answer(...all);
openPage();
const { Downloads } = await import("../../book/_static/live/downloads.js");
const { Kernel } = await import("../../book/_static/live/python.js");
const { startEarly } = await import("../../book/_static/live/early_start.js");
const { registerServiceWorker } = await import("../../book/_static/live/register_service_worker.js");
const turn = async () => { for (let i = 0; i < 50; i += 1) await Promise.resolve(); };

// Clocks that start others run in steps.
const pass = (t, ms) => { for (let i = 0; i < ms; i += 1) t.mock.timers.tick(1); };

// Downloads ----------------------------------------------------------------------------------------------------------

// A file that comes as the test says: part(bytes), end(), breaks().
function piecewise() {
  let hand;
  const body = new ReadableStream({ start(controller) { hand = controller; } });
  answer = async (_, { signal } = {}) => {
    signal?.addEventListener("abort", () => hand.error(new Error("aborted")));
    return new Response(body);
  };
  return { part: (n) => hand.enqueue(new Uint8Array(n)), end: () => hand.close(), breaks: () => hand.error(new TypeError("network")) };
}

const downloads = (more = {}) => new Downloads({ patience: 10, total: 9e6, onbytes: () => {}, ...more });
const failure = ({ failure: failed }) => failed.catch(({ message }) => message);

test("bytes are counted, and the answer is the browser's own", async () => {
  const counted = [], file = piecewise(), all = downloads({ onbytes: (...told) => counted.push(told) });
  const text = all.fetch("python.bin?v=1").then((got) => got.text());
  await turn();
  for (const n of [3e6, 1e6]) file.part(n);
  file.end();
  assert.equal((await text).length, 4e6);
  assert.deepEqual(counted, [[3e6, 9e6], [4e6, 9e6]]);
  assert.equal(all.failed, undefined);
});

test("a file that fails to load is named, with the reason", async () => {
  for (const [act, said] of [
    [async () => new Response("", { status: 404 }), "the server answers 404 for a b.bin"],
    [async () => { throw new TypeError("no"); }, "a b.bin cannot be reached"],
  ]) {
    answer = act;
    const all = downloads();
    await assert.rejects(all.fetch("folder/a%20b.bin?v=2"), { message: said });
    assert.equal(await failure(all), said);
  }
  const file = piecewise(), all = downloads();
  await all.fetch("python.bin");
  file.part(2e6);
  await turn();
  file.breaks();
  assert.equal(await failure(all), "the connection broke after 2.0 MB of python.bin");
});

test("a stalled download is given up, a slow one is not", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const file = piecewise(), all = downloads();
  const text = all.fetch("python.bin").then((got) => got.text());
  for (let i = 0; i < 5; i += 1) {
    await turn();
    pass(t, 9999);
    file.part(1);
  }
  await turn();
  assert.equal(all.failed, undefined);
  text.catch(() => {});
  pass(t, 10_000);
  assert.equal(await failure(all), "nothing has come for 10 s (python.bin)");
  assert.ok(all.abort.signal.aborted);
});

test("a pause while no file is awaited is not a failure", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const file = piecewise(), all = downloads(), text = all.fetch("python.bin").then((got) => got.text());
  await turn();
  file.end();
  await text;
  await turn();
  pass(t, 20_000);
  assert.equal(all.failed, undefined);
});

test("a busy thread counts as one tick of the clock, not as a stall", async () => {
  const real = globalThis.setTimeout, clocks = [];
  globalThis.setTimeout = (act, ms) => clocks.push({ act, ms });
  try {
    piecewise();
    const all = downloads();
    await all.fetch("python.bin");
    for (let ticks = 1; ticks < 10; ticks += 1) {
      assert.deepEqual([clocks.length, clocks.at(-1).ms, all.failed], [ticks, 1000, undefined]);
      clocks.at(-1).act(); // however late
    }
    clocks.at(-1).act();
    assert.ok(all.failed);
  } finally {
    globalThis.setTimeout = real;
  }
});

// The kernel ---------------------------------------------------------------------------------------------------------

beforeEach(() => {
  Object.assign(globalThis, { Worker: Python, crossOriginIsolated: false });
  Object.assign(Python, { all: [], begins: (python) => python.say({ type: "ready", times: {} }) });
});
const running = (source, onmessage = () => {}) => ({ source, onmessage });
const kernelOf = (prepare) => {
  const states = [], kernel = new Kernel({ patience: 10 }, (state, about) => states.push([state, about.text].filter(Boolean).join(": ")), prepare);
  return { kernel, states };
};

test("Python starts once, and its cells run one after the other", async () => {
  const { kernel, states } = kernelOf();
  kernel.load();
  kernel.load();
  const ended = [], runs = ["a = 1", "uses a", "fail E"].map((source) => kernel.run(running(source)).then((result) => ended.push([source, result.type, result.ok])));
  await Promise.all(runs);
  assert.deepEqual(ended, [["a = 1", "done", true], ["uses a", "done", true], ["fail E", "done", false]]);
  assert.equal(Python.all.length, 1);
  assert.deepEqual(states, ["starting: Loading Python", "ready", "busy", "ready", "busy", "ready", "busy", "ready"]);
});

test("a silent worker is given up; one that has started watches itself", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  Python.begins = () => {};
  const { kernel } = kernelOf(), run = kernel.run(running("a = 1"));
  await turn();
  t.mock.timers.tick(10_000);
  assert.deepEqual(await run, { type: "broken", text: "nothing has come for 10 s", load: true, lost: true });
  assert.ok(Python.all[0].ended && kernel.state === "off");
  Python.begins = (python) => python.say({ type: "progress", text: "Loading Python" });
  kernel.load();
  await turn();
  t.mock.timers.tick(60_000);
  assert.equal(kernel.state, "starting");
  Python.all[1].crash();
  assert.equal(kernel.state, "off");
});

test("what comes before the first byte may take two seconds or fail, and who stops meanwhile gets no Python", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  for (const prepare of [() => new Promise(() => {}), () => Promise.reject(new Error("no"))]) {
    const { kernel } = kernelOf(prepare), before = Python.all.length;
    kernel.load();
    await turn();
    t.mock.timers.tick(2000);
    await turn();
    assert.equal(Python.all.length, before + 1);
  }
  const { kernel } = kernelOf(() => new Promise(() => {})), run = kernel.run(running(""));
  kernel.stop();
  t.mock.timers.tick(2000);
  await turn();
  assert.deepEqual(await run, { type: "stopped", lost: false, loading: true });
  assert.equal(Python.all.length, 2);
});

test("stopping drops waiting cells, and output of an abandoned cell is ignored", async () => {
  const { kernel } = kernelOf(), said = [];
  const runs = [kernel.run(running("forever", ({ text }) => said.push(text))), kernel.run(running("say a"))];
  await turn();
  const [python] = Python.all;
  python.say({ type: "message", id: 99, text: "of another" });
  kernel.stop();
  assert.deepEqual(await Promise.all(runs), [{ type: "stopped", lost: true }, { type: "stopped", lost: false, loading: false }]);
  assert.deepEqual(said, []);
  assert.equal((await kernel.run(running("say b"))).ok, true);
});

test("a new Python gets the reader's files and the mounted ones before any cell", async () => {
  const { kernel } = kernelOf(), job = { type: "takeFile", name: "a.txt", blob: new Blob(["abc"]) };
  kernel.mount("/published", [{ name: "m" }]);
  await kernel.run(job);
  kernel.keep(job);
  kernel.restart();
  await kernel.run(running("say a"));
  assert.deepEqual(Python.all[1].heard.map(({ type }) => type), ["start", "mount", "takeFile", "run"]);
  kernel.drop("a.txt");
  kernel.restart();
  await kernel.run(running("say a"));
  assert.deepEqual(Python.all[2].heard.map(({ type }) => type), ["start", "mount", "run"]);
  kernel.mount("/published", []);
  assert.deepEqual(Python.all[2].heard.at(-1), { type: "mount", folder: "/published", files: [] });
  assert.ok(!Python.all[2].heard.some((message) => Object.values(message).some((value) => typeof value === "function")));
});

// An early start -----------------------------------------------------------------------------------------------------

const FAST = { saveData: false, effectiveType: "4g" };

// A page with one cell and how it was started; `deeds` are what a reader does.
function early(t, { connection = FAST, asked = [], visible = "visible" } = {}) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  openPage('<div class="bar"><button>Run</button></div>', { asked });
  navigator.connection = connection;
  document.visibilityState = visible;
  globalThis.innerHeight = 800;
  const bar = document.querySelector(".bar"), on = (type) => () => bar.dispatchEvent(happening(type));
  const page = { started: 0, bottom: 100, wait: (ms) => t.mock.timers.tick(ms) };
  bar.getBoundingClientRect = () => ({ bottom: page.bottom });
  startEarly([bar], () => { page.started += 1; });
  const scroll = () => dispatchEvent(new Event("scroll"));
  return Object.assign(page, { hover: on("pointerover"), leave: on("pointerout"), focus: on("focusin"), blur: on("focusout"), scroll });
}

test("Python starts once where a press is likely", (t) => {
  for (const [deed, ms] of [["hover", 150], ["focus", 150], ["scroll", 1500]]) {
    const page = early(t);
    page[deed]();
    page.wait(ms - 1);
    assert.equal(page.started, 0);
    page.wait(1);
    assert.equal(page.started, 1, deed);
    for (const again of ["hover", "focus", "scroll"]) page[again]();
    page.wait(5000);
    assert.equal(page.started, 1);
    t.mock.timers.reset();
  }
});

test("scrolling past or the first screen does not start Python", (t) => {
  const page = early(t);
  for (const [come, go] of [["hover", "leave"], ["focus", "blur"]]) {
    page[come]();
    page.wait(149);
    page[go]();
  }
  page.scroll();
  page.wait(1499);
  page.scroll();
  page.wait(1499);
  page.bottom = 401; // the first cell is still there
  page.scroll();
  page.wait(5000);
  assert.equal(page.started, 0);
});

test("on a metered connection or a hidden page Python waits for the press", (t) => {
  for (const [about, starts] of [
    [{ connection: { saveData: true, effectiveType: "4g" } }, 0], [{ connection: { effectiveType: "3g" } }, 0],
    [{ connection: { ...FAST, type: "cellular" } }, 0], [{ asked: ["(prefers-reduced-data: reduce)"] }, 0],
    [{ connection: null }, 0], [{ connection: null, asked: ["(hover: hover)"] }, 1], [{ visible: "hidden" }, 0],
  ]) {
    const page = early(t, about);
    page.hover();
    page.wait(5000);
    assert.equal(page.started, starts, JSON.stringify(about));
    t.mock.timers.reset();
  }
});

// The service worker -------------------------------------------------------------------------------------------------

test("running cells registers the service worker, without waiting for it long", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  openPage();
  const asked = [], heard = {};
  const workers = { register: async (address) => asked.push(String(address)), addEventListener: (type, act) => { heard[type] = act; } };
  globalThis.isSecureContext = true;
  navigator.serviceWorker = workers;
  for (const end of [() => heard.controllerchange(), () => t.mock.timers.tick(1000)]) {
    const there = registerServiceWorker("https://book.test/");
    await turn();
    end();
    await there;
  }
  assert.deepEqual(asked, Array(2).fill("https://book.test/service-worker.js"));
  workers.register = async () => { throw new Error("refused"); };
  await registerServiceWorker("https://book.test/");
  workers.controller = { scriptURL: "https://book.test/another.js" };
  workers.register = async (address) => { workers.controller.scriptURL = address; heard.controllerchange(); };
  await registerServiceWorker("https://book.test/");
  assert.equal(workers.controller.scriptURL, asked[0]);
  workers.register = () => assert.fail("it is there");
  await registerServiceWorker("https://book.test/");
});

const SITE = "https://book.test/";

// The service worker with a cache of its own, and `ask`, which gives what a page gets.
function worker({ caches = undefined } = {}) {
  const kept = new Map(), acts = {}, fetched = [];
  const cache = {
    match: async (url) => kept.get(url)?.clone(),
    put: async (url, response) => { kept.set(url, new Response(await response.arrayBuffer(), response)); },
    keys: async () => [...kept.keys()].map((url) => ({ url })),
    delete: async ({ url }) => kept.delete(url),
  };
  const serve = { status: 200, type: "text/javascript" };
  const fetch = async ({ url }) => {
    fetched.push(url.replace(SITE, ""));
    return new Response(`body of ${url}`, { status: serve.status, headers: { "Content-Type": serve.type } });
  };
  runInNewContext(readFileSync(new URL("../../book/_runtime/service-worker.js", import.meta.url), "utf8"), {
    addEventListener: (type, act) => { acts[type] = act; }, caches: caches ?? { open: async () => cache },
    fetch, location: { href: `${SITE}service-worker.js` }, URL, Headers, Response, Promise, clients: {}, skipWaiting() {},
  });
  const ask = async (path, { mode = "cors", destination = "", method = "GET", reloads = false } = {}) => {
    const waiting = [];
    let given = null;
    acts.fetch({
      request: { url: SITE + path, mode, destination, method, isReloadNavigation: reloads },
      waitUntil: (promise) => waiting.push(promise), respondWith: (promise) => { given = promise; },
    });
    const got = await given;
    await Promise.all(waiting);
    return got;
  };
  return { ask, fetched, serve, hear: (data) => acts.message({ data }), names: () => [...kept.keys()].map((url) => url.replace(SITE, "")) };
}

test("the book's pages and its worker get the headers of isolation, nothing else does", async () => {
  const { ask, names } = worker();
  for (const [path, how] of [["book/a.html", { mode: "navigate" }], ["_static/live/python_worker.js", { destination: "worker" }]]) {
    const { headers } = await ask(path, how);
    assert.equal(headers.get("Cross-Origin-Opener-Policy"), "same-origin");
    assert.equal(headers.get("Cross-Origin-Embedder-Policy"), "require-corp");
    assert.ok(headers.get("Content-Type"));
  }
  for (const [path, how] of [["index.html", { mode: "navigate" }], ["_static/a.js", {}], ["_static/a.js?v=1", { method: "POST" }], ["a.js?v=1", {}]]) {
    assert.equal(await ask(path, how), null, path);
  }
  assert.deepEqual(names(), [], "a page is never kept");
});

test("Python is told once that its reader wants to stop, and nothing else is asked for it", async () => {
  const { ask, hear, fetched } = worker(), said = async (word) => (await ask(`_static/live/stop?${word}`)).text();
  assert.equal(await said("a-1"), "go");
  hear({ stop: "a-1" });
  assert.deepEqual([await said("a-2"), await said("a-1"), await said("a-1")], ["go", "stop", "go"]);
  assert.deepEqual(fetched, []);
});

test("a file is not requested again until its version changes", async () => {
  const { ask, fetched, serve, names } = worker();
  for (let i = 0; i < 2; i += 1) for (const path of ["_static/book.js?v=1", "_static/live/python.bin?v=1", "_static/pkg-1.2.whl"]) await ask(path);
  assert.deepEqual(fetched, ["_static/book.js?v=1", "_static/live/python.bin?v=1", "_static/pkg-1.2.whl"]);
  assert.equal(await (await ask("_static/book.js?v=1")).text(), `body of ${SITE}_static/book.js?v=1`);
  await ask("_static/live/python.bin?v=2");
  await ask("_static/pkg-1.3.whl");
  assert.deepEqual(names(), ["_static/book.js?v=1", "_static/live/python.bin?v=2", "_static/pkg-1.3.whl"]);
  serve.status = 404;
  assert.equal((await ask("_static/lost.js?v=1")).status, 404);
  Object.assign(serve, { status: 200, type: "text/html; charset=utf-8" });
  await ask("_static/page?v=1");
  assert.equal(names().length, 3);
});

test("a reload brings small files again, and a bounded number is kept", async () => {
  const { ask, names } = worker();
  for (let i = 0; i < 70; i += 1) await ask(`_static/${i}.js?v=1`);
  assert.deepEqual([names().length, names()[0]], [60, "_static/10.js?v=1"]);
  await ask("_static/live/python.bin?v=1");
  await ask("book/a.html", { mode: "navigate", reloads: true });
  assert.deepEqual(names(), ["_static/live/python.bin?v=1"]);
});

test("without a cache everything comes from the network", async () => {
  const refuse = async () => { throw new DOMException("refused"); };
  const one = worker({ caches: { open: refuse } });
  for (let i = 0; i < 2; i += 1) assert.equal((await one.ask("_static/book.js?v=1")).status, 200);
  assert.equal(one.fetched.length, 2);
  const full = worker({ caches: { open: async () => ({ match: refuse, put: refuse, keys: async () => [] }) } });
  assert.equal((await full.ask("_static/book.js?v=1")).status, 200);
});

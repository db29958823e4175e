// The states of the live cells, in a page without a browser and with a Python that knows a few words (live.mjs).

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { happening } from "./dom.mjs";
import { Python, cell, openLive } from "./live.mjs";

afterEach(() => globalThis.tinytorchLive?.kernel.restart());

const report = (passed, more = {}) => `tell ${JSON.stringify({
  kind: "report", slot: 1, name: "ex", cells: ["code"], points: 2, passed, untouched: false,
  checks: [{ state: passed ? "passed" : "not yet", claim: "it adds", given: "1", expected: "2", got: "3", hint: "axis=-1" }], ...more,
})}`;

// Four quick cells and a stub; the fourth needs the first and the third, the stub needs the first.
const FOUR = ["a = 1", "say two", "b = 2\nsay three", "uses a\nuses b\nsay four"];
const quick = (change = {}) => openLive(
  FOUR.map((code, i) => cell(code, { output: i === 3 ? "four\n" : "" })).join("")
    + cell(`uses a\n${report(false)}`, { tags: ["exercise-stub"], output: "Write it" }),
  [{ expected: 0.1, ...change }, { expected: 0.1 }, { expected: 0.1 }, { expected: 0.1, missing: { names: ["a", "b"], needed: [0, 2] } },
    { expected: 0.1, tags: ["exercise-stub"], missing: { names: ["a"], needed: [0] } }],
);

// Running ------------------------------------------------------------------------------------------------------------

test("a double click runs a cell once, announces and keeps its output", async () => {
  const live = await openLive(cell("say hello\nsay you", { output: "stored\n" }), [{}]);
  assert.equal(document.documentElement.dataset.live, "ready");
  assert.equal(live.cell(1).output.text, "stored\n");
  assert.equal(Python.all.length, 0, "before the first press there is no Python");
  const { runButton } = live.cell(1);
  runButton.dispatchEvent(happening("click", { detail: 1 }));
  runButton.dispatchEvent(happening("click", { detail: 2 }));
  assert.equal(runButton.getAttribute("aria-label"), "Stop cell 1");
  assert.equal(await live.ended(1), "hello\nyou\n");
  assert.equal(live.status(1), "ran in 0.0 s");
  assert.equal(live.voice.textContent, "cell 1: finished\nhello\nyou");
  assert.equal(runButton.getAttribute("aria-label"), "Run cell 1");
  assert.equal(Python.all[0].heard.filter(({ type }) => type === "run").length, 1);
  assert.ok(live.cell(1).output.own);
  live.press(1, "Reset");
  assert.equal(live.cell(1).output.text, "stored\n");
  assert.equal(document.activeElement, runButton);
});

test("a character that has no sign is shown as Python writes it, as in the stored output", async () => {
  const said = (message) => `tell ${JSON.stringify(message)}`;
  const live = await openLive(cell([
    said({ kind: "stream", name: "stdout", text: "ho\x15 one\x85\ufffe\ttwo😀\n" }),
    said({ kind: "display", slot: 1, text: "\x02se" }), said({ kind: "error", text: "no \x1e" }),
  ].join("\n")), [{}]);
  live.press(1, "Run");
  assert.equal(await live.ended(1), "ho\\x15 one\\x85\\ufffe\ttwo😀\n\\x02se\nno \\x1e\n");
});

test("Python receives a cell's code and options", async () => {
  const live = await openLive(cell("a = 1") + cell("say b"), [{}, { alt: "A dog." }]);
  live.press(2, "Run");
  await live.ended(2);
  const [start, { id, ...run }] = Python.all[0].heard;
  assert.deepEqual(run, {
    type: "run", source: "say b", above: ["a = 1"], force: false, asserts: true, title: "Cell 2", alt: "A dog.", prefix: "tt-live-2",
  });
  assert.ok(id > 0 && start.runtime === "https://book.test/pyodide/" && start.patience === 10 && start.bytes === 9e6);
  assert.ok(start.snapshot.endsWith("/live/python.bin") && start.interrupt === null);
});

test("the output is announced once and shortened", async () => {
  const lines = Array.from({ length: 100 }, (_, i) => `say line ${i}`).join("\n");
  const live = await openLive(cell(lines) + cell(`say ${"x".repeat(300)}`), [{}, {}]);
  live.press(1, "Run");
  await live.ended(1);
  assert.equal(live.voice.textContent, "cell 1: finished\nline 0\nline 1\nline 2\nand 97 more lines");
  live.press(2, "Run");
  await live.ended(2);
  assert.equal(live.voice.textContent, `cell 2: finished\n${"x".repeat(200)} …`);
});

test("no message takes the place of another, an error interrupts, and what has been read goes", async (t) => {
  const live = await openLive(cell("say a") + cell("fail E"), [{}, {}]);
  const texts = (region) => region.children.map((each) => each.textContent);
  live.press(1, "Run");
  live.press(2, "Run");
  await live.ended(2, "error");
  live.cell(1).reset();
  assert.deepEqual(texts(live.said), ["Loading Python", "cell 1: finished\na", "cell 1 is as the book has it"]);
  assert.deepEqual(texts(live.errors), ["cell 2: It is E."]);
  const later = performance.now() + 11_000;
  t.mock.method(performance, "now", () => later);
  live.cell(2).reset();
  assert.deepEqual(texts(live.said), ["cell 2 is as the book has it"]);
});

test("long output and progress lines are kept short", async () => {
  const live = await openLive(cell("say 1 %\\r2 %\\r99 %\nsay long\\rs") + cell(`say ${"y".repeat(250_000)}\nsay z`), [{}, {}]);
  live.press(1, "Run");
  assert.equal(await live.ended(1), "99 %\nsong\n");
  live.press(2, "Run");
  const text = await live.ended(2);
  assert.ok(text.includes("(the rest of what this cell prints is left out)") && !text.includes("z"));
});

test("an error is explained before its traceback, and an unsupported action names where it is possible", async () => {
  const live = await openLive(cell("fail NameError") + cell('tell {"kind": "limit", "text": "No torch.", "where": ["Colab", "Binder"]}\nfail E'), [{}, {}]);
  live.press(1, "Run");
  await live.ended(1, "error");
  const box = live.cell(1).output.box;
  assert.equal(box.textContent, "It is NameError.Traceback\nNameError: it failed\n");
  assert.equal(live.status(1), "ended with an error");
  assert.equal(live.voice.textContent, "cell 1: It is NameError.");
  live.press(2, "Run");
  await live.ended(2, "error");
  const note = live.cell(2).output.box.querySelector(".tt-live__note");
  assert.equal(note.textContent, "No torch. Run this in Colab.");
  assert.equal(note.querySelector("a").href, "https://colab.test/");
  assert.equal(live.voice.textContent, "cell 2: It is E.\nNo torch.");
});

test("the reader's line in a traceback is marked, and the frames of packages are folded", async () => {
  const error = { kind: "error", name: "E", text: "Traceback\n  x @ y\nE: no", marked: "  x @ y\n", whole: "Traceback\n  x @ y\n  ops\nE: no" };
  const live = await openLive(cell(`tell ${JSON.stringify(error)}\nfail`), [{}]);
  live.press(1, "Run");
  assert.ok((await live.ended(1, "error")).startsWith("Traceback\n  x @ y\nE: no\n"));
  assert.equal(live.cell(1).output.box.querySelector(".tt-live__line").textContent, "  x @ y\n");
  assert.equal(live.cell(1).output.box.querySelector("details").textContent, `All frames${error.whole}\n`);
});

test("displays, files and figures keep the order of arrival", async () => {
  const file = { kind: "file", name: "a.html", text: "x" }, shown = (text) => ({ kind: "display", slot: 1, text });
  const sent = [shown("one"), { kind: "figure", svg: '<svg class="tt-figure"></svg>' }, file, shown("two")];
  const live = await openLive(cell(sent.map((each) => `tell ${JSON.stringify(each)}`).join("\n")), [{}]);
  live.press(1, "Run");
  assert.equal(await live.ended(1), "two\n", "a display that is changed keeps its place");
  assert.deepEqual(live.cell(1).output.box.children.map(({ localName }) => localName), ["div", "figure", "a"]);
  assert.equal(live.cell(1).output.box.querySelector("a").textContent, "Download a.html");
  assert.equal(live.voice.textContent, "cell 1: finished\ntwo\n1 figure");
});

test("a cell that is not for a page has no button", async () => {
  const live = await openLive(cell("say a") + cell("say b"), [{ tags: ["live-skip"] }, {}]);
  assert.equal(live.cell(1).bar.textContent, "not run in the browser");
  assert.equal(live.cell(1).bar.querySelectorAll("button").length, 0);
});

// What is above ------------------------------------------------------------------------------------------------------

test("only the cells that a check needs run before it", async () => {
  const live = await quick();
  live.press(5, "Check");
  await live.until(() => live.status(5) === "Not yet. 1 cell above ran first.");
  assert.ok(live.voice.textContent.endsWith("1 cell above ran first."));
  assert.ok(live.heard.at(-2).includes("Not yet: 0 of 1 check passed. The first that does not hold: it adds."));
  assert.equal(live.cell(5).runButton.getAttribute("aria-label"), "Check exercise 1");
  assert.deepEqual(live.ran, [1, 5]);
});

test("all cells above a cell run first, with their progress shown", async () => {
  const live = await quick(), said = [], { say } = live.cell(4);
  live.cell(4).say = (text, state) => { said.push(text); say.call(live.cell(4), text, state); };
  live.press(4, "Run");
  await live.until(() => live.status(4).endsWith("3 cells above ran first."));
  assert.equal(live.cell(4).output.text, "four\n");
  assert.deepEqual(live.ran, [1, 2, 3, 4]);
  const steps = [...new Set(said.filter((text) => text.startsWith("Running cell")))];
  assert.deepEqual(steps, [1, 2, 3].map((i) => `Running cell ${i} above: ${i} of 3`));
});

for (const [why, change, act] of [
  ["takes long", { expected: 2.1 }], ["takes a time that nobody knows", { expected: undefined }],
  ["has a smaller run", { smaller: { name: "a", value: 2 } }], ["was changed", {}, (live) => live.cell(1).write("a = 1\nmine = 1")],
]) {
  test(`what ${why} is offered and not run unasked`, async () => {
    for (const [number, name] of [[4, "Run"], [5, "Check"]]) {
      const live = await quick(change);
      act?.(live);
      live.press(number, name);
      const needed = live.button("Run what it needs", live.cell(number).element);
      assert.ok(needed);
      assert.equal(document.activeElement.closest(".tt-live__above"), live.cell(number).above);
      assert.equal(Boolean(live.button("Run all above (3 cells", live.cell(number).element)), name === "Run");
      assert.equal(live.kernel.count ?? 0, 0, "known without Python");
      assert.ok(live.voice.textContent.startsWith("Needs "));
      needed.click();
      await live.ended(number);
      assert.deepEqual(live.ran, name === "Run" ? [1, 3, 4] : [1, 5]);
    }
  });
}

test("Run to here runs what is above that has not run, says how long it takes, and can be stopped", async () => {
  const live = await quick({ expected: 5 }), toHere = live.cell(4).button.toHere;
  assert.ok(live.cell(1).button.toHere.hidden, "nothing is above it");
  assert.equal(toHere.textContent, "Run to here, about 5 s");
  assert.equal(toHere.getAttribute("aria-label"), "Run to here, about 5 s: 3 cells above, then cell 4");
  live.press(2, "Run");
  await live.ended(2);
  assert.ok(toHere.getAttribute("aria-label").includes(": 2 cells above"));
  live.cell(1).write("a = 1\nforever");
  toHere.click();
  await live.until(() => live.cell(1).element.dataset.live === "running");
  assert.ok(toHere.hidden && live.status(4) === "Running cell 1 above: 1 of 2");
  live.press(4, "Stop");
  await live.until(() => live.status(4) === "Stopped");
  live.cell(1).write("a = 1");
  assert.ok(!toHere.hidden);
  live.press(4, "Run to here");
  await live.ended(4);
  assert.deepEqual(live.ran, [1, 2, 3, 4]);
  assert.ok(toHere.hidden && live.cell(5).button.toHere.hidden, "nothing above is left to run");
});

const ALL = '<p class="tt-live-intro" hidden>Run it. <button class="tt-live__all" disabled>Run all cells</button></p>';
const BAR = '<div class="article-header-buttons"><button class="tt-live__all" disabled>Run all</button></div>';
const whole = (codes, infos = codes.map(() => ({}))) => openLive(
  codes.map((code, i) => cell(code, { tags: infos[i].tags })).join(""), infos, { body: ALL });
const head = () => document.querySelector(".tt-live-intro");

test("one press at the head runs all cells but the exercises, and says so", async () => {
  const stub = { tags: ["exercise-stub"] }, skipped = { tags: ["live-skip"] };
  const live = await whole(["a = 1", "uses a", "say stub", "say never"], [{ expected: 4 }, {}, stub, skipped]);
  const all = live.button("Run all cells");
  assert.ok(!all.disabled && !head().hidden);
  all.click();
  assert.equal(all.textContent, "Stop");
  assert.ok(head().textContent.endsWith("Cell 1 of 2, about 4 s in all"));
  await live.until(() => all.textContent === "Run all cells");
  assert.ok(head().textContent.endsWith("All cells have run."));
  assert.ok(live.voice.textContent.endsWith("All cells have run."));
  assert.deepEqual([1, 2, 3].map((n) => live.cell(n).ran !== null), [true, true, false]);
  all.click();
  await live.until(() => all.textContent === "Run all cells");
  assert.equal(Python.all[0].heard.filter(({ type }) => type === "run").length, 2, "none runs twice");
});

test("where the cells need the published model, it is to be fetched first", async () => {
  const panel = '<section class="tt-talk" data-state="none"><button>Fetch the model</button></section>';
  const live = await openLive(cell("say a"), [{}], { body: ALL + panel.replace("tt-talk", "tt-talk tt-none") });
  live.button("Run all cells").click();
  assert.ok(head().textContent.endsWith("fetch it first, just below."));
  assert.equal(live.cell(1).ran, null);
});

test("running all cells ends at one that fails, or when it is stopped", async () => {
  let live = await whole(["say a", "fail it", "say c"]);
  live.button("Run all cells").click();
  await live.until(() => head().textContent.endsWith("Cell 2 failed: fix it first."));
  assert.equal(live.cell(3).ran, null);
  live = await whole(["say a", "forever", "say c"]);
  const all = live.button("Run all cells");
  all.click();
  await live.until(() => live.cell(2).element.dataset.live === "running");
  all.click();
  await live.until(() => all.textContent === "Run all cells");
  assert.ok(head().textContent.endsWith("Stopped at cell 2."));
  assert.equal(live.cell(3).ran, null);
});

test("the toolbar's button does the same, and shows how far it is", async () => {
  const live = await openLive(cell("say a") + cell("forever") + cell("say c"), [{ expected: 40 }, {}, {}], { body: BAR + ALL });
  const bar = document.querySelector(".article-header-buttons button");
  assert.equal(bar.getAttribute("aria-label"), "Run all cells, about 40 s");
  bar.click();
  await live.until(() => bar.textContent === "Stop 2/3");
  assert.ok(head().textContent.includes("Cell 2 of 3, about 40 s in all"));
  assert.ok(live.button("Stop running all cells", head()), "both stop it");
  bar.click();
  await live.until(() => bar.textContent === "Run all");
  assert.ok(head().textContent.endsWith("Stopped at cell 2."));
});

test("Python is asked which names are missing if the build does not know", async () => {
  const live = await openLive(cell("a = 1") + cell("uses a") + cell("uses nothing"), [{ expected: 9 }, {}, {}]);
  live.press(2, "Run");
  await live.until(() => live.cell(2).above);
  assert.equal(live.cell(2).above.textContent, "Needs a from above.Run all above (1 cell, about 9 s)");
  live.press(3, "Run");
  await live.ended(3, "error"); // nothing above defines it: Python says so itself
});

test("waiting for the cells above can be stopped", async () => {
  const live = await quick();
  live.cell(1).write("a = 1\nforever");
  live.press(4, "Run");
  live.press(4, "Run all above");
  await live.until(() => live.cell(1).element.dataset.live === "running");
  assert.equal(live.status(4), "Running cell 1 above: 1 of 3");
  live.press(4, "Stop");
  await live.until(() => live.status(4) === "Stopped");
  assert.ok(live.button("Run", live.cell(4).element));
  assert.deepEqual(live.ran, []);
});

test("a cell above that fails is named", async () => {
  const live = await quick();
  live.cell(1).write("fail Error");
  live.press(4, "Run");
  live.press(4, "Run all above");
  await live.until(() => live.status(4) === "Cell 1 above failed: fix it first");
  assert.ok(live.voice.textContent.includes("Cell 1 above failed"));
});

test("a smaller run stands beside the stored one", async () => {
  const live = await openLive(cell("steps = 600\nsay steps = 1_000", { output: "stored\n" }), [{ expected: 40, smaller: { name: "steps", value: 3 } }]);
  const one = live.cell(1);
  assert.equal(live.status(1), "about 40 s in the browser; the first press loads Python, 9 MB");
  assert.equal(one.size.value, "3");
  one.size.value = "7";
  live.press(1, "Smaller run");
  await live.ended(1);
  const [{ source, asserts }] = Python.all[0].heard.filter(({ type }) => type === "run");
  assert.equal(source, "steps = 7\nsay steps = 1_000", "only where it is set first");
  assert.equal(asserts, false);
  assert.equal(one.source, "steps = 600\nsay steps = 1_000");
  assert.ok(live.status(1).startsWith("steps = 7, ran in"));
  assert.ok(one.output.box.textContent.startsWith("Your smaller run"));
  assert.ok(one.element.textContent.includes("stored"), "beside it");
});

// Stop, and what does not come ---------------------------------------------------------------------------------------

test("without shared memory Stop ends Python, and the names with it", async () => {
  const live = await openLive(cell("a = 1") + cell("forever"), [{}, {}]);
  navigator.serviceWorker = { controller: {} };
  live.press(1, "Run");
  await live.ended(1);
  live.press(2, "Run");
  await live.until(() => live.cell(2).element.dataset.live === "running");
  assert.equal(live.kernel.canInterrupt, false);
  live.press(2, "Stop");
  await live.ended(2, "stopped");
  assert.equal(live.status(2), "Stopped, and Python with it: run the cells above again. Once you have reloaded the page, Stop ends the cell alone");
  assert.ok(Python.all[0].ended);
  assert.deepEqual(live.ran, []);
});

test("on a first visit the service worker hands Stop on, and the names stay", async () => {
  const live = await openLive(cell("a = 1") + cell("forever") + cell("uses a\nsay a"), [{}, {}, {}]);
  navigator.serviceWorker = { controller: { postMessage: ({ stop }) => Python.told.add(stop) } };
  Python.begins = (python) => python.say({ type: "ready", times: {}, word: python.word });
  live.press(1, "Run");
  await live.ended(1);
  for (let i = 0; i < 2; i += 1) { // each run has a word of its own
    live.press(2, "Run");
    await live.until(() => live.cell(2).element.dataset.live === "running");
    live.press(2, "Stop");
    await live.ended(2, "error");
    assert.equal(live.status(2), "Stopped");
    live.cell(2).element.dataset.live = "";
  }
  live.press(3, "Run");
  assert.equal(await live.ended(3), "a\n");
  assert.equal(Python.all.length, 1);
});

test("with shared memory Stop interrupts the cell alone; a second press ends Python", async () => {
  const live = await openLive(cell("a = 1\nforever"), [{}]);
  globalThis.crossOriginIsolated = true;
  live.press(1, "Run");
  await live.until(() => live.cell(1).element.dataset.live === "running");
  live.press(1, "Stop");
  await live.ended(1, "error");
  assert.equal(live.status(1), "Stopped");
  assert.equal(live.kernel.state, "ready");
  live.press(1, "Run");
  await live.until(() => live.cell(1).element.dataset.live === "running");
  assert.equal(Python.all[0].interrupt[0], 0, "a new run begins uninterrupted");
  Object.defineProperty(Python.all[0], "interrupt", { value: null }); // it hears nothing
  live.press(1, "Stop");
  live.press(1, "Stop");
  await live.ended(1, "stopped");
  assert.equal(live.kernel.state, "off");
});

test("while Python loads, its bytes are counted beside the cells that wait", async () => {
  const live = await openLive(cell("say a"), [{}]);
  let python;
  Python.begins = (started) => { python = started; };
  live.kernel.load();
  await live.until(() => python);
  const count = { type: "progress", text: "Loading Python", bytes: 4e6, total: 9e6 };
  python.say(count);
  assert.equal(live.status(1), "", "nobody waits");
  live.press(1, "Run");
  assert.equal(live.status(1), "Loading Python: 4.0 of 9.0 MB …");
  python.say({ ...count, bytes: 5e6 });
  const bar = live.cell(1).bar.querySelector("progress");
  assert.deepEqual([live.status(1), Number(bar.value), Number(bar.max)], ["Loading Python: 5.0 of 9.0 MB …", 5e6, 9e6]);
  assert.ok(live.voice.textContent.startsWith("Loading Python"));
  python.say({ type: "ready", times: {} });
  await live.ended(1);
  assert.equal(document.querySelectorAll("progress").length, 0);
  assert.equal(Python.all.length, 1);
});

test("only a page that has announced Python at its head loads it unasked", async (t) => {
  const said = "the first press loads Python, 9 MB", markup = cell("say a") + cell("say b");
  for (const [body, before, starts] of [["", said, 0], ['<p class="tt-live-intro" hidden></p>', "", 1]]) {
    const live = await openLive(markup, [{}, {}], { body });
    assert.deepEqual([live.status(1), live.status(2)], [before, before]);
    t.mock.timers.enable({ apis: ["setTimeout"] });
    navigator.connection = { saveData: false, effectiveType: "4g" };
    document.visibilityState = "visible";
    globalThis.innerHeight = 800;
    live.cell(1).bar.getBoundingClientRect = () => ({ bottom: 0 });
    live.cell(1).bar.dispatchEvent(happening("pointerover"));
    dispatchEvent(new Event("scroll"));
    t.mock.timers.tick(5000);
    t.mock.timers.reset();
    assert.equal(live.kernel.state === "off", !starts);
    live.press(1, "Run");
    await live.ended(1);
    assert.deepEqual([live.status(1), live.status(2)], ["ran in 0.0 s", ""]);
  }
});

test("what has not come yet is told in bytes and, after some seconds, in time", async () => {
  const { coming } = await import("../../book/_static/live/rows.js");
  const text = "Loading Python", half = { text, bytes: 3.8e6, total: 38e6 };
  for (const [about, seconds, line] of [
    [{ text }, 9, "Loading Python …"], [{}, 9, ""], [half, 1.9, "Loading Python: 3.8 of 38.0 MB …"],
    [half, 10, "Loading Python: 3.8 of 38.0 MB, about 2 min left …"], [half, 4, "Loading Python: 3.8 of 38.0 MB, about 36 s left …"],
    [{ ...half, bytes: 38e6 }, 9, "Loading Python: 38.0 of 38.0 MB …"], [{ text, bytes: 4e6 }, 9, "Loading Python: 4.0 MB …"],
  ]) assert.equal(coming(about, seconds), line);
});

test("a failed download is reported and can be retried", async () => {
  const live = await openLive(cell("say a"), [{}]);
  Python.begins = (python) => python.say({ type: "broken", text: "python.bin cannot be reached", load: true });
  live.press(1, "Run");
  await live.ended(1, "error");
  assert.equal(live.status(1), "Python could not be loaded: python.bin cannot be reached.");
  assert.equal(live.voice.textContent, live.status(1));
  Python.begins = (python) => python.say({ type: "ready", times: {} });
  live.press(1, "Try again");
  await live.ended(1);
  assert.equal(document.querySelectorAll(".tt-live__above").length, 0);
});

test("offline is reported, and Python loads once the connection is back", async () => {
  const live = await openLive(cell("say a"), [{}]);
  navigator.onLine = false;
  Python.begins = (python) => python.crash();
  live.press(1, "Run");
  const said = "No connection: Python could not be loaded. It is tried again when there is one.";
  await live.until(() => live.status(1) === said);
  live.button("Try again").focus();
  live.press(1, "Try again");
  assert.equal(document.activeElement, live.cell(1).runButton);
  await live.until(() => live.status(1) === said);
  Python.begins = (python) => python.say({ type: "ready", times: {} });
  dispatchEvent(new Event("online"));
  await live.ended(1);
});

test("after loading is stopped, the page says how to start again", async () => {
  const live = await openLive(cell("say a"), [{}]);
  Python.begins = () => {};
  live.press(1, "Run");
  await pause(5);
  live.press(1, "Stop");
  await live.ended(1, "stopped");
  assert.equal(live.status(1), "Stopped before Python was loaded: press Run to load it");
});

test("Python restarts after it ends unexpectedly", async () => {
  const live = await openLive(cell("forever"), [{}]);
  live.press(1, "Run");
  await live.until(() => live.cell(1).element.dataset.live === "running");
  Python.all[0].crash();
  await live.ended(1, "error");
  assert.equal(live.status(1), "Python could not run here: it ended unexpectedly.");
  live.cell(1).write("say again");
  live.press(1, "Run");
  assert.equal(await live.ended(1), "again\n");
});

// What is kept -------------------------------------------------------------------------------------------------------

test("edits survive a reload until they are reset", async () => {
  const live = await openLive(cell("say a"), [{}]);
  live.cell(1).write("say mine");
  assert.ok(live.cell(1).element.classList.contains("tt-live--changed"));
  const again = await openLive(cell("say a"), [{}], { kept: { ...localStorage } });
  assert.equal(again.cell(1).source, "say mine");
  again.press(1, "Reset");
  assert.deepEqual(Object.keys(localStorage), []);
  const other = await openLive(cell("say other"), [{}], { kept: { "tinytorch-book:edits:book/a 1": '{"of":"say a","text":"say mine"}' } });
  assert.equal(other.cell(1).source, "say other", "an edit of what the book no longer has is not shown");
});

test("another tab's edit of a cell is offered beside one's own", async () => {
  const live = await openLive(cell("say a"), [{}]), key = "tinytorch-book:edits:book/a 1", one = live.cell(1);
  const elsewhere = (text) => {
    localStorage.setItem(key, JSON.stringify({ of: "say a", text }));
    dispatchEvent(Object.assign(new Event("storage"), { key }));
  };
  const offer = () => one.element.textContent.includes("Another tab has another text in this cell. Both are kept.");
  one.write("say mine");
  elsewhere("say theirs");
  assert.ok(offer() && one.source === "say mine");
  assert.deepEqual(JSON.parse(localStorage.getItem(key)), { of: "say a", text: "say theirs", other: "say mine" });
  live.press(1, "Show the other");
  assert.ok(one.source === "say theirs" && offer());
  live.press(1, "Show the other");
  live.press(1, "Forget the other");
  assert.ok(one.source === "say mine" && !offer() && document.activeElement === one.runButton);
  elsewhere("say mine");
  assert.ok(!offer(), "the same text is one");
});

test("a page that cannot store anything says so", async () => {
  const intro = '<p class="tt-live-intro" hidden>Run it. What you write stays on this page.</p>';
  await openLive(cell("say a"), [{}], { body: intro });
  const said = () => document.querySelector(".tt-live-intro");
  assert.ok(!said().hidden && said().textContent.endsWith("What you write stays on this page."));
  await openLive(cell("say a"), [{}], { body: intro, storage: "refused" });
  assert.ok(said().textContent.endsWith("This browser keeps nothing for the book: what you write and solve is forgotten when you leave the page."));
  assert.equal(document.documentElement.dataset.live, "ready");
});

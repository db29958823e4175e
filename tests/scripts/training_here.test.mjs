// A model that is trained in the page: what goes on between the page and its Python, what goes wrong there, what is kept,
// and what is shown. The Python of these tests takes steps whose losses say which they are; that the real one does what
// it is told is tested in a browser (tests/browser/test_training_here.py).

import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { beforeEach, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { happening, openPage } from "./dom.mjs";
import { close, floats, known } from "./known.mjs";

const PLAYGROUND = new URL("../../book/_static/playground/", import.meta.url);
const { KeptTraining, keptWeights } = await import(new URL("kept_training.js", PLAYGROUND));
const { MOMENTS_MB } = await import(new URL("layout.js", PLAYGROUND));
const { Model } = await import(new URL("model.js", PLAYGROUND));
const { playground } = await import(new URL("playground.js", PLAYGROUND));
const { readSafetensors } = await import(new URL("safetensors.js", PLAYGROUND));
const { trainingHere, withTrained } = await import(new URL("training_here.js", PLAYGROUND));
const { TrainingRun } = await import(new URL("training_run.js", PLAYGROUND));

const MODELS = known("trained").map(({ file, ...about }) => ({ ...about, file: new Uint8Array(Buffer.from(file, "base64")) }));
const fileOf = (size, steps = 0) => MODELS.find((one) => one.size === (steps > 30 ? "larger" : size)).file; // it changes as it learns
const lossAt = (seed, step) => 6 * 0.99 ** step + seed;
const FLOOR = 0.375;

// Stands in the place of the page's Kernel. `faults` are used up, one for each run: null for none, or a result; "before"
// is run first, as a cell that has been waiting.
class Kernel {
  constructor() {
    Object.assign(this, { worker: {}, state: "ready", settings: { bytes: 36e6 }, faults: [], ran: [], kept: new Map() });
    Object.assign(this, { files: new Map(), trainer: null, onstate: () => {} });
  }

  keep(job) {
    this.kept.set(job.name, job);
  }

  dies() {
    Object.assign(this, { worker: null, files: new Map(), trainer: null });
  }

  async run(job) {
    await pause(0);
    this.worker ??= {};
    if (job.type === "takeFile") {
      this.files.set(job.name, new Uint8Array(await job.blob.arrayBuffer()));
      return { type: "done", ok: true };
    }
    if (job.type === "readFile") return { type: "done", ok: this.files.has(job.name), bytes: this.files.get(job.name) };
    this.ran.push(job.source);
    const fault = this.faults.shift();
    if (fault) return fault(this, job);
    for (const line of job.source.split("\n")) this.#do(line, job);
    return { type: "done", ok: true };
  }

  #do(line, { onmessage }) {
    const made = /^training_here = live_trainer\("(\w+)", seed=(\d+)\)$/.exec(line);
    if (made) this.trainer = { size: made[1], seed: Number(made[2]), history: [] };
    const name = /"([\w.-]+)"/.exec(line)?.[1];
    if (line.startsWith("training_here.load(")) this.trainer.history = JSON.parse(new TextDecoder().decode(this.files.get(name)));
    if (line.startsWith("training_here.save(")) this.files.set(name, new TextEncoder().encode(JSON.stringify(this.trainer.history)));
    if (line.startsWith("save_trained(")) this.files.set(name, fileOf(this.trainer.size, this.trainer.history.length));
    const steps = Number(/^training_here\.run\((\d+)\)$/.exec(line)?.[1] ?? 0);
    for (let i = 1; i <= steps; i += 1) {
      const loss = lossAt(this.trainer.seed, this.trainer.history.length);
      this.trainer.history.push({ loss, validation: i === steps ? loss + 0.01 : null });
    }
    const told = /^print\(json\.dumps\(\[training_here\.floor, training_here\.history\[(\d+):\]\]\)\)$/.exec(line);
    if (told) onmessage({ kind: "stream", name: "stdout", text: `${JSON.stringify([FLOOR, this.trainer.history.slice(Number(told[1]))])}\n` });
  }
}

const fails = (name, text = `Traceback\n${name}: why`) => (_, { onmessage }) => {
  onmessage({ kind: "error", name, text });
  return { type: "done", ok: false };
};
const ends = (result) => (kernel) => {
  kernel.dies();
  return { lost: true, ...result };
};

// A browser's cache, in which the page keeps its files; `full` takes nothing more.
class Caches {
  places = new Map();
  full = false;

  async open(name) {
    if (!this.places.has(name)) this.places.set(name, new Map());
    const files = this.places.get(name);
    return {
      match: async (address) => files.get(String(address))?.clone(),
      put: async (address, response) => {
        if (this.full) throw new DOMException("full", "QuotaExceededError");
        files.set(String(address), response);
      },
    };
  }
}

beforeEach(() => {
  openPage("");
  globalThis.caches = new Caches();
});

// A run that has taken so many steps, and has paused.
async function trained(steps, { kernel = new Kernel(), kept = new KeptTraining(), size = "story", seed = 0 } = {}) {
  const run = new TrainingRun(kernel, kept, () => { if (run.step >= steps) run.pause(); });
  await run.start({ size, seed });
  run.changed = () => {};
  return run;
}

const upTo = (count, seed = 0) => Array.from({ length: count }, (_, step) => lossAt(seed, step));

// Lets it go on up to a step; gives the step at which it began.
async function goesOn(run, steps) {
  let least = Infinity;
  run.changed = () => {
    if (run.phase === "training") least = Math.min(least, run.step);
    if (run.step >= steps) run.pause();
  };
  await run.goOn();
  return least;
}

// The model ----------------------------------------------------------------------------------------------------------

test("the playground's engine gives the scores of the package, for a trained model of every size", () => {
  for (const { size, file, ids, logits, numbers } of MODELS) {
    const { tensors, metadata } = readSafetensors(file.slice().buffer);
    const reading = new Model(tensors, metadata).read(ids), expected = floats(logits), vocab = expected.length / ids.length;
    const found = ids.flatMap((_, at) => [...reading.logits(at)]);
    assert.equal(found.length, ids.length * vocab);
    close(found, expected, { rounding: 1e-4, share: 1e-5, what: size });
    assert.equal(metadata.step, "2");
    const source = readFileSync(new URL("training_here.js", PLAYGROUND), "utf8");
    assert.match(source, new RegExp(`"${size}", "[^"]*\\(${numbers.toLocaleString("en")}\\b`), "the panel says how many numbers it has");
  }
});

test("what the other moments of training weigh is said as it is", () => {
  const bytes = [0, 100, 500, 2000].map((step) => statSync(new URL(`weights/step-${step}.safetensors`, PLAYGROUND)).size);
  assert.equal((bytes.reduce((sum, one) => sum + one) / 1e6).toFixed(1), String(MOMENTS_MB));
});

test("the cell of the playground takes the trained model in place of the finished one", () => {
  const page = readFileSync(new URL("../../playground.md", PLAYGROUND), "utf8");
  const changed = withTrained(/```\{code-cell\} ipython3\n([^]*?)```/.exec(page)[1]);
  assert.match(changed, /^from tinytorch_book\.experiments\.live_training import load_trained$/m);
  assert.match(changed, /^gpt, tokenizer = load_trained\("yours\.safetensors"\), story_tokenizer\(\)$/m);
  assert.ok(!/load_story_gpt/.test(changed));
});

// Training -----------------------------------------------------------------------------------------------------------

test("a run is told step by step, with its floor and its held-out losses", async () => {
  const run = await trained(30, { seed: 2 });
  assert.deepEqual(run.losses, upTo(30, 2));
  assert.equal(run.floor, FLOOR);
  assert.deepEqual(run.heldOut.map(([step]) => step), [10, 20, 30]);
  assert.deepEqual(new Uint8Array(run.weights), fileOf("story"));
  assert.deepEqual([run.phase, run.why], ["paused", ""]);
});

test("a paused run goes on with the next step, and no step is taken meanwhile", async () => {
  const kernel = new Kernel(), run = await trained(20, { kernel });
  const before = kernel.ran.length;
  await pause(20);
  assert.equal(kernel.ran.length, before);
  await goesOn(run, 40);
  assert.deepEqual(run.losses, upTo(40));
  assert.equal(kernel.ran.filter((source) => source.includes("live_trainer(")).length, 1, "Python still has it");
});

test("pause and go on in one breath leave one loop", async () => {
  const kernel = new Kernel(), run = await trained(20, { kernel });
  run.changed = () => {};
  run.goOn();
  while (run.phase !== "training") await pause(1);
  run.pause();
  run.goOn();
  run.pause();
  run.goOn();
  while (run.step < 60) await pause(1);
  await run.pause();
  assert.deepEqual(run.losses, upTo(run.step), "none twice, none left out");
});

test("who goes on while the end of a pause is kept is not paused", async () => {
  let asked = false;
  const kept = { write: async () => {
    if (!asked) {
      asked = true;
      run.goOn();
    }
    return "";
  } };
  const run = new TrainingRun(new Kernel(), kept, () => { if (run.step === 10 && !asked || run.step >= 40) run.pause(); });
  await run.start({ size: "story", seed: 0 });
  assert.deepEqual([run.losses, run.phase], [upTo(40), "paused"]);
});

test("another seed begins anew, once, also while the first still trains", async () => {
  const kernel = new Kernel(), run = await trained(10, { kernel });
  run.changed = () => {};
  run.goOn();
  const both = [run.start({ size: "smaller", seed: 1 }), run.start({ size: "smaller", seed: 2 })];
  while (run.seed !== 1 || run.step < 20) await pause(1);
  await run.pause();
  await Promise.all(both);
  assert.deepEqual([run.size, run.seed, run.losses], ["smaller", 1, upTo(run.step, 1)]);
  assert.deepEqual(new Uint8Array(run.weights), fileOf("smaller", run.step));
});

// Faults -------------------------------------------------------------------------------------------------------------

const FAULTS = {
  "its worker dies": [ends({ type: "broken", text: "it ended unexpectedly" }), /^Python has ended: it ended unexpectedly\. The first 50 steps are safe/],
  "it is stopped and cannot be interrupted": [ends({ type: "stopped" }), /^Python was stopped, and the training with it\. The first 50/],
  "it has no memory": [fails("_ArrayMemoryError"), /^There is no memory left for this: .* a smaller model\. Nothing is lost/],
  "its worker has no memory": [ends({ type: "broken", text: "RangeError: Array buffer allocation failed" }), /^There is no memory left .* The first 50/],
  "a cell's Stop interrupts it": [fails("KeyboardInterrupt"), /^It was stopped together with a cell\. Nothing is lost: go on/],
  "a cell's Stop forgets it while it waits": [() => ({ type: "stopped", lost: false, loading: false }), /^It was stopped together with a cell\. Nothing/],
  "its loss is not finite": [fails("FloatingPointError", "Traceback\nFloatingPointError: the loss is nan"), /^It cannot go on: FloatingPointError: the loss is nan\./],
};

for (const [name, [fault, said]] of Object.entries(FAULTS)) {
  test(`when ${name}, a sentence says so and the same numbers come afterwards`, async () => {
    const kernel = new Kernel(), run = await trained(60, { kernel, kept: { write: async () => "" } });
    run.safe = 50;
    run.whole = new TextEncoder().encode(JSON.stringify(upTo(50).map((loss, i) => ({ loss, validation: (i + 1) % 10 ? null : loss + 0.01 }))));
    kernel.faults = [fault];
    await run.goOn();
    assert.match(run.why, said);
    assert.equal(run.phase, "paused");
    assert.ok(await goesOn(run, 80) >= 50, "not from the first step on");
    assert.deepEqual(run.losses, upTo(80));
    assert.equal(run.why, "");
  });
}

test("before anything is safe the same steps are taken again", async () => {
  const kernel = new Kernel(), run = new TrainingRun(kernel, new KeptTraining(), () => {
    if (run.step === 20 && !kernel.ended) kernel.faults = [ends({ type: "broken", text: "it ended" })];
    kernel.ended ||= run.step === 20;
  });
  await run.start({ size: "story", seed: 0 });
  assert.match(run.why, /^Python has ended: it ended\. Going on begins with the same random numbers, and takes the same steps again\./);
  await goesOn(run, 30);
  assert.deepEqual(run.losses, upTo(30));
});

test("without a network a sentence says so, and it begins when there is one", async () => {
  const kernel = new Kernel();
  navigator.onLine = false;
  kernel.faults = [ends({ type: "broken", load: true, text: "python.bin cannot be reached" })];
  const run = await trained(10, { kernel });
  assert.match(run.why, /^There is no connection, so Python could not be loaded; it goes on when there is one\. No step had been taken/);
  assert.ok(run.unreached);
  navigator.onLine = true;
  kernel.faults = [ends({ type: "broken", load: true, text: "the connection broke after 3 MB of python.bin" })];
  await run.goOn();
  assert.match(run.why, /^Python could not be loaded: the connection broke after 3 MB of python.bin\./);
  await goesOn(run, 10);
  assert.deepEqual([run.losses, run.unreached], [upTo(10), false]);
});

// Kept ---------------------------------------------------------------------------------------------------------------

test("after a closed tab it goes on where it was, to the same numbers", async () => {
  await trained(30, { seed: 3 });
  const kept = await new KeptTraining().read();
  const run = new TrainingRun(new Kernel(), new KeptTraining(), () => {});
  run.take(kept);
  assert.deepEqual([run.phase, run.size, run.seed, run.losses], ["paused", "story", 3, upTo(30, 3)]);
  assert.deepEqual(new Uint8Array(await keptWeights()), fileOf("story"));
  assert.equal(await goesOn(run, 50), 30);
  assert.deepEqual(run.losses, upTo(50, 3));
});

test("what is kept goes as far as the run that can go on", async () => {
  const run = await trained(20);
  run.losses.push(1, 2, 3); // steps that were taken since
  run.heldOut.push([23, 3]);
  run.stored = 0;
  await run.keep();
  const { losses, heldOut } = await new KeptTraining().read();
  assert.deepEqual([losses, heldOut.map(([step]) => step)], [upTo(20), [10, 20]]);
});

test("what cannot be kept is said, and the training goes on", async () => {
  globalThis.caches.full = true;
  const run = await trained(10);
  assert.match(run.unkept, /^There is no room to keep the model in this browser/);
  delete globalThis.caches;
  const other = await trained(10);
  assert.match(other.unkept, /^This browser keeps nothing for this page/);
  assert.deepEqual(other.losses, upTo(10));
  await assert.rejects(keptWeights(), /^Error: this browser has none$/);
  assert.equal(await new KeptTraining().read(), null);
});

test("a damaged store is as good as an empty one", async () => {
  await trained(10);
  for (const files of globalThis.caches.places.values()) {
    for (const name of files.keys()) if (name.endsWith("about")) files.set(name, new Response("{"));
  }
  assert.equal(await new KeptTraining().read(), null);
});

test("of two tabs that train one keeps, and the other says so", async () => {
  let held = false;
  navigator.locks = { request: async (_, __, hold) => {
    const lock = held ? null : {};
    held = true;
    return hold(lock);
  } };
  const one = await trained(10), other = await trained(10, { seed: 1 });
  assert.equal(one.unkept, "");
  assert.match(other.unkept, /^Another tab trains too, and only that one is kept/);
  assert.equal((await new KeptTraining().read()).seed, 0);
});

// The panel ----------------------------------------------------------------------------------------------------------

class Panel {
  static async open({ kernel = new Kernel(), cells = [], page } = {}) {
    if (!page) openPage('<div class="tt-play" data-size="compact"></div>', { address: "https://book.test/book/intro.html" });
    document.head.append = (link) => { setTimeout(() => link.dispatchEvent(happening("load"))); };
    globalThis.fetch = async (address) => new Response(readFileSync(new URL(address)));
    performance.getEntriesByType = () => [{ type: "navigate" }];
    await playground(document.querySelector(".tt-play"));
    globalThis.tinytorchLive = { kernel, cells };
    const it = new Panel();
    Object.assign(it, { kernel, play: globalThis.tinytorchPlay, heard: [] });
    it.panel = await trainingHere(it.play, it.play.parts.training);
    it.play.say = (text) => it.heard.push(text);
    return it;
  }

  part(name) {
    return this.panel.parts[name];
  }

  said(name) {
    return this.part(name).textContent;
  }

  press(name) {
    this.part(name).click();
  }

  async until(condition) {
    for (let i = 0; !condition(); i += 1) {
      if (i > 5000) throw new Error(`it never came that ${condition}; it says: ${this.said("state")}`);
      await pause(1);
    }
  }

  async trains(steps) {
    this.press("go");
    await this.until(() => this.panel.run.step >= steps);
    this.press("go");
    await this.until(() => this.panel.run.phase === "paused");
  }

  get rows() {
    return this.panel.bars.rows.map(({ element }) => element.textContent);
  }
}

test("the panel says what it loads and what it costs before it does", async () => {
  const kernel = new Kernel();
  kernel.state = "off";
  const panel = await Panel.open({ kernel });
  assert.match(panel.said("costs"), /\(36 MB, which the browser keeps\).* battery .* Nothing leaves this page\.$/);
  assert.deepEqual([kernel.ran, panel.said("go"), panel.part("seen").hidden], [[], "Start", true]);
  assert.match(panel.said("code"), /training_here = live_trainer\("story", seed=0\)\n.*training_here\.run\(10\)\n/s);
  assert.equal(document.activeElement, panel.part("go"));
});

test("the panel shows the loss, bars and what the model writes", async () => {
  const panel = await Panel.open();
  await panel.trains(20);
  assert.equal(panel.said("state"), "Paused after 20 steps (the book’s size, seed 0).");
  assert.equal(panel.said("loss"), "4.97 on stories that it has not read. Nobody can expect less than 0.38, the dashed line.");
  assert.match(panel.said("after"), /“One sunny morning”$/);
  assert.match(panel.said("common"), /^(Far|Some way) from the truth\./);
  await panel.until(() => panel.panel.texts.every(({ written }) => written.textContent));
  assert.equal(panel.part("picture").querySelectorAll("path").length, 4);
  assert.equal(panel.heard.filter((text) => text.startsWith("Training")).length, 1, "not at every piece");
});

test("the trained model is put into the playground, with its number of steps, and out of it again", async () => {
  const panel = await Panel.open(), { play } = panel;
  const finished = play.bars.rows[0].element.textContent;
  await panel.trains(10);
  panel.press("put");
  assert.equal(play.state.step, "mine");
  assert.match(play.parts.note.textContent, /^The model is your own, trained here: 2 steps\./); // as its file says
  assert.notEqual(play.bars.rows[0].element.textContent, finished);
  assert.deepEqual(play.bars.rows.slice(0, 3).map(({ element }) => element.textContent), panel.rows);
  await panel.until(() => panel.said("put") === "Take it out again");
  await panel.until(() => location.hash.includes("step=mine"));
  panel.press("put");
  assert.equal(play.state.step, 4000);
  assert.equal(play.bars.rows[0].element.textContent, finished);
});

test("what is put into the playground is followed by the focus", async () => {
  const panel = await Panel.open(), { play } = panel;
  await panel.trains(10);
  panel.press("put");
  assert.ok(play.parts.bars.contains(document.activeElement));
});

test("while it trains, little is said aloud", async () => {
  const panel = await Panel.open();
  let now = 0;
  performance.now = () => { now += 6000; return now; };
  await panel.trains(30);
  delete performance.now;
  const told = panel.heard.filter((text) => text.includes("surprise"));
  assert.ok(told.length && told.every((text) => /^\d+ steps, surprise \d\.\d\d\.$/.test(text)), told.join());
});

test("where the page's Python does not come, that is said and not that a press would help", async () => {
  const panel = await Panel.open(), { trainHere, training } = panel.play.parts;
  delete globalThis.tinytorchLive;
  let now = 0;
  performance.now = () => { now += 15_000; return now; };
  trainHere.click();
  await panel.until(() => panel.heard.length);
  delete performance.now;
  assert.match(training.textContent, /^The scripts of the page’s Python did not load: load the page again\.$/);
  assert.equal(panel.heard.at(-1), training.textContent);
});

test("the playground follows the model while it learns", async () => {
  const panel = await Panel.open(), { play } = panel;
  await panel.trains(10);
  panel.press("put");
  const early = panel.rows;
  await panel.trains(40);
  assert.notDeepEqual(panel.rows, early);
  assert.deepEqual(play.bars.rows.slice(0, 3).map(({ element }) => element.textContent), panel.rows);
});

test("a story that it writes in the playground is that of one model, and what was learned meanwhile comes after it", async () => {
  const panel = await Panel.open(), { play } = panel;
  await panel.trains(10);
  panel.press("put");
  const shown = play.thinking.reading([], play.state);
  play.writing = 1; // as while the words come one after the other
  await panel.trains(40);
  assert.deepEqual(play.thinking.reading([], play.state).logits(0), shown.logits(0));
  play.change({});
  await panel.until(() => String(play.thinking.reading([], play.state).logits(0)) !== String(shown.logits(0)));
  await panel.until(() => String(play.bars.rows.slice(0, 3).map(({ element }) => element.textContent)) === String(panel.rows));
});

test("a link to one's own model finds it in this browser, and says so where there is none", async () => {
  await (await Panel.open()).trains(10);
  const open = async () => {
    openPage('<div class="tt-play"></div>', { address: "https://book.test/book/playground.html#play&step=mine" });
    await playground(document.querySelector(".tt-play"));
    return globalThis.tinytorchPlay;
  };
  assert.equal((await open()).state.step, "mine");
  globalThis.caches = new Caches();
  const play = await open();
  assert.equal(play.state.step, 4000);
  assert.match(play.parts.note.textContent, /^The model that you trained could not be loaded: this browser has none\. This is the finished one\./);
});

test("at the next visit the panel offers to go on", async () => {
  await (await Panel.open()).trains(20);
  const panel = await Panel.open();
  assert.equal(panel.said("state"), "Paused after 20 steps (the book’s size, seed 0).");
  assert.equal(panel.said("go"), "Go on");
  assert.ok(!panel.part("seen").hidden);
  await panel.trains(40);
  assert.deepEqual(panel.panel.run.losses, upTo(40));
});

test("start again takes another seed unless the reader has chosen another model", async () => {
  const panel = await Panel.open(), { run } = panel.panel;
  await panel.trains(10);
  panel.press("again");
  await panel.until(() => run.seed === 1 && run.step >= 10);
  panel.part("size").value = "smaller";
  panel.press("again");
  await panel.until(() => run.size === "smaller" && run.step >= 10);
  assert.equal(run.seed, 1);
  await run.pause();
});

test("the file is Python's too, also of a new one, and the cell loads it", async () => {
  const cell = { original: "from tinytorch_book.experiments.story_gpt import load_story_gpt, story_tokenizer\n\ngpt, tokenizer = load_story_gpt(), story_tokenizer()" };
  Object.assign(cell, { write: (code) => { cell.code = code; }, runButton: document.createElement("button"), element: document.createElement("div") });
  const panel = await Panel.open({ cells: [cell] });
  await panel.trains(10);
  panel.press("python");
  assert.match(cell.code, /^gpt, tokenizer = load_trained\("yours\.safetensors"\)/m);
  assert.deepEqual(new Uint8Array(await panel.kernel.kept.get("yours.safetensors").blob.arrayBuffer()), fileOf("story"));
  const later = globalThis.setTimeout;
  globalThis.setTimeout = (act) => later(act, 0); // that the link is given up again
  panel.press("save");
  globalThis.setTimeout = later;
  assert.match(panel.said("done"), /^yours\.safetensors is among your downloads\. .*load_trained\("yours\.safetensors"\)\.$/);
});

test("a connection that comes back starts what had waited for it", async () => {
  const panel = await Panel.open();
  panel.kernel.faults = [ends({ type: "broken", load: true, text: "no" })];
  navigator.onLine = false;
  panel.press("go");
  await panel.until(() => panel.said("state").startsWith("There is no connection"));
  assert.equal(panel.said("go"), "Go on");
  navigator.onLine = true;
  dispatchEvent(new Event("online"));
  await panel.until(() => panel.panel.run.step >= 10);
  await panel.panel.run.pause();
});

test("in a hidden tab it trains, draws nothing and keeps what it has", async () => {
  const panel = await Panel.open(), { run } = panel.panel;
  panel.press("go");
  await panel.until(() => run.step >= 10);
  document.visibilityState = "hidden";
  document.dispatchEvent(new Event("visibilitychange"));
  await pause(5);
  const drawn = panel.said("loss");
  await panel.until(() => run.safe >= 50);
  document.dispatchEvent(new Event("visibilitychange"));
  assert.equal(run.stored, run.safe);
  assert.equal(panel.said("loss"), drawn);
  document.visibilityState = "visible";
  document.dispatchEvent(new Event("visibilitychange"));
  assert.notEqual(panel.said("loss"), drawn);
  await run.pause();
});

test("python that is asked for says how much of it has come", async () => {
  const panel = await Panel.open();
  panel.kernel.faults = [async (kernel) => {
    kernel.onstate("starting", { text: "Loading Python", bytes: 9e6, total: 36e6 });
    panel.loading = [panel.said("state"), panel.part("bytes").hidden];
    return { type: "stopped", lost: true, loading: true };
  }];
  panel.press("go");
  await panel.until(() => panel.panel.run.phase === "paused");
  assert.deepEqual(panel.loading, ["Loading Python: 9.0 of 36.0 MB …", false]);
  assert.match(panel.said("state"), /^It was stopped before Python was there\. No step had been taken/);
});

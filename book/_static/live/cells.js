// The cells of a page: editing, running, and what is kept between visits.

import { button, make } from "./elements.js";
import { Kernel } from "./python.js";
import { Output } from "./outputs.js";
import { spoken } from "./reports.js";
import { Edit, memory, remembers } from "./remembered_progress.js";
import { exercises } from "./exercises.js";
import { OtherText, coming, drawBytes, duration, fetched, notLoaded } from "./rows.js";
import { RunAndCheckButton, SLOW } from "./run_and_check_button.js";
import { voice } from "./voice.js";

const data = JSON.parse(document.getElementById("tt-live").textContent);
const root = new URL(document.documentElement.dataset.content_root || "./", location.href);
const kept = memory(`edits:${data.page}`, (field) => {
  for (const cell of cells) if (field === null || Number(field) === cell.number) cell.hear();
});

// Opens the folds around an element.
const unfold = (element, folds) => {
  for (let fold = element.closest(folds); fold; fold = fold.parentElement.closest(folds)) fold.open = true;
};

const announce = voice();

const SOON = 500; // ms

// As much of a text as one listens to.
const shortened = (text, lines = 3, letters = 200) => {
  const all = text.split("\n").filter((line) => line.trim());
  const heard = all.slice(0, lines).join("\n");
  if (heard.length > letters) return `${heard.slice(0, letters)} …`;
  return all.length > lines ? `${heard}\nand ${all.length - lines} more lines` : heard;
};

const STEPPED = { pages: /foundations|attention/, lines: 20 }; // where a cell can be stepped through, and how long it is
let stubs = 0;

class Cell {
  constructor(element, info, number) {
    this.element = element;
    this.info = info;
    this.number = number;
    this.isStub = info.tags.includes("exercise-stub");
    this.name = this.isStub ? `exercise ${stubs += 1}` : `cell ${number}`;
    this.pre = element.querySelector(".cell_input pre");
    this.original = this.pre.textContent.replace(/\n$/, "");
    this.output = new Output(element, data.places);
    this.ran = null; // the code that the kernel has run last
    this.#build();
    this.edits = new Edit(kept, number, this.original);
    this.other = new OtherText(this, this.edits, { button, announce });
    if (this.edits.text !== undefined) this.#showCode(this.edits.text);
  }

  // Another tab has changed what is kept of this cell.
  hear() {
    this.edits.hear();
    this.other.show();
  }

  get source() {
    return this.editor ? this.editor.text : this.edited ?? this.original;
  }

  get changed() {
    return this.source !== this.original;
  }

  #build() {
    const bar = make("div", "tt-live__bar", "", { role: "group", "aria-label": this.name });
    this.button = new RunAndCheckButton(this, page);
    this.runButton = this.button.element;
    this.stepButton = button("Step through", `Step through ${this.name}`, () => this.press(false, true));
    this.stepButton.hidden = !this.#isStepped;
    this.editButton = button("Edit", `Edit ${this.name}`, () => this.edit());
    this.resetButton = button("Reset", `Reset ${this.name}`, () => this.reset());
    this.status = make("span", "tt-live__status");
    this.resetButton.hidden = true;
    bar.append(this.runButton, this.button.toHere, this.stepButton, this.editButton, this.resetButton, this.status);
    this.bar = bar;
    const input = this.element.querySelector(".cell_input");
    const fold = this.element.querySelector(":scope > details.hide");
    (fold && !fold.querySelector(".cell_output") && !this.element.matches(".tag_hide-cell")
      ? fold : input).after(bar);
    const expected = this.info.expected ?? 0;
    this.takes = expected > SLOW ? `about ${duration(expected)} in the browser` : "";
    this.say(this.takes);
    if (this.info.smaller) this.#offerSmaller();
  }

  // The same code with one number changed; the stored long run stays where it is.
  #offerSmaller() {
    const { name, value } = this.info.smaller;
    const label = make("label", "tt-live__smaller", `${name} = `);
    this.size = make("input", "", "", { type: "number", min: "1", value: String(value) });
    label.append(this.size);
    this.smallButton = button("Smaller run", `Smaller run of ${this.name}`, () => this.press(true));
    this.runButton.after(this.smallButton, label);
  }

  get smallSource() {
    const { name } = this.info.smaller;
    const found = new RegExp(`(\\b${name}\\s*=\\s*)[\\d_]+`);
    return this.source.replace(found, (_, start) => start + Number(this.size.value));
  }

  get #isStepped() {
    return STEPPED.pages.test(data.page) && this.source.split("\n").length <= STEPPED.lines;
  }

  press(small = false, steps = false) {
    this.stepping = steps;
    return this.button.press(small);
  }

  say(text, state = "") {
    this.status.textContent = text;
    this.status.dataset.state = state;
  }

  // Puts another text into the cell, as if the reader had typed it.
  write(text) {
    this.#showCode(text);
  }

  #showCode(text) {
    this.edited = text;
    if (this.editor) {
      this.editor.text = text;
    } else {
      this.markup ??= this.pre.innerHTML;
      this.pre.textContent = text + "\n";
    }
    this.#mark();
  }

  #mark() {
    this.element.classList.toggle("tt-live--changed", this.changed);
    this.resetButton.hidden = !this.changed && !this.output.own;
    this.stepButton.hidden = !this.#isStepped;
    this.steps?.close();
    this.edits.write(this.changed ? this.source : undefined);
    this.other.show();
  }

  async edit() {
    const fold = this.element.querySelector(":scope > details.hide");
    if (fold) fold.open = true;
    if (!this.editor) {
      this.say("Loading the editor …", "busy");
      const { openEditor } = await fetched("editor.js").catch(() => ({}));
      if (!openEditor) {
        this.say("The editor could not be loaded: press Edit to try again.", "error");
        return announce(this.status.textContent, true);
      }
      this.say("");
      if (this.editor) return;
      const stored = this.element.querySelector('.cell_input [class*="highlight-"]');
      const place = make("div", "tt-live__editor");
      stored.after(place);
      stored.hidden = true;
      this.editor = openEditor(place, {
        text: this.source,
        label: `Code of ${this.name}. Escape leaves the editor, Control and Enter runs it.`,
        onchange: () => { this.edited = this.editor?.text; this.#mark(); },
        onrun: () => this.press(),
        onleave: () => this.runButton.focus(),
      });
      this.element.classList.add("tt-live--editing");
      if (!matchMedia("(pointer: coarse)").matches) this.say("Esc leaves the editor, Ctrl+Enter runs");
    }
    this.editor.focus();
  }

  reset() {
    if (this.editor) {
      this.editor.destroy();
      this.editor = null;
      this.element.querySelector(".tt-live__editor").remove();
      this.element.querySelector('.cell_input [class*="highlight-"]').hidden = false;
    }
    if (this.markup !== undefined) this.pre.innerHTML = this.markup;
    this.edited = undefined;
    this.steps?.close();
    this.stepButton.hidden = !this.#isStepped;
    this.ran = null;
    for (const cell of cells) cell.button.offerToHere();
    this.output.restore();
    this.element.classList.remove("tt-live--editing", "tt-live--changed");
    this.element.removeAttribute("data-live");
    this.resetButton.hidden = true;
    this.edits.forgetTheirs();
    this.edits.write(undefined);
    this.other.show();
    this.say("");
    this.runButton.focus();
    announce(`${this.name} is as the book has it`);
  }

  // Runs the cell; resolves as Kernel.run does.
  async run({ small = false, force = false, quiet = false, steps = false } = {}) {
    const source = small ? this.smallSource : this.source;
    this.above?.remove();
    this.steps?.close();
    if (!quiet) unfold(this.element, "details.tt-answer"); // who runs it wants to see what comes out
    this.button.offer("Stop");
    this.element.dataset.live = "waiting";
    this.say(kernel.state === "ready" ? "" : loading || "Waiting", "busy");
    this.report = this.error = this.limit = this.record = null;
    running.add(this);
    const before = this.notRun;
    let late; // what ends at once does not say that it has begun
    const result = await kernel.run({
      source, force, ...(steps && { steps }),
      asserts: !small, // they speak of the long run
      above: before.map((cell) => cell.source),
      title: this.name[0].toUpperCase() + this.name.slice(1),
      alt: this.info.alt ?? `Figure of ${this.name}`,
      prefix: `tt-live-${this.number}`,
      onrunning: (begun) => {
        this.small = begun.small; // also what follows from a smaller run stands beside the stored
        this.output.clear(begun.small);
        this.element.dataset.live = "running";
        this.say("Running", "busy");
        if (!quiet) late = setTimeout(() => announce(`${this.name} is running`), SOON);
      },
      onmessage: (message) => {
        if (message.kind === "report") this.report = message;
        if (message.kind === "error") this.error = message;
        if (message.kind === "limit") this.limit = message;
        if (message.kind === "steps") this.record = message;
        this.output.add(message);
      },
    });
    clearTimeout(late);
    running.delete(this);
    this.button.offer();
    if (result.needed) result.needed = result.needed.map((i) => before[i]);
    this.#ended(result, source, small, quiet);
    this.output.reachable();
    if (this.record?.steps.length) await this.#showSteps(this.record);
    return result;
  }

  async #showSteps(record) {
    const { Steps } = await fetched("steps.js").catch(() => ({}));
    if (!Steps) this.say("The steps could not be loaded: press Step through to try again.", "error");
    else if (this.record === record) this.steps = new Steps(this, record, announce);
  }

  #ended(result, source, small, quiet) {
    const state = { missing: "missing", stopped: "stopped", broken: "error" }[result.type];
    this.element.dataset.live = state ?? (result.ok ? "done" : "error");
    if (result.type === "done") {
      this.ran = source;
      const took = `${result.seconds < 0.05 ? "0.0" : result.seconds.toFixed(1)} s`;
      const size = small ? `${this.info.smaller.name} = ${this.size.value}, `
        : this.small ? "from the smaller run, " : "";
      const said = this.report ? (this.report.passed ? "Solved" : "Not yet") : `${size}ran in ${took}`;
      const failed = this.error?.name === "KeyboardInterrupt" ? "Stopped" : "ended with an error";
      const verdict = this.report && (this.report.passed ? "solved" : "error");
      this.say(result.ok ? said : failed, result.ok ? verdict ?? "" : "error");
      if (!quiet || !result.ok) announce([`${this.name}: ${this.#heard(result.ok)}`, this.limit?.text].filter(Boolean).join("\n"), !result.ok);
    } else if (result.type === "stopped") {
      this.say(stopped(this, result), "error");
      announce(`${this.name}: ${this.status.textContent}`);
    } else if (result.type === "broken") {
      this.say(result.load ? notLoaded(result.text) : `Python could not run here: ${result.text}.`, "error");
      announce(this.status.textContent, true);
      if (result.load) this.button.offerTry(small);
    }
    if (result.lost) for (const cell of cells) cell.ran = null;
    for (const cell of cells) cell.button.offerToHere();
    this.resetButton.hidden = !this.changed && !this.output.own;
  }

  // What came of a run, for those who do not see it.
  #heard(ok) {
    if (!ok) return this.error?.plain || this.error?.text.split("\n").at(-1);
    if (this.report) return shortened(spoken(this.report), 4, 400);
    const figures = this.output.own ? this.output.box.querySelectorAll("svg.tt-figure").length : 0;
    const drawn = figures ? `\n${figures} ${figures === 1 ? "figure" : "figures"}` : "";
    return `finished\n${shortened(this.output.text)}${drawn}`;
  }

  get notRun() {
    return cells.filter((c) => c.number < this.number && c.runnable && c.ran === null);
  }

  get isSolution() {
    return this.info.tags.includes("exercise-solution");
  }

  get runnable() {
    return !this.info.tags.includes("live-skip");
  }
}

// What a cell says that was stopped, and what to do next.
function stopped({ number }, { lost, loading }) {
  if (loading) return "Stopped before Python was loaded: press Run to load it";
  if (!lost) return "Stopped";
  const next = cells.some((cell) => cell.number < number && cell.ran !== null) ? "run the cells above again" : "it starts with the next run";
  // from the next load of the page on, the service worker lets the page interrupt its Python
  const reload = navigator.serviceWorker?.controller ? ". Once you have reloaded the page, Stop ends the cell alone" : "";
  return `Stopped, and Python with it: ${next}${reload}`;
}

// Runs cells in turn, at their smaller size where they have one; ends at the first that fails, with
// its result, and when `goesOn`, which is told of each, says so.
async function runAll(list, goesOn = () => true, quiet = false) {
  for (const [i, cell] of list.entries()) {
    if (!goesOn(cell, i)) return null;
    const result = await cell.run({ small: Boolean(cell.info.smaller), force: true, quiet });
    const expected = cell.info.tags.includes("raises-exception") || cell.isStub;
    if (result.type !== "done" || (!result.ok && !expected)) {
      unfold(cell.element, "details.tt-fold");
      if (!result.load) cell.status.scrollIntoView({ block: "nearest" });
      return result;
    }
  }
  return null;
}

const running = new Set(), waiting = new Set(); // the latter for cells above them
const page = {
  running, waiting, runAll, announce,
  get cells() { return cells; },
  get kernel() { return kernel; },
  get loading() { return loading; },
};
const absolute = (address) => address && new URL(address, import.meta.url).href;
const kernel = new Kernel(
  {
    runtime: new URL(data.runtime, root).href,
    files: absolute("./"),
    wheel: absolute(data.wheel),
    snapshot: absolute(data.snapshot),
    bytes: data.bytes,
    patience: 10,
    get parts() { return Object.values(memory("parts").all).join("\n\n"); },
  },
  (state, about) => {
    const { text } = about;
    document.documentElement.dataset.liveKernel = state;
    drawBytes([...running, ...waiting], about);
    loading = coming(about, kernel.elapsed);
    for (const cell of cells) if (cell.status.dataset.state === "first") cell.say(cell.takes);
    if (!text) for (const cell of waiting) cell.say(cell.button.step, "busy");
    if (!text || !running.size) return; // nobody waits for it
    for (const cell of [...running, ...waiting]) cell.say(loading, "busy");
    if (text !== announced) announce(text); // once a step, not at every byte
    announced = text;
  },
  () => import("./register_service_worker.js").then(({ registerServiceWorker }) => registerServiceWorker(root)),
);
let loading = "", announced = "";

// In the order of the page, as book/_ext/live/live_cells.py has counted them.
const cells = [...document.querySelectorAll("div.cell")]
  .filter((element) => element.querySelector(".cell_input pre"))
  .map((element, i) => new Cell(element, data.cells[i] ?? { tags: [] }, i + 1));
for (const cell of cells) {
  cell.button.offerToHere();
  if (cell.runnable) continue;
  cell.bar.replaceChildren(make("span", "tt-live__status", "not run in the browser"));
}
const intro = document.querySelector(".tt-live-intro");
if (intro) {
  if (!remembers()) {
    const said = intro.firstChild; // before its button
    said.data = said.data.replace("What you write stays on this page.",
      "This browser keeps nothing for the book: what you write and solve is forgotten when you leave the page.");
  }
  intro.hidden = false;
}
const all = [...document.querySelectorAll(".tt-live__all")];
if (all.length) {
  const { openHere, runAllCells } = await import("./run_all.js");
  runAllCells(page, all);
  for (const entry of document.querySelectorAll('.tt-open a[href="#run-here"]')) openHere(page, entry);
}
// parts that few pages have come where they are
await exercises(data, cells, { button, announce });
if (document.querySelector(".tt-prediction")) {
  const { predictions } = await import("./predictions.js");
  predictions(data.page, { make, button, announce });
}
const talk = document.querySelector(".tt-talk");
if (talk) {
  const { panel } = await import("../published/panel.js");
  await panel(talk, { kernel, button, announce });
}
if (document.querySelector(".tt-file")) {
  const { yourFiles } = await import("./your_file.js");
  yourFiles(kernel, { button, announce });
}
const runnable = cells.filter((cell) => cell.runnable);
// Nothing comes unasked on a page that has not said at its head what would: there each button says it.
if (intro) {
  const { startEarly } = await import("./early_start.js");
  startEarly(runnable.map((cell) => cell.bar), () => kernel.load());
} else if (data.bytes) {
  const comes = `the first press loads Python, ${Math.round(data.bytes / 1e6)} MB`;
  for (const cell of runnable) cell.say([cell.takes, comes].filter(Boolean).join("; "), "first");
}
// For tests, and for the curious at the console.
globalThis.tinytorchLive = { cells, kernel, runAll };
document.documentElement.dataset.live = "ready";

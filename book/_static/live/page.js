// The cells of a page: buttons, editing, running, and what is kept between visits.

import { make } from "./elements.js";
import { Kernel } from "./python.js";
import { Output } from "./outputs.js";
import { spoken } from "./reports.js";
import { Edit, memory, remembers } from "./remembered_progress.js";
import { exercises } from "./exercises.js";
import { startEarly } from "./early_start.js";
import { OtherText, anotherTry, coming, drawBytes, duration, fetched, notLoaded } from "./rows.js";

const data = JSON.parse(document.getElementById("tt-live").textContent);
const root = new URL(document.documentElement.dataset.content_root || "./", location.href);
const kept = memory(`edits:${data.page}`, (field) => {
  for (const cell of cells) if (field === null || Number(field) === cell.number) cell.hear();
});
const SLOW = 2; // seconds; what takes longer in the browser says so before it starts

const button = (text, label, act) => {
  const made = make("button", "tt-live__button", text, { type: "button" });
  if (label) made.setAttribute("aria-label", label);
  // of a double click, and of a key that is held, only the first counts
  made.addEventListener("click", (event) => { if (event.detail < 2) act(); });
  made.addEventListener("keydown", (event) => { if (event.repeat) event.preventDefault(); });
  return made;
};

// Opens the folds around an element.
const unfold = (element, folds) => {
  for (let fold = element.closest(folds); fold; fold = fold.parentElement.closest(folds)) fold.open = true;
};

// Says to a screen reader what the eye sees happen.
const voice = make("div", "visually-hidden", "", { "aria-live": "polite", role: "status" });
const announce = (text) => { voice.textContent = text; };

// As much of a text as one listens to.
const shortened = (text, lines = 3, letters = 200) => {
  const all = text.split("\n").filter((line) => line.trim());
  const heard = all.slice(0, lines).join("\n");
  if (heard.length > letters) return `${heard.slice(0, letters)} …`;
  return all.length > lines ? `${heard}\nand ${all.length - lines} more lines` : heard;
};

class Cell {
  constructor(element, info, number) {
    this.element = element;
    this.info = info;
    this.number = number;
    this.name = `cell ${number}`;
    this.pre = element.querySelector(".cell_input pre");
    this.original = this.pre.textContent.replace(/\n$/, "");
    this.output = new Output(element, data.places);
    this.ran = null; // the code that the kernel has run last
    this.isStub = info.tags.includes("exercise-stub");
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
    // one button, so that who has run a cell can stop it, and run it again, without looking for it
    this.runButton = button("", "", () => {
      if (running.has(this) || waiting.delete(this)) kernel.stop();
      else this.press();
    });
    this.runButton.classList.add("tt-live__button--run");
    this.#offer(this.isStub ? "Check" : "Run");
    this.editButton = button("Edit", `Edit ${this.name}`, () => this.edit());
    this.resetButton = button("Reset", `Reset ${this.name}`, () => this.reset());
    this.status = make("span", "tt-live__status");
    this.resetButton.hidden = true;
    bar.append(this.runButton, this.editButton, this.resetButton, this.status);
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

  #offer(word) {
    this.runButton.textContent = word;
    this.runButton.setAttribute("aria-label", `${word} ${this.name}`);
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
    this.edits.write(this.changed ? this.source : undefined);
    this.other.show();
  }

  async edit() {
    const fold = this.element.querySelector(":scope > details.hide");
    if (fold) fold.open = true;
    if (!this.editor) {
      this.say("Loading the editor …", "busy");
      const { openEditor } = await fetched("editor.js").catch(() => ({}));
      if (!openEditor) return this.say("The editor could not be loaded: press Edit to try again.", "error");
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
    this.ran = null;
    this.output.restore();
    this.element.classList.remove("tt-live--editing", "tt-live--changed");
    this.element.removeAttribute("data-live");
    this.resetButton.hidden = true;
    this.edits.forgetTheirs();
    this.edits.write(undefined);
    this.other.show();
    this.say("");
    announce(`${this.name} is as the book has it`);
    this.runButton.focus();
  }

  async press(small = false) {
    if (running.has(this) || waiting.has(this)) return undefined;
    const result = this.#knownToMiss() ?? await this.run({ small });
    if (result.type === "missing" && result.needed.length) {
      const first = [this.isStub ? [] : this.#allAbove(result), result.needed].find(isQuick);
      if (first) return this.#runAfter(first, result, small);
      this.#offerAbove(result, small);
      return result;
    }
    // nothing above defines what is missing: then Python says so itself
    const last = result.type === "missing" ? await this.run({ small, force: true }) : result;
    const next = last.type === "done" && this.isStub && this.onchecked?.(this.report);
    if (next) announce(`${voice.textContent}\n${next}`);
    return last;
  }

  // What the build knows to be missing, while no Python can have it yet.
  #knownToMiss() {
    this.above?.remove();
    if (this.changed || !this.info.missing || !["off", "starting"].includes(kernel.state)) return undefined;
    const needed = this.info.missing.needed.map((i) => cells[i]).filter((cell) => cell.runnable);
    if (needed.some((cell) => running.has(cell))) return undefined; // it may come: Python will say
    this.element.dataset.live = "missing";
    return { type: "missing", names: this.info.missing.names, needed };
  }

  // Runs the cell; resolves as Kernel.run does.
  async run({ small = false, force = false } = {}) {
    const source = small ? this.smallSource : this.source;
    this.above?.remove();
    unfold(this.element, "details.tt-answer"); // who runs it wants to see what comes out
    this.#offer("Stop");
    this.element.dataset.live = "waiting";
    this.say(kernel.state === "ready" ? "" : loading || "Waiting", "busy");
    this.report = this.error = this.limit = null;
    running.add(this);
    const before = this.notRun;
    const result = await kernel.run({
      source, force,
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
        announce(`${this.name} is running`);
      },
      onmessage: (message) => {
        if (message.kind === "report") this.report = message;
        if (message.kind === "error") this.error = message;
        if (message.kind === "limit") this.limit = message;
        this.output.add(message);
      },
    });
    running.delete(this);
    this.#offer(this.isStub ? "Check" : "Run");
    if (result.needed) result.needed = result.needed.map((i) => before[i]);
    this.#ended(result, source, small);
    this.output.reachable();
    return result;
  }

  #ended(result, source, small) {
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
      announce([`${this.name}: ${this.#heard(result.ok)}`, this.limit?.text].filter(Boolean).join("\n"));
    } else if (result.type === "stopped") {
      this.say(stopped(this, result), "error");
      announce(`${this.name}: ${this.status.textContent}`);
    } else if (result.type === "broken") {
      this.say(result.load ? notLoaded(result.text) : `Python could not run here: ${result.text}.`, "error");
      announce(this.status.textContent);
      if (result.load) this.#offerTry(small);
    }
    if (result.lost) for (const cell of cells) cell.ran = null;
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

  #allAbove({ needed }) {
    return this.notRun.filter((c) => !c.isStub && !c.isSolution || needed.includes(c));
  }

  // Offers to run what is above: all of it, so that every number comes out as in the book, or
  // only the cells that define what is missing, which is enough for an exercise.
  #offerAbove({ names, needed }, small) {
    this.say("");
    const list = names.slice(0, 4).join(", ") + (names.length > 4 ? ", …" : "");
    const all = this.#allAbove({ needed });
    this.above = make("div", "tt-live__above");
    const offer = (name, chosen) => {
      const slow = secondsOf(chosen);
      const time = slow > 5 ? `, about ${duration(slow)}` : "";
      this.above.append(button(`${name} (${counted(chosen)}${time})`, "", async () => {
        this.runButton.focus(); // before what has the focus goes
        this.above.remove();
        await this.#runBefore(chosen, small);
      }));
    };
    const text = `Needs ${list} from above.`;
    this.above.append(make("span", "", text));
    if (!this.isStub) offer("Run all above", all);
    if (this.isStub || needed.length < all.length) offer("Run what it needs", needed);
    this.bar.after(this.above);
    announce(text);
    this.above.querySelector("button").focus();
  }

  async #runBefore(chosen, small) {
    waiting.add(this);
    this.#offer("Stop");
    const failed = await runAll(chosen, (cell, i) => {
      this.step = `Running cell ${cell.number} above: ${i + 1} of ${chosen.length}`;
      this.say(loading || this.step, "busy");
      this.last = cell;
      return waiting.has(this);
    });
    const goesOn = waiting.delete(this);
    this.#offer(this.isStub ? "Check" : "Run");
    if (goesOn && !failed) return this.press(small);
    this.say(!goesOn ? "Stopped" : failed.load ? notLoaded(failed.text)
      : `Cell ${this.last.number} above has not ended well: look there first`, "error");
    announce(`${this.name}: ${this.status.textContent}`);
    if (goesOn && failed.load) this.#offerTry(small);
    return undefined;
  }

  // What it needs is run by itself, if that is quick; afterwards it says so.
  async #runAfter(chosen, missing, small) {
    const last = await this.#runBefore(chosen, small);
    if (last?.type !== "done") return last ?? missing;
    const first = `${counted(chosen)} above ran first.`;
    this.say(`${this.status.textContent}. ${first}`, this.status.dataset.state);
    announce(`${voice.textContent}\n${first}`);
    return last;
  }

  #offerTry(small) {
    this.above = anotherTry(button, this.name, () => {
      if (this.above.contains(document.activeElement)) this.runButton.focus(); // before it goes
      this.press(small);
    });
    this.bar.after(this.above);
  }

  get isSolution() {
    return this.info.tags.includes("exercise-solution");
  }

  get runnable() {
    return !this.info.tags.includes("live-skip");
  }
}

const counted = (list) => list.length === 1 ? "1 cell" : `${list.length} cells`;

// The seconds that cells take in the browser, at their smaller size nearly none.
const secondsOf = (list) =>
  list.reduce((sum, { info }) => sum + (info.smaller ? 0 : info.expected ?? 0), 0);

// Whether there are cells that may be run unasked: as the book has them, and known to be short.
const isQuick = (list) =>
  list.length > 0 && list.every(({ changed, info }) => !changed && !info.smaller && info.expected !== undefined)
  && secondsOf(list) <= SLOW;

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
async function runAll(list, goesOn = () => true) {
  for (const [i, cell] of list.entries()) {
    if (!goesOn(cell, i)) return null;
    const result = await cell.run({ small: Boolean(cell.info.smaller), force: true });
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
    if (!text) for (const cell of waiting) cell.say(cell.step, "busy");
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
  if (cell.runnable) continue;
  cell.bar.replaceChildren(make("span", "tt-live__status", "not run in the browser"));
}
document.body.append(voice);
const intro = document.querySelector(".tt-live-intro");
if (intro) {
  if (!remembers()) {
    intro.textContent = intro.textContent.replace("What you write stays on this page.",
      "This browser keeps nothing for the book: what you write and solve is forgotten when you leave the page.");
  }
  intro.hidden = false;
}
// parts that few pages have come where they are
await exercises(data, cells, { button, announce });
if (document.querySelector(".tt-prediction")) {
  const { predictions } = await import("./predictions.js");
  predictions(data.page, { make, button, announce });
}
const published = document.querySelector(".tt-published");
if (published) {
  const { panel } = await import("../published/panel.js");
  await panel(published, { kernel, button, announce });
}
if (document.querySelector(".tt-file")) {
  const { yourFiles } = await import("./your_file.js");
  yourFiles(kernel, { button, announce });
}
const runnable = cells.filter((cell) => cell.runnable);
// Nothing comes unasked on a page that has not said at its head what would: there each button says it.
if (intro) startEarly(runnable.map((cell) => cell.bar), () => kernel.load());
else if (data.bytes) {
  const comes = `the first press loads Python, ${Math.round(data.bytes / 1e6)} MB`;
  for (const cell of runnable) cell.say([cell.takes, comes].filter(Boolean).join("; "), "first");
}
// For tests, and for the curious at the console.
globalThis.tinytorchLive = { cells, kernel, runAll };
document.documentElement.dataset.live = "ready";

// Train one here: the panel in which the page's Python trains a model from random numbers, and what is seen of it.

import { make } from "../live/elements.js";
import { coming } from "../live/rows.js";
import { note, svg } from "../moving/tools.js";
import { Bars, FEW, verdict } from "./bars.js";
import { KeptTraining } from "./kept_training.js";
import { BEGINNINGS, bars } from "./layout.js";
import { MINE, START } from "./state.js";
import { FILE, TrainingRun, begin, piece } from "./training_run.js";
import { writeOn } from "./writing.js";

const SIZES = [["smaller", "smaller (41,856 numbers)"], ["story", "the book’s (132,864)"], ["larger", "larger (273,024)"]];
const LONG = 45; // tokens that are written on after each beginning
const WRITER = "mine, as it writes"; // the weights stay the same while it writes, also when training goes on
const WRITES = 3000; // ms between two writings, at least
const SAYS = 10_000; // and between two sentences for those who do not see it
const READY = 20_000; // ms for the scripts of the page's Python
const RANGE = 1000; // steps that the picture shows at first
const [WIDTH, HEIGHT, LEFT, TOP, HIGHEST] = [340, 150, 26, 8, 7];
const whole = (count) => count.toLocaleString("en");

const markup = `
<div class="tt-train__panel">
  <p data-is="costs"></p>
  <div class="tt-train__controls">
    <button type="button" data-is="go" class="tt-train__go">Start</button>
    <button type="button" data-is="again" hidden>Start again</button>
    <label>Size <select data-is="size">${SIZES.map(([value, name]) => `<option value="${value}">${name}</option>`).join("")}</select></label>
    <label>Seed <input type="number" data-is="seed" min="0" max="999999" step="1" value="0"></label>
  </div>
  <progress class="tt-train__bytes" data-is="bytes" aria-label="Of Python" hidden></progress>
  <p class="tt-train__state" data-is="state"></p>
  <p class="tt-play__note" data-is="unkept" hidden></p>
  <div class="tt-train__seen" data-is="seen" hidden>
    <div><p class="tt-play__label">How surprised it is by a token, on average</p>
      <svg class="tt-train__loss" viewBox="0 0 ${WIDTH} ${HEIGHT}" aria-hidden="true" data-is="picture"></svg>
      <p class="tt-play__note" data-is="loss"></p>
      <details class="tt-play__deeper"><summary>More</summary><p>The unit is the <em>nat</em>, and the dashed line the exact entropy of the stories.</p></details></div>
    <div><p class="tt-play__label" data-is="after"></p>${bars("trainedBars", 'aria-label="What your model expects next"')}
      <p class="tt-play__note" data-is="common"></p></div>
    <div class="tt-train__writes"><p class="tt-play__label">What it writes, with the same random numbers each time</p>
      <ul data-is="texts"></ul></div>
    <div class="tt-play__links" role="group" aria-label="What you have trained">
      <button type="button" data-is="put">Put it into the playground</button>
      <button type="button" data-is="save">Save as a file</button>
      <button type="button" data-is="python">Open in Python</button></div>
    <p class="tt-play__note" data-is="done" hidden></p>
  </div>
  <details class="tt-train__code"><summary>The Python that runs</summary><pre data-is="code"></pre></details>
</div>`;

// place: the element of the playground in which the panel opens
export async function trainingHere(play, place) {
  const [kernel] = await Promise.all([pagesPython(), styled()]);
  const panel = new Panel(play, place, new KeptTraining());
  await panel.open(kernel);
  return panel;
}

// The style comes with the panel; without it the panel works.
function styled() {
  const link = make("link", "", "", { rel: "stylesheet", href: new URL("training_here.css", import.meta.url).href });
  return new Promise((done) => {
    for (const event of ["load", "error"]) link.addEventListener(event, done);
    document.head.append(link);
  });
}

// The page's Python, whose scripts may come after those of the playground.
async function pagesPython() {
  const until = performance.now() + READY;
  while (!globalThis.tinytorchLive && performance.now() < until) await new Promise((done) => { setTimeout(done, 50); });
  if (!globalThis.tinytorchLive) throw new Error("The scripts of the page’s Python did not load: load the page again.");
  return globalThis.tinytorchLive.kernel;
}

class Panel {
  #writing = 0; // which writing is on
  #wrote = -Infinity;
  #said = -Infinity;

  constructor(play, place, kept) {
    Object.assign(this, { play, place, kept });
    place.innerHTML = markup;
    this.parts = Object.fromEntries([...place.querySelectorAll("[data-is]")].map((e) => [e.dataset.is, e]));
    this.parts.size.value = "story";
    this.bars = new Bars(place.querySelector("[data-part=trainedBars]"), FEW, (id) => play.press(id));
    this.texts = BEGINNINGS.map((text) => {
      const item = make("li"), written = make("span");
      item.append(make("b", "", text), written);
      this.parts.texts.append(item);
      return { text, written };
    });
    const on = (part, act) => this.parts[part].addEventListener("click", () => act());
    on("go", () => this.#go());
    on("again", () => this.#again());
    on("put", () => this.#put());
    on("save", () => this.#save());
    on("python", () => this.#python());
    for (const part of ["size", "seed"]) this.parts[part].addEventListener("change", () => this.#showCode());
  }

  async open(kernel) {
    this.run = new TrainingRun(kernel, this.kept, () => this.show());
    const hear = kernel.onstate;
    kernel.onstate = (state, about) => {
      hear(state, about);
      this.#hearPython(about, kernel.elapsed);
    };
    addEventListener("online", () => { if (this.run.unreached) this.run.goOn(); });
    document.addEventListener("visibilitychange", () => this.#hidden());
    const kept = await this.kept.read();
    if (kept) {
      this.run.take(kept);
      this.#setFields(kept);
    }
    this.#showCosts(kernel);
    this.#showCode();
    const waits = () => this.run.weights && this.run.weights !== this.weights && !this.play.writing;
    this.play.folds.mine = { isOpen: waits, show: () => this.show() };
    this.show();
    this.parts.go.focus();
  }

  // What is said before anything is fetched.
  #showCosts({ state, settings }) {
    const there = ["ready", "busy"].includes(state);
    const bytes = settings.bytes ? ` (${(settings.bytes / 1e6).toFixed(0)} MB, which the browser keeps)` : "";
    this.parts.costs.textContent = `${there ? "Python is here already: nothing is downloaded." : `Start loads Python, NumPy and the book’s package${bytes}.`} `
      + "Then your device computes as hard as it can, for a minute or more until there are sentences: on a phone that takes some battery and warms it. "
      + "Pause whenever you like. In a hidden tab it goes on as far as the browser lets it. Nothing leaves this page.";
  }

  #showCode() {
    const { size, seed } = this.#fields;
    this.parts.code.textContent = `${begin(size, seed)}\n# and then, again and again:\n${piece("known")}`.replace("[known:]", "[-10:]");
  }

  get #fields() {
    const seed = Math.floor(this.parts.seed.valueAsNumber);
    return { size: this.parts.size.value, seed: seed >= 0 && seed < 1e6 ? seed : 0 };
  }

  #setFields({ size, seed }) {
    this.parts.size.value = size;
    this.parts.seed.value = seed;
  }

  // What the reader does ---------------------------------------------------------------------------------------------

  #go() {
    const { run } = this;
    if (run.wanted) run.pause();
    else if (run.phase === "none") run.start(this.#fields);
    else run.goOn();
  }

  // Another seed, unless the reader has chosen something else.
  #again() {
    const { run } = this;
    const { size, seed: wished } = this.#fields;
    const seed = wished + (size === run.size && wished === run.seed);
    this.#setFields({ size, seed });
    this.#showCode();
    for (const { written } of this.texts) written.textContent = "";
    run.start({ size, seed });
  }

  // The playground shows the reader's model, and follows it while it learns; or the finished one again.
  async #put() {
    const { play, run } = this;
    if (play.state.step === MINE) {
      play.change({ step: START.step });
      return this.#tell("The playground has its finished model again.");
    }
    play.change({ step: MINE });
    this.#tell("It is in the playground: the bars above and all that can be unfolded are your model’s now, and follow it while it learns.");
    play.place.scrollIntoView({ block: "start" });
    play.parts.bars.querySelector("button").focus({ preventScroll: true }); // the button is out of sight then
    await run.keep();
    return this.#showUnkept();
  }

  #save() {
    const link = make("a", "", "", { download: FILE });
    link.href = URL.createObjectURL(new Blob([this.run.weights]));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    this.#tell(`${FILE} is among your downloads. With the package: from tinytorch_book.experiments.live_training import load_trained, `
      + `then gpt = load_trained("${FILE}").`);
  }

  // The page's cell, with this model in place of the finished one. A new Python gets the file again.
  #python() {
    const { cells, kernel } = globalThis.tinytorchLive;
    const cell = cells.find(({ original }) => original.includes("load_story_gpt(), story_tokenizer()"));
    if (!cell) return this.#tell("This page has no cell for it.");
    const job = { type: "takeFile", name: FILE, given: FILE, encoding: "", least: 0, blob: new Blob([this.run.weights]) };
    kernel.keep(job);
    if (kernel.state !== "off") kernel.run(job);
    cell.write(withTrained(cell.original));
    this.#tell("The cell has your model as gpt: run it.");
    cell.element.scrollIntoView({ block: "center" });
    return cell.runButton.focus({ preventScroll: true });
  }

  #tell(text) {
    this.parts.done.textContent = text;
    this.parts.done.hidden = false;
    this.play.say(text);
  }

  // A tab that is left may not come back.
  #hidden() {
    if (document.visibilityState === "hidden") this.run.keep();
    else if (this.run.weights) this.show();
  }

  // What is shown ----------------------------------------------------------------------------------------------------

  #hearPython(about = {}, seconds) {
    const { parts } = this, { text, bytes, total } = about;
    parts.bytes.hidden = !bytes || this.run.phase !== "starting";
    if (this.run.phase !== "starting" || !text) return;
    if (total) parts.bytes.max = total;
    parts.bytes.value = total ? bytes : 0;
    parts.state.textContent = coming(about, seconds);
  }

  show() {
    const { run, parts, play } = this;
    const { phase, weights } = run;
    this.place.dataset.training = phase;
    parts.go.textContent = run.wanted ? "Pause" : phase === "none" ? "Start" : "Go on";
    parts.go.setAttribute("aria-disabled", phase === "pausing");
    parts.again.hidden = !weights;
    parts.seen.hidden = !weights;
    if (phase !== "starting") parts.bytes.hidden = true;
    const said = this.#sentence();
    if (phase !== this.phase || run.why) this.#say(said, phase !== this.phase);
    this.phase = phase;
    parts.state.textContent = said;
    this.#showUnkept();
    if (!weights || document.visibilityState === "hidden") return;
    const writes = play.state.step === MINE && play.writing; // a text that it writes is one model's
    if (weights !== this.weights && !writes) {
      this.weights = weights;
      play.thinking.add(MINE, weights);
      if (play.state.step === MINE) play.show();
    }
    if (!this.weights) return;
    this.#showLoss();
    this.#showBars();
    if (phase !== "training" || performance.now() - this.#wrote > WRITES) this.#write();
    const last = run.heldOut.at(-1)?.[1].toFixed(2);
    if (phase === "training" && last) this.#say(`${whole(run.step)} steps, surprise ${last}.`);
  }

  #sentence() {
    const { phase, step, size, seed, why, python } = this.run;
    const which = `${SIZES.find(([value]) => value === size)?.[1].split(" (")[0]} size, seed ${seed}`;
    const counted = `${whole(step)} ${step === 1 ? "step" : "steps"}`;
    if (phase === "none") return "";
    if (phase === "starting") return "Python is asked for …";
    if (phase === "training") return `Training: ${counted} (${which}).`;
    if (phase === "pausing") return python ? `Pausing after these steps: ${counted}.` : "It pauses as soon as Python is there.";
    return why || `Paused after ${counted} (${which}).`;
  }

  #showUnkept() {
    this.parts.unkept.textContent = this.run.unkept;
    this.parts.unkept.hidden = !this.run.unkept;
    this.parts.put.textContent = this.play.state.step === MINE ? "Take it out again" : "Put it into the playground";
  }

  // Says it aloud, now or if nothing has been said for a while.
  #say(text, now = false) {
    if (!text || !now && performance.now() - this.#said < SAYS) return;
    this.#said = performance.now();
    this.play.say(text);
  }

  #showLoss() {
    const { run, parts } = this;
    const [last] = run.heldOut.slice(-1);
    parts.picture.replaceChildren(...drawn(run));
    parts.loss.textContent = last ? `${last[1].toFixed(2)} on stories that it has not read. Nobody can expect less than ${run.floor.toFixed(2)}, the dashed line.`
      : "Nothing is measured yet.";
  }

  // What it expects after the playground's text.
  #showBars() {
    const { play, parts } = this;
    const { text, drawn: tokens, at } = play.state;
    const view = play.thinking.look({ ...START, text, drawn: tokens, at, step: MINE });
    this.bars.show(view, play.thinking.texts);
    const before = play.thinking.tokenizer.decode(at === null ? view.ids : view.ids.slice(0, view.at));
    parts.after.textContent = before ? `What it expects after “${before.slice(-40)}”` : "How it expects a story to begin";
    parts.common.textContent = view.truth ? verdict(view, true).join(" ") : "No story goes on like this, so there is no truth to compare with.";
  }

  // The three beginnings, one after the other; a newer writing takes over.
  async #write() {
    const { thinking } = this.play;
    this.#wrote = performance.now();
    this.#writing += 1;
    const mine = this.#writing, state = { ...START, step: WRITER };
    thinking.add(WRITER, this.weights);
    for (const { text, written } of this.texts) {
      const ids = thinking.tokenizer.encode(text);
      const said = await writeOn(thinking, ids, state, { most: LONG, ends: true, wanted: () => mine === this.#writing });
      if (said === null) return;
      written.textContent = said;
    }
  }
}

// The same cell, in which gpt is the model of the file.
export const withTrained = (code) => code
  .replace(/load_story_gpt, /, "")
  .replace("load_story_gpt(), story_tokenizer()", `load_trained("${FILE}"), story_tokenizer()`)
  .replace(/^from tinytorch_book\.experiments\.story_gpt/m, "from tinytorch_book.experiments.live_training import load_trained\n$&");

// The losses: faint those of the batches, strong those of held-out stories, dashed what is possible.
function drawn({ losses, heldOut, floor }) {
  const range = Math.max(RANGE, losses.length);
  const x = (step) => LEFT + (WIDTH - LEFT - 4) * step / range;
  const y = (loss) => HEIGHT - 22 - (HEIGHT - 22 - TOP) * Math.min(loss, HIGHEST) / HIGHEST;
  const path = (points) => `M${points.map(([step, loss]) => `${x(step).toFixed(1)} ${y(loss).toFixed(1)}`).join("L")}`;
  const every = Math.ceil(losses.length / WIDTH);
  const means = Array.from({ length: Math.ceil(losses.length / every) || 0 }, (_, i) => {
    const some = losses.slice(i * every, (i + 1) * every);
    return [i * every + some.length, some.reduce((sum, loss) => sum + loss, 0) / some.length];
  });
  const parts = [0, 2, 4, 6].map((loss) => note(LEFT - 5, y(loss), loss, "muted", "end"));
  for (const step of [0, range / 2, range]) parts.push(note(x(step), HEIGHT - 9, whole(Math.round(step)), "muted", step === 0 ? "start" : step === range ? "end" : "middle"));
  parts.push(svg("path", { class: "tt-train__axis", d: `M${LEFT} ${TOP}V${y(0)}H${WIDTH - 4}` }));
  if (floor !== null) parts.push(svg("path", { class: "tt-train__floor", d: `M${LEFT} ${y(floor)}H${WIDTH - 4}` }));
  if (means.length > 1) parts.push(svg("path", { class: "tt-train__batches", d: path(means) }));
  if (heldOut.length > 1) parts.push(svg("path", { class: "tt-train__held", d: path(heldOut) }));
  if (heldOut.length) parts.push(svg("circle", { class: "tt-train__last", cx: x(heldOut.at(-1)[0]), cy: y(heldOut.at(-1)[1]), r: 3.5 }));
  return parts;
}

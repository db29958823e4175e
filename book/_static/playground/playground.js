// A model to play with: what it believes comes next, beside what can be known exactly.
//
// The state (state.js) is the one thing that changes; all that is seen is drawn from it.

import { make } from "../live/elements.js";
import { Bars, NO_TRUTH, changedBySliders, impossible, verdict } from "./bars.js";
import { layout } from "./layout.js";
import { draw, seeded } from "./sampling.js";
import { LONGEST, MINE, START, WINDOW, arrive, fromHash, isPlain, isWhole, leave, moment, toHash, toured } from "./state.js";
import { breath, load, painted } from "./thinking.js";
import { Strip, isByte, percent, quoted, seen, spoken } from "./tokens.js";

const REST = 400; // ms without a change, after which the address follows and the change is said
const SLOW = 450; // ms for which each of the first tokens that are written is lit before it stands there,
const SEEN = 3; // so many of them,
const PACE = 60; // and between the others
const TOP_K_ALL = 21; // of the slider: no limit
const OFFERED = 6; // words with which a story can go on
const TRUTH = "A small program made up these stories, choosing at random. So the true probabilities are known; "
  + "we call them the truth. The model has only read the stories.";

// started: the requests for its files that the door has sent, by name
export async function playground(place, started) {
  const state = arrive() ?? START;
  let missed = "";
  const thinking = await load(state.step, started).catch((error) => {
    if (state.step === START.step) throw error;
    missed = `The model ${moment(state.step)} could not be loaded: ${error.message}. This is the finished one.`;
    return load(START.step);
  });
  const shown = new Playground(place, thinking, { ...state, step: missed ? START.step : state.step });
  shown.missed = missed;
  await shown.begin();
  globalThis.tinytorchPlay = shown; // for tests, and for the curious at the console
  return shown;
}

const EXTRAS = {
  sharing: () => import("./sharing.js"), lesson: () => import("./lesson.js"), tour: () => import("./tour.js"),
};

const byFinger = () => matchMedia("(pointer: coarse)").matches;

// A button that cannot be pressed now keeps the focus.
const able = (button, is) => button.setAttribute("aria-disabled", !is);

class Playground {
  constructor(place, thinking, state) {
    Object.assign(this, { place, thinking, state, compact: place.dataset.size === "compact" });
    this.root = `${document.documentElement.dataset.content_root || "./"}book/`;
    this.random = seeded(crypto.getRandomValues(new Uint32Array(1))[0]);
    this.writing = 0; // which run of writing is on; 0 if none
    this.runs = 0;
    this.folds = {}; // what is drawn only while it is open
    this.deeds = []; // what can be taken back: {before, after} of all that changed the text but typing
    this.added = ""; // what has been written since something was said aloud
  }

  async begin() {
    const made = document.createElement("div");
    made.className = "tt-play__all";
    made.setAttribute("role", "region");
    made.setAttribute("aria-label", "Playground");
    made.innerHTML = layout(this.compact, this.root);
    this.parts = Object.fromEntries([...made.querySelectorAll("[data-part]")].map((e) => [e.dataset.part, e]));
    this.strip = new Strip(this.parts.tokens, (i) => this.change({ at: i === this.state.at ? null : i }));
    this.bars = new Bars(this.parts.bars, this.compact ? 5 : 8, (id) => this.press(id));
    this.#listen(made);
    if (this.compact && toured()) this.parts.tour.parentNode.append(this.parts.tour); // it makes room for the beginnings
    if (this.compact) this.#addLearning();
    else await this.#addFolds(made);
    await breath();
    this.show();
    this.heard = this.#standing(); // it can be read: nobody needs to be told
    this.place.replaceChildren(made);
    this.place.dataset.play = "ready";
    this.strip.list.scrollTop = this.strip.list.scrollHeight;
    if (!this.compact) await this.#arrive(made);
  }

  // An address may name what is to be open: then the page goes there, or shows it to a class.
  async #arrive(made) {
    const { open: [first], lesson } = this.state;
    const [{ type }] = performance.getEntriesByType("navigation");
    if (lesson) await this.#teach(lesson);
    else if (first && type === "navigate") made.querySelector(`[data-fold=${first}]`)?.scrollIntoView({ behavior: "instant" });
  }

  // Shows a panel to a class, or another one, or none.
  async #teach(lesson) {
    if (!this.lesson && lesson) await this.#extra("lesson", this.parts.shared, ({ teach }) => teach(this, lesson));
    else if (lesson) this.lesson.choose(lesson);
    else this.lesson?.leave();
  }

  // What is asked for seldom comes when it is.
  async #extra(name, button, then) {
    button.setAttribute("aria-busy", true);
    try {
      await then(await EXTRAS[name]());
    } catch (error) {
      console.error(error);
      this.say("This could not be loaded: is there a connection? Press again.");
      this.parts.note.textContent = this.parts.voice.textContent;
      this.parts.note.hidden = false;
    }
    button.removeAttribute("aria-busy");
  }

  async #addFolds(made) {
    try {
      const { folds } = await import("./folds.js");
      this.folds = folds(this);
    } catch (error) { // the rest can be played with
      console.error(error);
      const again = make("button", "", "Try again", { type: "button" });
      again.addEventListener("click", () => location.reload());
      made.querySelector(".tt-play__folds").replaceChildren("What unfolds here could not be loaded. ", again);
      return;
    }
    const { step, about, wish } = this.state;
    const changed = {
      training: step !== START.step, broken: !isWhole(this.state), ask: about !== START.about, wish: wish !== START.wish,
    };
    for (const fold of made.querySelectorAll("[data-fold]")) {
      const { fold: name } = fold.dataset;
      fold.open = Boolean(changed[name]) || this.state.open.includes(name); // so that what a link has changed is seen
      fold.addEventListener("toggle", () => {
        const others = this.state.open.filter((one) => one !== name);
        this.state = { ...this.state, open: fold.open ? [...others, name] : others };
        this.show();
      });
    }
  }

  // What the first page shows of the training, below the bars, which do not wait for it.
  async #addLearning() {
    const { learning } = await import("./learning.js");
    this.folds = { training: Object.assign(learning(this), { isOpen: () => true }), ...this.folds }; // the tour or the map may be there
    if (this.view) this.settled = this.#showFolds(this.view);
  }

  #listen(made) {
    const { parts } = this;
    const on = (part, event, then) => parts[part]?.addEventListener(event, then);
    let before; // the field itself has grown when a letter stands in it
    on("field", "beforeinput", () => { before = this.#top; });
    on("field", "input", () => {
      this.#inPlace(() => this.#typed(parts.field.value), before);
      before = undefined;
      parts.field.scrollIntoView({ block: "nearest", behavior: "instant" }); // the bars may have pushed it away
    });
    on("field", "focus", () => { // of the screen a keyboard leaves a half: the bars belong into it
      if (byFinger()) parts.field.scrollIntoView({ block: "start" });
    });
    on("back", "click", () => { this.change({ at: null }); this.#rest(); });
    on("takeBack", "click", () => this.takeBack());
    on("mendAll", "click", () => {
      const { step, off, head, block, topK, topP } = START;
      this.change({ step, off, head, block, topK, topP });
      this.#rest();
    });
    on("temperature", "input", () => this.change({ temperature: Number(parts.temperature.value) }));
    on("topK", "input", () => {
      const k = Number(parts.topK.value);
      this.change({ topK: k === TOP_K_ALL ? null : k });
    });
    on("topP", "input", () => {
      const p = Number(parts.topP.value);
      this.change({ topP: p === 1 ? null : p });
    });
    on("share", "click", () => this.#share());
    on("python", "click", () => this.#python());
    on("picture", "click", () => this.#extra("sharing", parts.picture, ({ sharing }) => sharing(this)));
    on("tour", "click", () => this.#extra("tour", parts.tour, ({ tour }) => tour(this)));
    for (const one of made.querySelectorAll("[data-lesson]")) {
      one.addEventListener("click", () => this.#extra("lesson", one, ({ teach }) => teach(this, one.dataset.lesson, one)));
    }
    for (const one of made.querySelectorAll("[data-beginning]")) {
      one.addEventListener("click", () => this.#replace(one.dataset.beginning));
    }
    for (const one of made.querySelectorAll("[data-write]")) {
      one.addEventListener("click", () => this.write(one.dataset.write));
    }
    made.addEventListener("keydown", ({ key, target }) => {
      if (key === "Escape" && !this.lesson && !this.tour) this.#escape(target);
    });
    addEventListener("pagehide", () => {
      if (!this.later) return; // nothing has changed
      this.keep();
      leave(this.state);
    });
    addEventListener("hashchange", () => {
      const said = fromHash(location.hash);
      if (!said) return;
      this.change(said);
      for (const name of said.open) made.querySelector(`[data-fold=${name}]`)?.setAttribute("open", "");
      if (!this.compact) this.#teach(said.lesson);
    });
  }

  // Where the focus goes from a button that vanishes; in the field a phone would bring its keyboard.
  #rest() {
    const last = byFinger() && this.strip.chips.at(-1);
    (last || this.parts.field).focus({ preventScroll: true });
  }

  // Ends what is on: the writing, the sharing, or a look at another token.
  #escape(from) {
    const { back, sharing, picture } = this.parts;
    if (this.writing) this.change({});
    else if (sharing.contains(from)) {
      sharing.hidden = true;
      picture.setAttribute("aria-expanded", false);
      picture.focus();
    } else if (this.state.at !== null) {
      this.change({ at: null });
      if (from === back) this.#rest();
    }
  }

  // What the reader does ---------------------------------------------------------------------------------------------

  // Changes the state and shows it. `writes` if it is the model that writes on, which anything else ends; `says` gives
  // what is said afterwards, instead of what comes next; nothing if that is to be said later.
  change(changes, { writes = false, says = null } = {}) {
    if (!writes) this.writing = 0;
    if (changes.step !== undefined) this.missed = "";
    if (changes.drawn) this.added = "";
    const { step } = this.state;
    this.state = { ...this.state, ...changes };
    if (!this.thinking.has(this.state.step)) {
      const want = !this.compact && this.folds.training?.want || ((wanted) => this.#want(wanted));
      want(this.state.step);
      this.state.step = step;
    }
    this.show();
    clearTimeout(this.later);
    this.later = setTimeout(() => {
      if (this.writing) return;
      this.keep();
      if (!says) return this.#say();
      const said = says();
      if (said) this.say(said);
    }, REST);
  }

  // The model of another step, on the first page, where the note beside the text says that it did not come.
  async #want(step) {
    try {
      await this.thinking.fetch(step);
      this.change({ step });
    } catch (error) {
      this.missed = `The model ${moment(step)} could not be loaded: ${error.message}. This is the one ${moment(this.state.step)}.`;
      this.show();
    }
  }

  // Something other than typing changes the text; it can be taken back whole. A story written is one deed: it goes on.
  #deed(changes, { goesOn = false, ...options } = {}) {
    const before = this.#text;
    this.change(changes, options);
    if (goesOn) this.deeds.at(-1).after = this.#text;
    else this.deeds.push({ before, after: this.#text });
  }

  get #text() {
    return { text: this.state.text, drawn: this.state.drawn };
  }

  #written({ text, drawn }) {
    return text + this.thinking.tokenizer.decode(drawn);
  }

  // A beginning at which something is seen, with what else has to be chosen for that.
  example(text, changes = {}) {
    this.#deed({ text, drawn: [], at: null, ...changes });
  }

  // Another text in the place of this one.
  #replace(text) {
    this.#deed({ text, drawn: [], at: null });
  }

  // The field has a new text: tokens that were written on stay while their text does.
  #typed(typed) {
    const value = typed.slice(0, LONGEST);
    const { text, drawn } = this.state;
    const kept = drawn.findLastIndex((_, i) => value === text + this.thinking.tokenizer.decode(drawn.slice(0, i + 1)));
    if (kept >= 0) this.change({ drawn: drawn.slice(0, kept + 1), at: null });
    else this.change({ text: value, drawn: [], at: null });
  }

  // A bar is pressed, here or in a fold.
  press(id) {
    this.#inPlace(() => this.#put(id));
  }

  // The bars stay where they are, however many rows the text above them takes then.
  #inPlace(act, before = this.#top) {
    act();
    scrollBy({ top: this.#top - before, behavior: "instant" });
  }

  get #top() {
    return this.parts.bars.getBoundingClientRect().top;
  }

  // Writes a token, or puts it where another stands; what came after that goes.
  #put(id, options = {}) {
    if (id === undefined) return;
    const { ids, at } = this.view;
    if (at === null && this.#isFull) return;
    const added = this.added + this.thinking.texts[id];
    this.#deed({ ...this.thinking.written(this.state, at ?? ids.length, id), at: null }, options);
    this.added = added;
  }

  // The last deed whole; what has been typed since goes before, token by token, but no character in part.
  takeBack() {
    const { ids, rest, longer } = this.view;
    const last = this.deeds.at(-1), now = this.#written(this.state);
    if (last && now === this.#written(last.after)) this.change({ ...this.deeds.pop().before, at: null });
    else if (last && !now) this.change({ ...last.after, at: null });
    else if (!longer && now) { // what is not read would be lost
      const kept = rest ? ids.length : this.thinking.withoutLast(ids);
      this.change({ ...this.thinking.written(this.state, kept, null), at: null });
    }
  }

  get #canTakeBack() {
    const last = this.deeds.at(-1), now = this.#written(this.state);
    return last ? !this.view.longer || !now || now === this.#written(last.after) : Boolean(now) && !this.view.longer;
  }

  // Lets the model write a token, or up to the end of a sentence or of a story.
  async write(what) {
    if (this.writing && what !== this.what) return;
    if (this.writing || this.#isFull) {
      this.change({});
      return;
    }
    this.runs += 1;
    const mine = this.runs;
    this.writing = mine;
    this.what = what;
    if (this.state.at !== null) this.change({ at: null }, { writes: true });
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const pause = (ms) => new Promise((done) => { setTimeout(done, still ? 0 : ms); });
    if (what !== "token") this.#showControls();
    for (let i = 0; ; i += 1) {
      const id = draw(this.view.chosen, this.random);
      if (what !== "token" && i < SEEN && !still) {
        this.bars.light(id);
        await pause(SLOW);
        if (this.writing !== mine) return;
      }
      this.#put(id, { writes: true, goesOn: i > 0 });
      const text = this.thinking.texts[id];
      const over = what === "token" || text === "\n" || (what === "sentence" && /[.!?]/.test(text));
      if (over || this.#isFull) break;
      await pause(i < SEEN ? SLOW / 2 : PACE);
      if (this.writing !== mine) return;
    }
    this.change({}); // the end: no longer writing
  }

  get #isFull() {
    return this.view.longer || this.view.ids.length >= WINDOW - 1;
  }

  // What is shown ----------------------------------------------------------------------------------------------------

  show() {
    const { state, thinking, parts } = this;
    const view = thinking.look(state);
    this.view = view;
    const text = this.#written(state);
    if (parts.field.value !== text) {
      parts.field.value = text;
      parts.field.scrollTop = parts.field.scrollHeight;
    }
    if (!CSS.supports("field-sizing", "content")) { // then the style cannot let the field grow
      parts.field.style.height = "auto";
      parts.field.style.height = `${parts.field.scrollHeight + 2}px`;
    }
    parts.field.toggleAttribute("data-written", state.drawn.length > 0);
    this.#showTokens(view);
    this.likeliest = this.bars.show(view, thinking.texts, view.at === null ? null : view.ids[view.at]);
    this.#showVerdict(view);
    this.#showControls();
    this.settled = this.#showFolds(view);
  }

  // What is open below follows the bars, part by part, so that they answer at once.
  async #showFolds(view) {
    for (const [i, fold] of Object.values(this.folds).filter((one) => one.isOpen()).entries()) {
      await (i ? breath() : painted());
      if (view !== this.view) return; // something newer is shown by now
      fold.show(this.state, view);
    }
  }

  #showTokens({ ids, rest, longer, typed, at }) {
    const { strip, parts, thinking } = this;
    const grown = ids.length > strip.texts.length;
    strip.show(ids.map((id) => thinking.texts[id]), at);
    for (const [i, one] of strip.chips.entries()) one.classList.toggle("tt-play__chip--drawn", i >= typed);
    this.restChip?.remove();
    if (rest) {
      this.restChip = document.createElement("li");
      this.restChip.className = "tt-play__rest";
      this.restChip.textContent = rest;
      strip.list.append(this.restChip);
    }
    if (grown) strip.list.scrollTop = strip.list.scrollHeight;
    parts.count.textContent = this.#count(ids, at === null && rest.trim());
    const changed = this.#changed();
    const note = [this.missed, changed, this.#note(ids, longer)].filter(Boolean).join(" ");
    parts.note.textContent = note;
    parts.note.hidden = !note;
    if (parts.mendAll) parts.mendAll.hidden = !changed;
  }

  // That it is not the trained, whole model; on the first page also of what there is no slider there.
  #changed() {
    const { state } = this;
    const least = [state.topK !== null && `top-k ${state.topK}`, state.topP !== null && `top-p ${state.topP}`].filter(Boolean);
    const limited = this.compact && least.length ? `Limited by ${least.join(" and ")}.` : "";
    const yours = state.step === MINE ? `The model is your own, trained here: ${this.thinking.trainedFor(MINE).toLocaleString("en")} steps.` : "";
    const early = [START.step, MINE].includes(state.step) ? "" : `the model ${moment(state.step)} of training`;
    const less = isWhole(state) ? "" : "parts are missing";
    const unfinished = early || less ? `Not the finished model: ${[early, less].filter(Boolean).join(", and ")}.` : "";
    return [yours, unfinished, limited].filter(Boolean).join(" ");
  }

  // In one line, which is always there.
  #count(ids, unfinished) {
    const texts = ids.map((id) => this.thinking.texts[id]);
    if (unfinished) return `“${this.state.text.match(/\S*$/)[0]}…” is unfinished. The bars show what fits.`;
    if (!ids.length) return "Nothing is written yet. How does a story begin?";
    if (texts.at(-1) === "\n" && this.view.truth) return "The story is over; another one may begin.";
    if (texts.some(isByte)) {
      return `The model reads ${ids.length} tokens. Those like ${seen(texts.find(isByte))} are bytes: pieces of a character `
        + "that no story has.";
    }
    return `The model reads ${ids.length} ${ids.length === 1 ? "token: a word or a piece of one" : "tokens: words or pieces of words"}`;
  }

  #note(ids, longer) {
    if (longer) {
      const end = this.thinking.tokenizer.decode(ids.slice(-4)).replaceAll("\ufffd", "").trim();
      const upTo = end && `: up to “\u2068${end}\u2069”`; // isolated, whichever way it runs
      return `The model reads ${WINDOW} tokens and no more, its start counted${upTo}. What follows stays in your text, unread`
        + (this.state.text.length < LONGEST ? "." : "; the field holds no more than 2,000 characters.");
    }
    if (ids.length >= WINDOW - 1) return `The model reads ${WINDOW} tokens and no more, its start counted. Take some back, or start again.`;
    return "";
  }

  #showVerdict(view) {
    const { parts, thinking } = this;
    const text = thinking.tokenizer.decode(view.ids);
    const plain = isPlain(this.state);
    const stopped = view.stopped ?? { token: view.ids.length };
    const can = stopped.token === undefined ? thinking.oracle.wordsFor(text) : { words: [] };
    const [said, why] = view.truth ? verdict(view, plain) : impossible(stopped, !can.start);
    parts.verdict.parentNode.toggleAttribute("data-possible", Boolean(view.truth));
    parts.verdict.textContent = said;
    parts.reason.textContent = why;
    if (!view.truth) this.#offer(text, can);
    else if (plain) parts.about.textContent = TRUTH;
    else parts.about.replaceChildren(make("i", "tt-play__outline"), ` outline: before the sliders. ${changedBySliders(view)}`);
    parts.heading.textContent = view.at === null ? "What comes next?"
      : `What could have stood instead of ${quoted(thinking.texts[view.ids[view.at]])}?`;
    parts.back.hidden = view.at === null;
    this.place.classList.toggle("tt-play--looking", view.at !== null);
  }

  // The words that could stand where the text stops being a story; a press puts one there.
  #offer(text, { start, words }) {
    const { parts } = this;
    parts.about.replaceChildren();
    const few = words.filter((word) => word.trim()).slice(0, OFFERED);
    if (!few.length) return;
    const before = text.slice(0, start).trim().split(/\s+/u).at(-1);
    parts.about.append(NO_TRUTH, before ? `After “${before}” a story goes on with ` : "Stories begin with ");
    for (const word of few) {
      const button = make("button", "", seen(word.trim()), { type: "button" });
      button.addEventListener("click", () => { this.#replace(text.slice(0, start) + word); this.#rest(); });
      parts.about.append(button, " ");
    }
  }

  #showControls() {
    const { state, parts, writing } = this;
    this.place.toggleAttribute("data-writing", Boolean(writing));
    for (const one of parts.takeBack.parentNode.querySelectorAll("[data-write]")) {
      const { write } = one.dataset;
      const stops = writing && write === this.what;
      able(one, writing ? stops : !this.#isFull);
      one.textContent = stops ? "stop" : write;
      one.setAttribute("aria-label", stops ? "Stop" : `Write a ${write}`);
    }
    able(parts.takeBack, this.#canTakeBack);
    this.#slider("temperature", state.temperature, state.temperature.toFixed(2),
      state.temperature ? "" : ": always the likeliest");
    if (parts.topK) {
      this.#slider("topK", Math.min(state.topK ?? TOP_K_ALL, TOP_K_ALL), state.topK === null ? "all" : `the likeliest ${state.topK}`);
      this.#slider("topP", state.topP ?? 1, state.topP === null ? "all" : `the likeliest ${Math.round(100 * state.topP)} %`);
    }
    if (!parts.more) return;
    parts.more.hash = toHash(state);
    for (const link of document.querySelectorAll(".tt-panels a")) { // further down; each has its panel
      link.hash = toHash({ ...state, open: fromHash(link.hash)?.open ?? [] });
    }
  }

  #slider(name, value, text, more = "") {
    const { [name]: input, [`${name}Is`]: seenBeside } = this.parts;
    if (Number(input.value) !== value) input.value = value;
    seenBeside.textContent = text;
    input.setAttribute("aria-valuetext", text + more);
  }

  // The address, and what is said aloud ------------------------------------------------------------------------------

  keep() {
    const hash = toHash(this.state);
    if (hash !== location.hash) history.replaceState(history.state, "", hash || location.pathname + location.search);
  }

  // What has been written, and where things stand, unless that is known.
  #say() {
    const added = this.added && `Written: “${spoken(this.added.replaceAll("\n", " end of the story"))}”. `;
    const standing = this.#standing();
    if (added || standing !== this.heard) this.say(added + standing);
    this.heard = standing;
    this.added = "";
  }

  // One sentence about it.
  #standing() {
    const { view, likeliest, parts, thinking } = this;
    const three = likeliest.slice(0, 3).map((id) => `${spoken(thinking.texts[id])} ${percent(view.chosen[id])}`);
    const more = view.truth ? (isPlain(this.state) ? "" : changedBySliders(view)) : `${parts.reason.textContent} ${parts.about.textContent}`;
    const closeness = `${parts.verdict.textContent} ${more}`;
    const waits = view.rest && view.at === null ? parts.count.textContent : "";
    return `${waits} ${parts.note.textContent} ${parts.heading.textContent} ${three.join(", ")}. ${closeness}`.trim();
  }

  say(text) {
    this.parts.voice.textContent = text;
  }

  async #share() {
    this.keep();
    const cut = this.state.text.length > LONGEST ? " It holds the first 2,000 characters of your text." : "";
    let told = `The link is copied.${cut}`;
    try {
      await navigator.clipboard.writeText(location.href);
    } catch {
      told = `The link is in the address bar.${cut}`;
    }
    this.parts.shared.textContent = told;
    this.say(told);
  }

  // Puts the same beginning and the same sliders into the page's live cell, and goes there.
  #python() {
    const { text, drawn, temperature, topK, topP } = this.state;
    const cell = globalThis.tinytorchLive?.cells[0];
    if (!cell) {
      this.say("The cells of this page are not ready.");
      return;
    }
    const beginning = JSON.stringify(this.#written({ text, drawn }));
    const values = { beginning, temperature, top_k: topK ?? "None", top_p: topP ?? "None" };
    const code = Object.entries(values).reduce((all, [name, value]) => (
      all.replace(new RegExp(`^${name} = .*$`, "m"), () => `${name} = ${value}`)
    ), cell.original);
    const same = this.state.step === START.step && isWhole(this.state);
    cell.write(same ? code : `# The finished model, with all its parts: not the one in the playground.\n${code}`);
    cell.element.scrollIntoView({ block: "center" });
    cell.runButton.focus({ preventScroll: true });
  }
}

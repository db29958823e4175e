// The map of the model at work: the drawing of its parts, filled with what happens to the text in the playground.
//
// It has no model and no text of its own: the playground shows it what it computed, as one of its folds, while it is
// near the screen. What is chosen here changes the playground's state.

import { columnsOf } from "./map_columns.js";
import { layoutOf } from "./map_layout.js";
import { stages, strongest } from "./map_numbers.js";
import { panel } from "./map_panels.js";
import { partNamed } from "./map_parts.js";
import * as pictures from "./map_picture.js";
import { coloursOf, line } from "./map_tiles.js";
import { Watch } from "./map_watch.js";
import { shortLength, wordsOf } from "./map_words.js";
import { Bars } from "./bars.js";
import { make } from "../live/elements.js";
import { draw, likeliestFirst } from "./sampling.js";
import { BLOCKS, HEADS, START, WINDOW } from "./state.js";
import { chip, percent, quoted } from "./tokens.js";

const ROWS = 5; // bars
const TEXT = 60; // characters of the text's end that are seen
const NOTABLE = 0.25; // of a look: the token at which it goes has a column, however far away it is
const EXAMPLE = "One sunny morning Tom walked to the barn. There"; // from which the last block looks at the name
const DRAWN = { tokens: pictures.tokens, "token-embedding": pictures.embedding, positions: pictures.positions,
  attention: pictures.attention, mlp: pictures.mlp, head: pictures.scores, sampling: pictures.sampling };

const SHOWN = 900; // ms for which a number that is thrown is seen before its token is written

const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// Puts the map in the place of its drawing, and among the folds of the playground.
export async function map(play, place) {
  const made = new LiveMap(play, place);
  play.folds.map = made;
  const inside = place.contains(document.activeElement);
  place.append(made.element);
  place.dataset.map = "ready";
  if (inside) made.controls.watch.focus(); // the drawing, which had the focus, is gone
  made.watchSize();
  play.show();
  await play.settled;
  made.arrive();
  return made;
}

class LiveMap {
  constructor(play, place) {
    Object.assign(this, { play, place, blocks: Array.from({ length: BLOCKS }, (_, block) => block) });
    Object.assign(this, layoutOf(BLOCKS));
    this.heads = {}; // of each block the head that was chosen; without one the strongest is shown
    const { seen: [block, head] } = play.state;
    if (String(play.state.seen) !== String(START.seen)) this.heads[block] = head;
    this.thrown = null; // the random number that has been thrown for this text, and what it hits
    this.near = true;
    this.forecast = new Bars(this.bars, ROWS, (id) => play.press(id));
    this.drawings = this.#drawings();
    this.watch = new Watch(this);
    this.#listen();
    this.light(null, "", this.watch);
  }

  #drawings() {
    const all = Object.values(this.rows).filter((row) => DRAWN[row.name]).map((row) => (
      DRAWN[row.name](row, (position) => this.#look(position))
    ));
    for (const block of this.blocks) all.push(pictures.sum(this.sums[block], block), this.#headButtons(this.rows[`attention.${block}`]));
    return all;
  }

  // The heads of a block, one of which has its arcs drawn.
  #headButtons({ block, picture }) {
    const group = make("div", "tt-map__heads", "", { role: "group", "aria-label": `Heads of block ${block + 1}` });
    const about = make("span", "tt-map__looks");
    const buttons = Array.from({ length: HEADS }, (_, head) => {
      const button = make("button", "", head + 1, { type: "button", "aria-label": `Head ${head + 1} of block ${block + 1}` });
      button.addEventListener("click", () => {
        this.heads[block] = this.heads[block] === head ? undefined : head;
        this.toSay = `attention.${block}`;
        this.play.change({ seen: [block, this.heads[block] ?? this.scene.looks[block]?.head ?? head] });
      });
      return button;
    });
    group.append(make("span", "", "head", { "aria-hidden": "true" }), ...buttons, about);
    picture.before(group);
    return ({ looks, textOf }) => {
      const look = looks[block];
      for (const [head, button] of buttons.entries()) button.setAttribute("aria-pressed", head === look?.head);
      about.textContent = look ? `${this.heads[block] === undefined ? "looks most strongly" : "looks"}: ${percent(look.weight)} at ${
        look.to ? quoted(textOf(look.to)) : "the start"}` : "passed over";
    };
  }

  #listen() {
    const { controls, watch, play } = this;
    for (const row of Object.values(this.rows)) {
      row.button.addEventListener("click", () => play.change({ map: play.state.map === row.key ? null : row.key }));
    }
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      if (watch.on) watch.stop();
      const open = this.rows[this.open];
      if (!open) return;
      play.change({ map: null });
      open.button.focus();
    });
    controls.watch.addEventListener("click", () => watch.start());
    controls.pause.addEventListener("click", () => watch.pause());
    controls.next.addEventListener("click", () => watch.next());
    controls.stop.addEventListener("click", () => watch.stop());
    controls.draw.addEventListener("click", () => this.#drawToken());
    controls.example.addEventListener("click", () => play.example(EXAMPLE));
    new MutationObserver(() => { this.colours = null; this.#again(); })
      .observe(document.documentElement, { attributeFilter: ["data-theme"] });
  }

  // It is drawn only while it is near the screen, and again when it has another width.
  watchSize() {
    new IntersectionObserver((entries) => {
      this.near = entries.at(-1).isIntersecting;
      this.#again();
    }, { rootMargin: "200px" }).observe(this.element);
    let width = 0;
    new ResizeObserver(() => {
      const now = this.flow.clientWidth;
      if (now !== width) this.#again();
      else this.#lay();
      width = now;
    }).observe(this.whole);
  }

  #again() {
    if (this.last && this.near) this.#draw();
  }

  // As a fold of the playground ---------------------------------------------------------------------------------------

  isOpen() {
    return this.near;
  }

  show(state, view) {
    const changed = this.last && (String(view.ids) !== String(this.last.view.ids) || view.at !== this.last.view.at);
    if (changed) {
      this.thrown = null;
      if (this.watch.on && !this.watch.isLast) this.watch.stop();
    }
    this.last = { state, view };
    this.#draw();
  }

  #draw() {
    this.scene = this.#sceneOf(this.last);
    for (const show of this.drawings) show(this.scene);
    this.#showOpen();
    this.#showGuesses();
    for (const row of Object.values(this.rows)) if (row.said) row.said.textContent = wordsOf(row.key, this.scene);
    if (this.toSay) this.play.say(wordsOf(this.toSay, this.scene));
    this.toSay = null;
    const { view, state } = this.last;
    this.forecast.show(view, this.play.thinking.texts, view.at === null ? null : view.ids[view.at]);
    const drawn = state.drawn.at(-1);
    this.lastDrawn.replaceChildren(...drawn === undefined ? [] : ["last: ", chip("span", this.scene.textOfId(drawn), 0)]);
    const text = state.text + this.play.thinking.tokenizer.decode(state.drawn);
    this.text.firstChild.textContent = text.length > TEXT ? `… ${text.slice(-TEXT).replace(/^\S*\s/, "")}` : text || "…";
    this.#lay();
  }

  // All that is to be shown: the state and what the playground computed of it (`view`), and what follows from these.
  #sceneOf({ state, view }) {
    const { thinking } = this.play;
    const { reading } = view;
    const focus = view.at ?? view.ids.length; // the place from which the next token is guessed
    const width = this.rows.tokens.picture.clientWidth || 320;
    const known = new Map();
    const stagesOf = (index) => known.get(index) ?? known.set(index, stages(reading, index)).get(index);
    const all = stagesOf(focus);
    const textOfId = (id) => thinking.texts[id];
    const guess = (vector) => {
      const { belief } = thinking.next(reading.scores(vector), null, view.at === null ? view.rest : "", {});
      const id = likeliestFirst(belief)[0];
      return { id, p: belief[id] };
    };
    const looks = this.blocks.map((block) => this.#lookOf(reading, block, focus));
    this.colours ??= coloursOf(this.element);
    return {
      state, view, focus, width, looks, stages: all, textOfId, thrown: this.thrown,
      columns: columnsOf(reading.length, focus, width, looks.filter((look) => look?.weight > NOTABLE).map(({ to }) => to)),
      colours: this.colours,
      textOf: (index) => (index ? textOfId(reading.ids[index]) : pictures.START),
      stage: (part, block) => all.find((one) => one.part === part && one.block === block),
      added: (index, part, block) => stagesOf(index).find((one) => one.part === part && one.block === block).added,
      guesses: all.map(({ after }) => guess(after)),
      likeliest: likeliestFirst(view.belief)[0],
    };
  }

  #lookOf(reading, block, focus) {
    const head = this.heads[block];
    if (head === undefined) return strongest(reading, block, focus);
    const weights = reading.looks(block, head, focus);
    const to = weights.indexOf(Math.max(...weights));
    return weights.length ? { head, to, weight: weights[to] } : null;
  }

  // Beside each stage, what would be guessed there.
  #showGuesses() {
    const { scene } = this;
    for (const [i, { part, block, added, onto }] of scene.stages.entries()) {
      const { id, p } = scene.guesses[i];
      const { guess, size } = this.rows[block === null ? part : `${part}.${block}`];
      guess.replaceChildren(make("small", "", "would guess"), " ", chip("span", scene.textOfId(id), 0), ` ${percent(p)}`);
      if (added) size.textContent = onto ? `adds length ${shortLength(added)} to length ${shortLength(onto)}` : `length ${shortLength(added)}`;
    }
    const { view, likeliest } = scene;
    this.rows.head.guess.replaceChildren(make("small", "", "guesses"), " ", chip("span", scene.textOfId(likeliest), 0), ` ${percent(view.belief[likeliest])}`);
  }

  // The part that is open; its panel is made when it opens for the first time.
  #showOpen() {
    const pressed = document.activeElement, before = box(pressed).top; // what closes above it would push it away
    this.open = partNamed(this.last.state.map, BLOCKS);
    for (const row of Object.values(this.rows)) {
      const open = row.key === this.open;
      row.button.setAttribute("aria-expanded", open);
      row.open.hidden = !open;
      row.element.toggleAttribute("data-open", open);
      if (!open) continue;
      row.panel ??= panel(row, this.play, this.#acts);
      row.panel(this.scene);
    }
    if (pressed === this.rows[this.open]?.button) scrollBy({ top: box(pressed).top - before, behavior: "instant" });
  }

  get #acts() {
    return {
      throwNumber: () => this.throwNumber(), writeThrown: () => this.written(), isFull: () => this.isFull,
      words: () => wordsOf("sampling", this.scene),
    };
  }

  // Lanes run from the chips to the scores, and from the token that is drawn a line leads back to the text.
  #lay() {
    if (!this.scene) return;
    const { columns, focus } = this.scene;
    const flow = box(this.flow), picture = box(this.rows.tokens.picture), end = box(this.rows.head.picture);
    const left = picture.left - flow.left;
    this.lanes.style.top = `${picture.bottom - flow.top}px`;
    this.lanes.style.height = `${end.top - picture.bottom}px`;
    this.lanes.replaceChildren(...columns.map(({ index, x }) => {
      const lane = make("i", `tt-map__lane${index === focus ? " tt-map__lane--focus" : ""}${index > focus ? " tt-map__dim" : ""}`);
      lane.style.left = `${(left + x).toFixed(1)}px`;
      return lane;
    }));
    this.#layLoop(box);
  }

  #layLoop(box) {
    const whole = box(this.whole), from = box(this.controls.draw), to = box(this.text.firstChild);
    const right = whole.width - 4, y = (from.top + from.bottom) / 2 - whole.top, top = (to.top + to.bottom) / 2 - whole.top;
    const end = Math.min(to.right - whole.left + 16, right - 20);
    this.loop.replaceChildren(
      line(`M${from.right - whole.left + 6} ${y}H${right - 9}q9 0 9 -9V${top + 9}q0 -9 -9 -9H${end}`, "query"),
      line(`M${end - 8} ${top}l9 -4.5v9z`, "query", "head"),
    );
  }

  // What the reader does, and the watch -------------------------------------------------------------------------------

  // Looks from a token: at what follows it.
  #look(position) {
    this.play.change({ at: position === this.last.view.ids.length ? null : position });
  }

  get isFull() {
    const { longer, ids } = this.last.view;
    return longer || ids.length >= WINDOW - 1;
  }

  throwNumber() {
    const number = this.play.random();
    this.thrown = { number, id: draw(this.last.view.chosen, () => number) };
    this.#draw();
  }

  // Writes what was thrown; gives a sentence about it.
  written() {
    if (!this.thrown || this.isFull) return "There is nothing to write, or no room for it.";
    const { id } = this.thrown;
    this.play.press(id);
    return `The text goes on with ${quoted(this.scene.textOfId(id))}, and everything runs again.`;
  }

  // Throws, lets it be seen, and writes.
  async #drawToken() {
    if (this.isFull) return;
    this.throwNumber();
    const { thrown } = this;
    await new Promise((done) => { setTimeout(done, still() ? 0 : SHOWN); });
    if (this.thrown === thrown) this.written();
  }

  // A watch begins at the end of the text, with nothing open.
  begin() {
    const { play } = this;
    play.change({ at: null, map: null });
    this.show(play.state, play.view);
  }

  // Lights a part while one is watched; null for none. words: null if they stay.
  light(key, words, { on, paused, isLast }) {
    const { controls } = this;
    const focused = Object.values(controls).find((one) => one === document.activeElement);
    this.element.toggleAttribute("data-watching", on);
    for (const row of Object.values(this.rows)) row.element.toggleAttribute("data-lit", row.key === key);
    this.drawn.toggleAttribute("data-lit", key === "written");
    controls.watch.hidden = on;
    controls.example.hidden = on;
    controls.pause.hidden = !on || isLast;
    controls.next.hidden = !on || isLast;
    controls.stop.hidden = !on;
    controls.pause.textContent = paused ? "Run" : "Pause";
    controls.stop.textContent = isLast ? "Done" : "Stop";
    if (focused?.hidden) (on ? (isLast ? controls.stop : paused ? controls.next : controls.pause) : controls.watch).focus({ preventScroll: true });
    if (words !== null) this.told.textContent = words;
    const lit = key === "written" ? this.drawn : this.rows[key]?.element;
    this.#layWay(lit);
    lit?.scrollIntoView({ block: "center", behavior: still() ? "instant" : "smooth" });
  }

  // The way of the token that is watched, down to the part that is lit.
  #layWay(lit) {
    if (!lit) return;
    const lane = this.lanes.querySelector(".tt-map__lane--focus");
    const top = this.lanes.offsetTop;
    const flow = this.flow.getBoundingClientRect(), to = (lit.querySelector(".tt-map__picture") ?? lit).getBoundingClientRect();
    const end = Math.min(to.bottom - 6 - flow.top - top, this.lanes.offsetHeight);
    Object.assign(this.way.style, { left: lane.style.left, top: `${top}px`, height: `${Math.max(0, end)}px` });
  }

  // An address may name the part that is to be open: then the page goes there.
  arrive() {
    const [{ type }] = performance.getEntriesByType("navigation");
    if (this.open && type === "navigate") this.rows[this.open].element.scrollIntoView({ block: "center", behavior: "instant" });
  }
}

const box = (element) => element.getBoundingClientRect();

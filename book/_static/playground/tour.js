// A tour of the first page in six stops, each of which waits for what the reader does, and for nothing else.

import { make } from "../live/elements.js";
import { START, rememberTour } from "./state.js";
import { percent, quoted } from "./tokens.js";

const MOVES = 0.5; // the largest probability at which the temperature is shown
const FIRST = "first-words/counting-letters.html";

// What is in sight: where the reader stands, as a stop compares it.
const standing = (play) => ({ state: play.state, view: play.view, heads: JSON.stringify(play.folds.map?.heads) });
const written = (now, from) => String(now.view.ids) !== String(from.view.ids);

// Whether a token is one that the truth thinks likeliest.
export function isTruest(id, truth) {
  return (truth?.get(id) ?? 0) >= Math.max(...truth?.values() ?? [1]);
}

// Each stop: what is said, what is lit, where the focus goes, and `done`, which says whether the reader has done it:
// true, false, or a hint. `begin` prepares it; `kept` is what it remembers; `after` is said where something is to be
// looked at then: it goes on when that has been seen.
export const STOPS = [
  {
    words: "The model reads no letters. It reads tokens: words, or pieces of words. Press one of the coloured tokens.",
    lit: ({ parts }) => parts.tokens,
    focus: ({ strip }) => strip.chips[strip.stop],
    done: (now) => now.state.at !== null,
    after: "The bars now show what could have stood there instead.",
    begin: (play) => (play.view.ids.length ? play.change({ at: null }) : play.example(START.text)),
  },
  {
    words: "It answers with probabilities. The longer a teal bar, the likelier the model finds that token here. Press any bar: its token is written.",
    lit: ({ parts }) => parts.bars.closest("table"),
    focus: ({ parts }) => parts.bars.querySelector("button"),
    done: (now, from) => written(now, from),
    begin: (play) => play.change({ at: null }),
  },
  {
    words: "Rust is the truth. A program made up these stories at random, so the true probabilities are known. Press the token with the longest rust bar.",
    lit: ({ parts }) => parts.bars.closest("table"),
    focus: ({ parts }) => parts.bars.querySelector("button"),
    done: (now, from, play) => {
      if (!written(now, from)) return false;
      const id = now.view.ids.at(-1), { truth } = from.view;
      if (truth && isTruest(id, truth)) return true;
      const about = truth ? `The truth gave ${quoted(play.thinking.texts[id])} ${percent(truth.get(id) ?? 0)}. ` : "";
      return `${about}Now press the token with the longest rust bar.`;
    },
    begin: (play) => { if (!play.view.truth) play.example(START.text); },
    again: (play) => { if (!play.view.truth) play.example(START.text); },
  },
  {
    words: "Temperature decides how bold its choice is. Drag it far to one side, and watch the teal bars move away from their outlines.",
    lit: ({ parts }) => parts.temperature.closest("label"),
    focus: ({ parts }) => parts.temperature,
    done: ({ state: { temperature } }) => temperature <= 0.3 || temperature >= 1.7,
    after: "To the left it takes the likeliest token nearly always, to the right nearly any. The outlines are the bars as they were.",
    begin: (play) => { // where one token has nearly all, no bar would move
      if (Math.max(...play.view.belief) > MOVES) play.example(START.text);
      play.change({ temperature: START.temperature });
    },
  },
  {
    words: "Now look inside. A head looks back at the tokens before it: the thicker an arc, the more. Press the number of another head.",
    lit: () => document.querySelector(".tt-map .tt-map__heads") ?? document.querySelector(".tt-map"),
    focus: () => document.querySelector(".tt-map .tt-map__heads button"),
    done: (now, from) => Boolean(from.heads) && now.heads !== from.heads,
    after: "Another head, other arcs. What all of them have found is added up.",
  },
  {
    words: "All this was learned. Drag Training to untrained, read what it writes, and drag it back.",
    lit: ({ parts }) => parts.step.closest("label"),
    focus: ({ parts }) => parts.step,
    done: ({ state: { step } }, from, play, kept) => {
      kept.early ||= step !== START.step;
      return kept.early && step === START.step ? true
        : kept.early && !kept.told && (kept.told = true) && "That is how it wrote before. Now drag it back to trained.";
    },
    begin: (play) => play.change({ temperature: START.temperature, step: START.step }),
  },
];
const END = "Text becomes tokens, each next token gets a probability, one is drawn, and so on: that is a language model. You can build one. ";

const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

const come = () => new Promise((done, refuse) => {
  const link = make("link", "", "", { rel: "stylesheet", href: new URL("tour.css", import.meta.url).href });
  Object.assign(link, { onload: done, onerror: () => refuse(new Error("tour.css did not come")) });
  document.head.append(link);
});

export async function tour(play) {
  if (play.tour) return;
  await (tour.style ??= come().catch((error) => { tour.style = null; throw error; }));
  play.tour = new Tour(play);
  play.tour.go(0);
}

class Tour {
  constructor(play) {
    Object.assign(this, { play, number: -1, over: new AbortController() });
    this.count = make("strong", "", "");
    this.words = make("span", "", "", { role: "status" });
    this.links = make("span", "tt-tour__links");
    this.box = make("section", "tt-tour", "", { "aria-label": "Tour" });
    const text = make("p");
    text.append(this.count, " ", this.words, " ", this.links);
    this.skip = this.#button("", () => this.go(this.number + 1));
    this.end = this.#button("Leave", () => this.leave());
    const buttons = make("div");
    buttons.append(this.skip, this.end);
    this.box.append(text, buttons);
    play.place.before(this.box);
    document.documentElement.dataset.tour = "";
    document.addEventListener("keydown", ({ key }) => { if (key === "Escape") this.leave(); }, { signal: this.over.signal });
    play.folds.tour = { isOpen: () => true, show: () => this.look() };
  }

  #button(name, act) {
    const made = make("button", "", name, { type: "button" });
    made.addEventListener("click", act);
    return made;
  }

  // Goes on to a stop.
  go(number) {
    const { play } = this;
    this.number = number;
    const stop = STOPS[number];
    if (!stop) {
      this.#finish();
      return;
    }
    this.kept = {};
    this.from = null; // what the preparation changes is not the reader's deed
    stop.begin?.(play);
    this.from = standing(play);
    this.count.textContent = `${number + 1} of ${STOPS.length}`;
    this.words.textContent = stop.words;
    this.skip.textContent = "Skip this";
    this.#light(stop);
    stop.focus(play)?.focus({ preventScroll: true });
  }

  #light(stop) {
    const lit = stop?.lit(this.play);
    if (lit === this.lit) return;
    this.lit?.classList.remove("tt-tour__lit");
    this.lit = lit;
    if (!lit) return;
    lit.classList.add("tt-tour__lit");
    lit.scrollIntoView({ block: "center", behavior: still() ? "instant" : "smooth" });
  }

  // Something is shown: it may be what the stop waits for.
  look() {
    const { play, from } = this, stop = STOPS[this.number];
    if (!stop || !from) return;
    const now = standing(play);
    this.#light(stop); // the map may have come by now
    if (from.heads === undefined && now.heads !== undefined) {
      this.from = now;
      if (stop.focus(play)?.closest(".tt-map")) stop.focus(play).focus({ preventScroll: true });
      return;
    }
    const said = stop.done(now, from, play, this.kept);
    if (said === true && stop.after) this.#linger(stop.after);
    else if (said === true) this.go(this.number + 1);
    else if (said) {
      this.words.textContent = said;
      this.from = null;
      stop.again?.(play);
      this.from = standing(play);
    }
  }

  // What the reader has done stays in sight until it has been looked at.
  #linger(words) {
    this.from = null;
    this.words.textContent = words;
    this.skip.textContent = "Next";
    this.skip.focus({ preventScroll: true });
  }

  #finish() {
    const { root } = this.play;
    this.#light(null);
    this.count.textContent = "";
    this.words.textContent = END;
    this.links.append(make("a", "", "Begin with forty lines of Python", { href: `${root}${FIRST}` }));
    this.skip.remove();
    this.end.textContent = "Done";
    this.end.focus({ preventScroll: true });
    rememberTour();
  }

  leave() {
    const { play } = this;
    this.over.abort();
    this.#light(null);
    this.box.remove();
    delete document.documentElement.dataset.tour;
    delete play.folds.tour;
    play.tour = null;
    rememberTour();
    play.parts.tour.focus();
  }
}

// A panel of the playground large, for a projector: over the whole screen, with keys for what a class asks for.

import { make } from "../live/elements.js";
import { linkTo } from "./sharing.js";
import { BARS, FOLDS, START, SWITCHES } from "./state.js";

// [its key, its name, what it does]
const ACTS = [
  ["T", "Next token", (lesson) => lesson.play.write("token")],
  ["S", "Sentence", (lesson) => lesson.play.write("sentence")],
  ["U", "Take back", (lesson) => lesson.play.takeBack()],
  ["P", "A part off, or on", (lesson) => lesson.cycle()],
  ["C", "Copy the class’s link", (lesson) => lesson.copy()],
  ["Esc", "Leave", (lesson) => lesson.leave()],
];
const NAMES = { positions: "the positions", mask: "the mask", scale: "the division by √d", residual: "the residual stream",
  norm: "the last normalisation" };
const ALSO = { ArrowRight: "T" }; // keys of a presenter's remote
const WRITES = "textarea, input:not([type=range]), select"; // where a letter is a letter
const MOVES = `${WRITES}, input, .tt-play__tokens, .tt-play__scroll, .tt-map`; // where an arrow goes somewhere

// The parts that are off after these: each alone, one after the other, then none.
export function nextOff(off) {
  const after = off.length ? SWITCHES.indexOf(off.at(-1)) + 1 : 0;
  return SWITCHES.slice(after, after + 1);
}

// The key of ACTS that a press means; null if it is none of them.
export function keyOf({ key, ctrlKey, metaKey, altKey, target, defaultPrevented }, letters) {
  if (ctrlKey || metaKey || altKey || defaultPrevented) return null;
  if (key === "Escape") return "Esc";
  if (ALSO[key]) return target.closest(MOVES) ? null : ALSO[key];
  const said = key.toUpperCase();
  return letters && !target.closest(WRITES) && said !== "Esc" && ACTS.some(([one]) => one === said) ? said : null;
}

const come = (name) => new Promise((done, refuse) => {
  const link = make("link", "", "", { rel: "stylesheet", href: new URL(name, import.meta.url).href });
  Object.assign(link, { onload: done, onerror: () => refuse(new Error(`${name} did not come`)) });
  document.head.append(link);
});

// Shows a panel to a class; name: one of FOLDS, or the bars. `opener` has the focus afterwards.
export async function teach(play, name, opener = play.parts.field) {
  if (play.lesson) return;
  play.lesson = new Lesson(play, opener);
  const full = play.place.requestFullscreen?.().catch(() => {}); // while the press counts; else it lies over the page
  await (teach.style ??= come("lesson.css").catch((error) => { teach.style = null; play.lesson.leave(); throw error; }));
  await full;
  play.lesson?.begin(name);
}

class Lesson {
  constructor(play, opener) {
    Object.assign(this, { play, opener, letters: true, over: new AbortController(), behind: [] });
  }

  begin(name) {
    const { play, over: { signal } } = this;
    this.bar = this.#bar();
    play.place.firstChild.prepend(this.bar);
    document.documentElement.dataset.lesson = "";
    this.#hide();
    document.addEventListener("keydown", (event) => this.#key(event), { signal });
    let full = document.fullscreenElement === play.place;
    document.addEventListener("fullscreenchange", () => {
      if (full && !document.fullscreenElement) this.leave();
      full = Boolean(document.fullscreenElement);
    }, { signal });
    this.choose(name);
    this.bar.querySelector("button").focus({ preventScroll: true }); // in the list an arrow would choose another panel
    play.say("Full screen. Keys: T writes a token, S a sentence, U takes back, P takes a part off, Escape leaves.");
  }

  // What lies behind is not reached by key.
  #hide() {
    for (let at = this.play.place; at !== document.body && at.parentNode; at = at.parentNode) {
      for (const other of at.parentNode.children) {
        if (other === at || other.inert || ["SCRIPT", "STYLE", "LINK"].includes(other.tagName)) continue;
        other.inert = true;
        this.behind.push(other);
      }
    }
  }

  #bar() {
    const bar = make("div", "tt-lesson", "", { role: "group", "aria-label": "Lesson" });
    const label = make("label", "", "Show ");
    this.select = make("select");
    for (const one of [BARS, ...FOLDS]) this.select.append(make("option", "", this.#title(one), { value: one }));
    this.select.addEventListener("change", () => this.choose(this.select.value));
    label.append(this.select);
    bar.append(label);
    for (const [key, name, act] of ACTS) {
      const button = make("button", "", "", { type: "button", "aria-keyshortcuts": key === "Esc" ? "Escape" : key });
      button.append(make("kbd", "", key), ` ${name}`);
      button.addEventListener("click", () => act(this));
      bar.append(button);
    }
    const letters = make("button", "", "Letter keys", { type: "button", "aria-pressed": true });
    letters.addEventListener("click", () => {
      this.letters = !this.letters;
      letters.setAttribute("aria-pressed", this.letters);
    });
    this.told = make("span", "tt-lesson__told");
    bar.append(letters, this.told);
    return bar;
  }

  #fold(name) {
    return this.play.place.querySelector(`[data-fold=${name}]`);
  }

  #title(name) {
    return name === BARS ? "The bars alone" : this.#fold(name)?.querySelector("summary").textContent ?? name;
  }

  // Shows another panel beside the bars.
  choose(name) {
    const { play } = this;
    this.select.value = name;
    play.place.dataset.lesson = name;
    for (const one of FOLDS) this.#fold(one)?.toggleAttribute("data-shown", one === name);
    if (name !== BARS) this.#fold(name)?.setAttribute("open", "");
    play.place.scrollTop = 0;
    play.change({ lesson: name });
  }

  // Takes one part off, then another; after the last the model is whole again.
  cycle() {
    const { head, block } = START;
    const off = nextOff(this.play.state.off);
    this.play.change({ off, head, block });
    this.tell(off.length ? `Without ${NAMES[off[0]]}.` : "The model is whole.");
  }

  async copy() {
    const link = linkTo(this.play.state);
    try {
      await navigator.clipboard.writeText(link);
      this.tell("The link is copied.");
    } catch {
      this.tell(link);
    }
  }

  tell(text) {
    this.told.textContent = text;
    this.play.say(text);
  }

  #key(event) {
    const key = keyOf(event, this.letters);
    if (!key || event.repeat) return;
    event.preventDefault();
    ACTS.find(([one]) => one === key)[2](this);
  }

  leave() {
    const { play } = this;
    this.over.abort();
    this.bar?.remove();
    for (const other of this.behind) other.inert = false;
    delete document.documentElement.dataset.lesson;
    delete play.place.dataset.lesson;
    play.lesson = null;
    const back = (frames = 10) => { // the page gets its size and its letters back over some frames
      this.opener.scrollIntoView?.({ block: "center", behavior: "instant" });
      if (frames > 0) requestAnimationFrame(() => back(frames - 1));
    };
    if (document.fullscreenElement) document.exitFullscreen().catch(() => {}).then(() => back());
    play.change({ lesson: null });
    this.opener.focus();
    back();
  }
}

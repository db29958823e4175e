// Tokens as the reader sees them: coloured pieces of text, and numbers in plain words.

import { make } from "../live/elements.js";

const COLOURS = 4;
const SIGNS = { "\n": "↵", " ": "␣", "\t": "⇥" };
const NAMES = { "\n": "end of the story", " ": "space", "\t": "tab" };
const BYTE = /\\x([0-9a-f]{2})/g; // of a character that has no token, as the tokenizer shows it

// The text of a token, with a sign where there would be nothing to see.
export const seen = (text) => SIGNS[text] ?? text.replace(/\p{Cc}/gu, (sign) => SIGNS[sign] ?? asByte(sign));

const asByte = (sign) => `\\x${sign.charCodeAt(0).toString(16).padStart(2, "0")}`;

export const isByte = (text) => seen(text).search(BYTE) === 0;

// What a screen reader says of it.
export const spoken = (text) => NAMES[text] ?? (seen(text).replace(BYTE, "byte $1 ").trim() || "space");

// In a sentence.
export const quoted = (text) => (NAMES[text] ? `the ${NAMES[text]}` : `“${seen(text).trim() || "␣"}”`);

export const percent = (p) => {
  if (p <= 0) return "0 %";
  if (p < 0.001) return "< 0.1 %";
  return p < 0.0995 ? `${(100 * p).toFixed(1)} %` : `${Math.round(100 * p)} %`;
};

export function chip(tag, text, i, attributes = {}) {
  return make(tag, `tt-play__chip tt-play__chip--${i % COLOURS}`, seen(text), attributes);
}

// A row of tokens; where `onpress` is given they are buttons, one tab stop, between which the arrows go.
export class Strip {
  constructor(list, onpress = null, first = 1) { // first: the number of the first token
    Object.assign(this, { list, onpress, first, texts: [], chips: [], stop: 0 });
    if (onpress) list.addEventListener("keydown", (event) => this.#move(event));
  }

  // Shows these texts, and which one is pressed; those that stand there already stay. Who comes with the keyboard
  // lands on the one that is pressed, or on the last.
  show(texts, pressed = null) {
    let same = 0;
    while (same < texts.length && this.texts[same] === texts[same]) same += 1;
    for (const old of this.chips.splice(same)) old.parentNode.remove();
    for (let i = same; i < texts.length; i += 1) this.#add(texts[i], i);
    this.texts = texts;
    const last = texts.length - 1;
    this.#keepStop(this.list.contains(document.activeElement) ? Math.min(this.stop, last) : pressed ?? last);
    for (const [i, one] of this.chips.entries()) if (this.onpress) one.setAttribute("aria-pressed", i === pressed);
  }

  #add(text, i) {
    const item = make("li");
    const made = chip(this.onpress ? "button" : "span", text, i);
    if (this.onpress) {
      made.type = "button";
      made.tabIndex = -1;
      made.setAttribute("aria-label", `token ${i + this.first}: ${spoken(text)}`);
      made.addEventListener("click", () => { this.#keepStop(i); this.onpress(i); });
    }
    item.append(made);
    this.chips.push(made);
    this.list.append(item);
  }

  #keepStop(i) {
    if (!this.onpress) return;
    if (this.chips[this.stop]) this.chips[this.stop].tabIndex = -1;
    this.stop = Math.max(i, 0);
    if (this.chips[this.stop]) this.chips[this.stop].tabIndex = 0;
  }

  #move(event) {
    const last = this.chips.length - 1;
    const steps = { ArrowLeft: this.stop - 1, ArrowRight: this.stop + 1, Home: 0, End: last };
    const to = steps[event.key];
    if (to === undefined || !this.chips[to]) return;
    event.preventDefault();
    this.#keepStop(to);
    this.chips[to].focus();
  }
}

// Fills the body of a table: a row is its heading and its cells, which are texts or elements.
export function fillTable(body, rows) {
  body.replaceChildren(...rows.map(([head, ...cells]) => {
    const row = make("tr");
    const first = make("th", "", "", { scope: "row" });
    first.append(head);
    row.append(first, ...cells.map((cell) => {
      const made = make("td");
      made.append(cell);
      return made;
    }));
    return row;
  }));
}

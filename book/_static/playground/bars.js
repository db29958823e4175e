// What comes next: a row for each likely token, the model's bar above that of the truth.

import { make } from "../live/elements.js";
import { chip, percent, seen, spoken } from "./tokens.js";

const CLOSENESS = [[0.95, "Very close to the truth"], [0.8, "Close to the truth"],
  [0.5, "Some way from the truth"], [0, "Far from the truth"]];

export const fullBar = (share) => `full bar: ${share}`;
export const FEW = 3; // rows beside what changes them, further down

const FULL = [1, 0.5, 0.25]; // the probability of a bar that fills its row, the least that holds the longest

export class Bars {
  // body: of the table; rows: how many tokens; onpress: called with a token's id
  constructor(body, rows, onpress) {
    this.body = body;
    this.rows = Array.from({ length: rows }, (_, i) => new Row(i, onpress));
    this.rest = make("tr", "tt-play__others");
    this.scale = body.parentNode.querySelector(".tt-play__scale :last-child");
    body.append(...this.rows.map((row) => row.element), this.rest);
  }

  // now: the id of the token that stands there, if one does
  show({ belief, chosen, truth, pieces }, texts, now = null) {
    const height = (id) => Math.max(belief[id], chosen[id], truth?.get(id) ?? 0);
    const ids = [...belief.keys()].filter((id) => belief[id] > 0)
      .toSorted((a, b) => height(b) - height(a) || a - b);
    const shown = ids.slice(0, this.rows.length);
    const full = FULL.findLast((width) => width >= height(shown[0])) ?? 1;
    // what stands there has a row, and so has what the truth finds likeliest, however unlikely the model does
    const owed = [...new Set([likeliest(truth), now])].filter((id) => id !== null && !shown.includes(id));
    if (owed.length) shown.splice(-owed.length, owed.length, ...owed);
    this.scale.textContent = fullBar(percent(full));
    for (const [i, row] of this.rows.entries()) {
      const id = shown[i];
      row.show(id === undefined ? null : {
        id, text: texts[id], piece: pieces.get(id), belief: belief[id], chosen: chosen[id], full, here: id === now,
        truth: truth && (truth.get(id) ?? 0),
      });
    }
    const left = (of) => Math.max(0, 1 - shown.reduce((sum, id) => sum + of(id), 0));
    this.rest.replaceChildren(
      make("th", "", `${ids.length - shown.length} others`, { scope: "row" }), make("td"),
      make("td", "", percent(left((id) => chosen[id]))),
      make("td", "", truth ? percent(left((id) => truth.get(id) ?? 0)) : ""),
    );
    return shown;
  }

  // Lights the row of the token that has been drawn, until something else is shown.
  light(id) {
    for (const row of this.rows) row.element.classList.toggle("tt-play__row--here", row.id === id);
  }
}

const likeliest = (truth) => truth && [...truth.keys()].reduce((best, id) => (truth.get(id) > truth.get(best) ? id : best));

// One row, which stays where it is while its numbers change.
class Row {
  constructor(i, onpress) {
    this.element = make("tr", "tt-play__row");
    this.press = make("button", "tt-play__press", "", { type: "button", "aria-describedby": "tt-play-writes" });
    this.name = chip("span", "", i);
    this.ending = make("span", "tt-play__ending"); // of the word that a piece begins
    this.press.append(this.name, this.ending);
    this.press.addEventListener("click", () => onpress(this.id));
    const head = make("th", "", "", { scope: "row" });
    head.append(this.press);
    const drawing = make("td", "tt-play__drawing");
    this.bars = ["chosen", "belief", "truth"].map((what) => make("i", `tt-play__bar tt-play__bar--${what}`));
    drawing.append(...this.bars);
    [this.model, this.truth] = [make("td", "tt-play__model"), make("td", "tt-play__truth")];
    this.element.append(head, drawing, this.model, this.truth);
  }

  show(token) {
    this.element.classList.toggle("tt-play__row--empty", !token);
    this.press.hidden = !token;
    this.id = token?.id;
    if (!token) {
      for (const bar of this.bars) bar.style.inlineSize = "0";
      this.bars[1].hidden = true;
      this.model.textContent = this.truth.textContent = "";
      this.element.classList.remove("tt-play__row--here");
      return;
    }
    const { text, piece, belief, chosen, truth, full, here } = token;
    this.name.textContent = seen(text);
    this.ending.textContent = piece ? `${piece.ending}${piece.only ? "" : "…"}` : "";
    this.element.classList.toggle("tt-play__row--here", here);
    this.element.classList.toggle("tt-play__row--never", chosen === 0);
    const changed = Math.abs(chosen - belief) > 0.001;
    for (const [bar, p] of [[this.bars[0], chosen], [this.bars[1], belief], [this.bars[2], truth ?? 0]]) {
      bar.style.inlineSize = `${(100 * p / full).toFixed(2)}%`;
    }
    this.bars[1].hidden = !changed;
    this.model.textContent = percent(chosen);
    this.truth.textContent = truth === null ? "–" : percent(truth);
    // What is seen comes first: by that it can be called.
    const name = piece ? spoken(text + piece.ending) : spoken(text);
    const word = piece && !(piece.only && name === piece.word) ? `, as in ${piece.word}` : "";
    const part = piece ? `: the piece ${spoken(text)}${word}` : "";
    this.press.setAttribute("aria-label", `${name}${part}${here ? ", which stands there" : ""}`);
  }
}

const closeness = (agree) => CLOSENESS.find(([least]) => agree >= least)?.[1] ?? CLOSENESS.at(-1)[1];
const shareOf = (agree) => percent(agree).replaceAll(" ", "\u00a0");

// How far from the truth, in plain words: [the verdict, its reason]. The sliders change what is shown, not the model.
export function verdict({ agree }, plain) {
  if (!plain) return [`The model itself: ${closeness(agree).toLowerCase()}.`, ""];
  return [`${closeness(agree)}.`, `Model and truth have ${shareOf(agree)} of their probability in common.`];
}

export const changedBySliders = ({ agree, shown }) => (
  `The sliders have changed the bars: ${closeness(shown).toLowerCase()}. They have ${shareOf(shown)} in common with the truth now, `
  + `without the sliders ${shareOf(agree)}.`
);

export const NO_TRUTH = "So there is no truth to compare with; the model guesses all the same. ";

// What is said of a text that is none of the stories: [the verdict, its reason].
export function impossible(stopped, begins) {
  return stopped.token === undefined
    ? [begins ? "No story begins like this." : "No story goes on like this.", ""]
    : ["A story may go like this.", "But its words are never cut into these tokens, so there is no truth to show."];
}

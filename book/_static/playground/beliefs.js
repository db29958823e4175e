// What a story hides: what can be known of it after the text so far, beside what linear probes read off the model there.

import { make } from "../live/elements.js";
import { START, isWhole } from "./state.js";
import { readOff } from "./thinking.js";
import { percent, quoted } from "./tokens.js";

const HIDDEN = ["animal", "child"];
const EXAMPLES = {
  due: "One sunny morning Tom walked to the pond. There he met a little", // the next word is the animal
  early: "One sunny morning Tom walked to the pond. There he met a",
  beforeHe: "One sunny morning Tom walked to the pond. There",
};
const SMALL = 1e-9; // of a probability: no difference

export function beliefs(play) {
  const { parts, thinking } = play;
  const rows = {}; // by name of what is hidden
  let first = null, probes = null, missed = "It is on its way.", last = null;
  for (const [part, text] of Object.entries(EXAMPLES)) parts[part].addEventListener("click", () => play.example(text));
  fetchProbes();

  async function fetchProbes() {
    try {
      probes = await thinking.probes();
    } catch (error) {
      missed = `It could not be loaded: ${error.message}.`;
    }
    if (last && last.view === play.view) draw();
  }

  const known = (ids) => Object.fromEntries(HIDDEN.map((name) => [name, thinking.oracle.hidden(name, ids, thinking.tokenizer)]));

  function begin() {
    first = known([]);
    for (const name of HIDDEN) {
      rows[name] = Array.from(first[name].keys(), (value) => new Row(value));
      parts[name].append(...rows[name].map((row) => row.element));
    }
  }

  function draw() {
    if (!first) begin();
    const { state, view: { ids, at, reading } } = last;
    const position = at ?? ids.length, before = ids.slice(0, position);
    const stream = reading.stream(reading.model.numLayers, position);
    const truth = known(before), silent = why(truth.animal, state);
    const read = {};
    for (const name of HIDDEN) {
      const asked = probes && truth[name] && state.step === START.step && !(name === "animal" && silent);
      read[name] = asked ? readOff(stream, probes[name]).map((p) => Math.min(Math.max(p, 0), 1)) : null;
      for (const [i, row] of rows[name].entries()) row.show(truth[name]?.get(row.value), read[name]?.[i]);
    }
    parts.believed.textContent = silent || agreement(thinking.texts[before.at(-1)], [...truth.animal.values()], read.animal, state);
  }

  // Why the probe is not asked for the animal; "" if it is.
  function why(animal, { step }) {
    if (!animal) return "No story begins with these tokens, so nothing can be known of what it hides.";
    if (!probes) return `The probe could not be loaded. ${missed}`;
    if (step !== START.step) return "Only the numbers of the finished model can be read, not those of this one.";
    const all = [...animal];
    if (all.every(([value, p]) => Math.abs(p - first.animal.get(value)) < SMALL)) {
      return "The place is not told yet, so any animal may come, and there is nothing to read yet.";
    }
    return all.some(([, p]) => p > 1 - SMALL) ? "The animal is known by now: nothing is hidden that could be read." : "";
  }

  return {
    show(state, view) {
      last = { state, view };
      draw();
    },
  };
}

function agreement(text, truth, read, state) {
  const whole = Math.max(read.reduce((sum, p) => sum + p, 0), 1); // what is cut off at 0 leaves more than 100 %
  const common = truth.reduce((sum, p, i) => sum + Math.min(p, read[i] / whole), 0);
  const share = percent(common).replaceAll(" ", "\u00a0");
  const missing = isWhole(state) ? "" : " Parts are missing, and the reading is made for the whole model.";
  return `After ${quoted(text)} what is read off and the truth have ${share} of the animal’s probability in common.${missing}`;
}

// A value: the bar of the probe, or of another model, above that of the truth.
export class Row {
  constructor(value) {
    this.value = value;
    this.element = make("tr", "tt-play__believed");
    const drawing = make("td", "tt-play__drawing");
    this.bars = ["chosen", "truth"].map((what) => make("i", `tt-play__bar tt-play__bar--${what}`));
    drawing.append(...this.bars);
    this.cells = ["model", "truth"].map((what) => make("td", `tt-play__${what}`));
    this.element.append(make("th", "", value, { scope: "row" }), drawing, ...this.cells);
  }

  // Both as probabilities, undefined where there is none.
  show(truth, read) {
    for (const [i, p] of [read, truth].entries()) {
      this.bars[i].style.inlineSize = `${(100 * (p ?? 0)).toFixed(2)}%`;
      this.cells[i].textContent = p === undefined ? "–" : percent(p);
    }
  }
}

// Break it: parts of the model are taken away, and how far from the truth it is then, and what it writes.

import { make } from "../live/elements.js";
import { Bars, FEW } from "./bars.js";
import { BLOCKS, HEADS, WINDOW, isWhole } from "./state.js";
import { fillTable, percent } from "./tokens.js";
import { writeOn } from "./writing.js";

const LONG = 24; // tokens that are written on to compare

// Those that are seen at once come first. [name, what is taken away, the chapter that explains it]
const PARTS = [
  ["residual", "The residual stream", "transformer/block", "The block"],
  ["norm", "The last normalisation", "transformer/normalisation-and-mlp", "Normalisation"],
  ["mask", "The mask: tokens may look ahead", "attention/scaled-dot-product", "The mask"],
  ["scale", "The division by √d", "attention/scaled-dot-product", "Why √d"],
  ["positions", "The positions: what is far and near looks alike", "attention/positions-in-attention", "Positions"],
];
const CHOICES = [
  ["head", "One head of attention", "attention/multi-head", "Heads",
    Array.from({ length: BLOCKS * HEADS }, (_, i) => [
      [Math.floor(i / HEADS), i % HEADS], `head ${i % HEADS + 1} of block ${Math.floor(i / HEADS) + 1}`,
    ])],
  ["block", "A whole block", "transformer/block", "The block",
    Array.from({ length: BLOCKS }, (_, i) => [i, `block ${i + 1}`])],
];

export function missing(play) {
  const { parts, thinking } = play;
  const switches = PARTS.map(([name, text, page, about]) => {
    const input = make("input", "", "", { type: "checkbox", role: "switch" });
    input.addEventListener("change", () => {
      const { off } = play.state;
      play.change({ off: input.checked ? [...off, name] : off.filter((one) => one !== name) });
    });
    parts.parts.append(item(input, text, `${play.root}${page}.html`, about));
    return { input, name };
  });
  const selects = CHOICES.map(([name, text, page, about, options]) => {
    const select = make("select");
    select.append(make("option", "", "none", { value: "" }));
    for (const [value, label] of options) select.append(make("option", "", label, { value: JSON.stringify(value) }));
    select.addEventListener("change", () => {
      play.change({ [name]: select.value ? JSON.parse(select.value) : null });
    });
    parts.parts.append(item(select, text, `${play.root}${page}.html`, about));
    return { select, name };
  });
  parts.mend.addEventListener("click", () => play.change({ off: [], head: null, block: null }));
  const bars = new Bars(parts.brokenBars, FEW, (id) => play.press(id));
  let turn = 0;

  return {
    show(state, view) {
      const { ids, longer, stopped } = view;
      bars.show(view, thinking.texts);
      for (const { input, name } of switches) input.checked = state.off.includes(name);
      for (const { select, name } of selects) select.value = state[name] === null ? "" : JSON.stringify(state[name]);
      parts.mend.setAttribute("aria-disabled", isWhole(play.state));
      parts.brokenAbout.textContent = `On average, ${stopped ? "up to where this stops being a story" : "over the text so far"}`;
      const kinds = isWhole(play.state) ? [["whole", true]] : [["whole", true], ["broken", false]];
      const texts = kinds.map(() => make("span", "tt-play__writes"));
      const rows = kinds.map(([kind, whole], i) => {
        const reading = thinking.reading(ids, state, whole);
        return [kind, shared(thinking.meanDistance(ids, reading)), texts[i]];
      });
      fillTable(parts.broken, rows);
      turn += 1;
      const mine = turn;
      const go = async () => {
        for (const [i, [, whole]] of kinds.entries()) {
          const tell = (text) => { texts[i].textContent = `…${text.replaceAll("\n", " ↵ ")}`; };
          await writeOn(thinking, ids, state, { whole, most: LONG, wanted: () => mine === turn, tell });
        }
      };
      if (!longer && ids.length < WINDOW - 1) go();
      else for (const text of texts) text.textContent = `Nothing: it reads ${WINDOW} tokens and no more, and all are there.`;
    },
  };
}

function item(control, text, address, about) {
  const made = make("li");
  const label = make("label", "");
  label.append(control, make("span", "", text));
  made.append(label, make("a", "", about, { href: address }));
  return made;
}

const shared = ({ agree, nats }) => `${percent(agree)} (${nats.toFixed(2)} apart)`;

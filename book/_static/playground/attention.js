// Where a token looks: lines from it to those before, as thick as the weights of one head.

import { make } from "../live/elements.js";
import { BLOCKS, HEADS } from "./state.js";
import { Strip, chip, fillTable, percent, quoted } from "./tokens.js";

const FAINTEST = 0.02; // of the weights, below which there is no line
const THICKEST = 7; // pixels
const BEFORE = "start"; // what the model reads before the first token
const EXAMPLE = "One sunny morning Tom walked to the barn. There"; // from which the last block looks at the name
const SVG = "http://www.w3.org/2000/svg";

export function attention(play) {
  const { parts, thinking } = play;
  let from = null, last = null; // the token one looks from, null for the last
  const strip = new Strip(parts.looking, (i) => { from = i; drawLast(); }, 0);
  parts.example.addEventListener("click", () => play.example(EXAMPLE, { seen: [BLOCKS - 1, 0] }));
  const buttons = headButtons(parts.heads, (seen) => play.change({ seen }));

  function drawLast() {
    const { state, view } = last;
    const [layer, head] = state.seen;
    const { length } = view.reading;
    const row = Math.min(from ?? length - 1, length - 1);
    const weights = view.reading.attention(layer, head).subarray(row * length, (row + 1) * length);
    const texts = [BEFORE, ...view.ids.map((id) => thinking.texts[id])];
    for (const { button, seen } of buttons) button.setAttribute("aria-pressed", String(seen) === String(state.seen));
    parts.silent.textContent = taken(state);
    parts.silent.hidden = !parts.silent.textContent;
    strip.show(texts, row);
    for (const [i, one] of strip.chips.entries()) one.style.setProperty("--much", weights[i].toFixed(3));
    drawLines(parts, strip.chips, row, weights);
    parts.looksFrom.textContent = `From ${name(texts[row], row)}, head ${head + 1} of block ${layer + 1}`;
    const order = [...weights.keys()].filter((i) => weights[i] > 0).toSorted((a, b) => weights[b] - weights[a]);
    fillTable(parts.weights, order.map((i) => [chip("span", texts[i], i), percent(weights[i])]));
  }

  new ResizeObserver(() => { if (last) drawLast(); }).observe(parts.looks);
  return {
    show(state, view) {
      if (from !== null && from >= view.reading.length) from = null;
      if (last && last.view.ids.length !== view.ids.length) from = null; // the newest is the one of interest
      last = { state, view };
      drawLast();
    },
  };
}

// That nothing comes of where this head looks.
function taken({ seen: [layer, head], head: silent, block }) {
  if (block === layer) return `Block ${layer + 1} is passed over: nobody looks.`;
  return silent?.[0] === layer && silent[1] === head ? "This head is taken away: this is how it would look, but it has no effect." : "";
}

const name = (text, i) => (i === 0 ? `the ${BEFORE}` : quoted(text));

function headButtons(place, onpress) {
  const all = [];
  for (let layer = 0; layer < BLOCKS; layer += 1) {
    const group = make("div", "tt-play__head", `Block ${layer + 1}, head`, { role: "group", "aria-label": `Heads of block ${layer + 1}` });
    for (let head = 0; head < HEADS; head += 1) {
      const button = make("button", "", head + 1, { type: "button", "aria-label": `Head ${head + 1} of block ${layer + 1}` });
      button.addEventListener("click", () => onpress([layer, head]));
      group.append(button);
      all.push({ button, seen: [layer, head] });
    }
    place.append(group);
  }
  return all;
}

// Curves from the middle of one chip to those of the others, over the rows of the text.
function drawLines({ lines, looks }, chips, row, weights) {
  const origin = looks.getBoundingClientRect();
  const boxes = chips.map((one) => one.getBoundingClientRect());
  const middle = ({ left, width, top }) => [left + width / 2 - origin.left, top - origin.top];
  const [x0, y0] = middle(boxes[row]);
  lines.setAttribute("viewBox", `0 0 ${origin.width} ${origin.height}`);
  lines.replaceChildren(...boxes.flatMap((box, i) => {
    if (weights[i] < FAINTEST || i === row) return [];
    const [x, y] = middle(box);
    const rise = Math.min(22, 8 + Math.abs(x - x0) / 8);
    const line = document.createElementNS(SVG, "path");
    line.setAttribute("d", `M${x0} ${y0}C${x0} ${y0 - rise} ${x} ${y - rise} ${x} ${y}`);
    line.setAttribute("stroke-width", (THICKEST * weights[i]).toFixed(2));
    return [line];
  }));
}

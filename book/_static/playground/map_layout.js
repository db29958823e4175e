// What stands where in the map: a section for each part, in the order in which a text runs through them.

import { make } from "../live/elements.js";
import { bars } from "./layout.js";
import { PARTS } from "./map_parts.js";
import { svg } from "./map_tiles.js";

const HINT = "Every token has a lane, down which its vector runs; the bold lane is the one that guesses what comes next. Press a part to open "
  + "it, a token to look from there, a head to see where it looks. A percentage is a probability: how often in a hundred tries.";
const FRAMES = ["gpt", "embedding", "block"];

// A part: its name, which opens it, its picture, the same in words, and what opens.
function part(key, tag = "section") {
  const [name, block] = key.split(".");
  const { name: title, remark, role } = PARTS[name];
  const frame = FRAMES.includes(name);
  const element = make(tag, `${frame ? "tt-map__frame" : "tt-map__part"} d-${role}`, "", { "data-map": key });
  const button = make("button", "tt-map__name", "", { type: "button", "aria-expanded": "false", "aria-controls": `tt-map-${key}` });
  const number = block === undefined || !frame ? "" : ` ${Number(block) + 1}`;
  const heard = block === undefined || frame ? ": " : ` of block ${Number(block) + 1}: `; // what is seen says it by its place
  button.append(make("strong", "", title + number), make("span", "visually-hidden", heard), " ", make("span", "tt-map__remark", remark));
  const open = make("div", "tt-map__open", "", { id: `tt-map-${key}` });
  open.hidden = true;
  element.append(button, open);
  const row = { key, name, block: block === undefined ? null : Number(block), element, button, open };
  if (frame) return row;
  row.guess = make("p", "tt-map__guess", "", { "aria-hidden": "true" });
  row.picture = make("div", "tt-map__picture", "", name === "tokens" || name === "sampling" ? {} : { "aria-hidden": "true" });
  row.said = make("p", "visually-hidden");
  row.size = make("p", "tt-map__size", "", { "aria-hidden": "true" });
  button.after(row.guess, row.size, row.picture, row.said);
  return row;
}

const control = (name, text, attributes = {}) => make("button", "", text, { type: "button", "data-control": name, ...attributes });

// {element, rows by key, and the parts that scripts fill}
export function layoutOf(blocks) {
  const rows = {};
  const add = (key, place, tag) => {
    rows[key] = part(key, tag);
    place.append(rows[key].element);
    return rows[key].element;
  };
  const element = make("div", "tt-map__live tt-play__all tt-drawing", "", { role: "region", "aria-label": "The model at work" });
  const bar = make("div", "tt-map__bar");
  const controls = {
    watch: control("watch", "Watch one token"), pause: control("pause", "Pause"), next: control("next", "Next"),
    stop: control("stop", "Stop"), example: control("example", "Show how it looks back at a name"),
  };
  const told = make("p", "tt-map__told", "", { "aria-live": "polite" });
  bar.append(...Object.values(controls), make("p", "tt-map__hint", HINT), told);
  const whole = make("div", "tt-map__whole");
  const text = make("p", "tt-map__text", "", { "aria-hidden": "true" });
  text.append(make("span"));
  const flow = make("div", "tt-map__flow");
  const lanes = make("div", "tt-map__lanes", "", { "aria-hidden": "true" });
  flow.append(lanes);
  add("tokens", flow);
  const gpt = add("gpt", flow, "div");
  const embedding = add("embedding", gpt, "div");
  add("token-embedding", embedding);
  add("positions", embedding);
  const sums = [];
  for (let block = 0; block < blocks; block += 1) {
    const frame = add(`block.${block}`, gpt, "div");
    add(`attention.${block}`, frame);
    add(`mlp.${block}`, frame);
    sums.push(make("div", "tt-map__sum", "", { "aria-hidden": "true" }));
    sums[block].append(make("p", "tt-map__note", `the vectors after block ${block + 1}`));
    frame.append(sums[block]);
  }
  add("head", gpt);
  add("sampling", flow);
  rows.sampling.picture.innerHTML = bars("mapBars", 'aria-label="The likeliest next tokens"');
  const drawn = make("p", "tt-map__drawn");
  const draw = control("draw", "Draw a token"), lastDrawn = make("span");
  drawn.append(draw, " ", lastDrawn);
  const loop = svg("svg", { class: "tt-map__loop", "aria-hidden": "true" });
  const way = make("i", "tt-map__way");
  flow.append(way);
  whole.append(text, flow, drawn, loop);
  element.append(bar, whole);
  const below = make("div", "tt-map__below");
  for (const key of ["training", "tensors", "autograd"]) add(key, below);
  element.append(below);
  return { element, rows, controls: { ...controls, draw }, told, bar, whole, text, flow, lanes, way, sums, drawn, lastDrawn, loop,
    bars: rows.sampling.picture.querySelector("tbody") };
}

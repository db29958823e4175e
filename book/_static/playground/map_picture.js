// What is seen in each part of the map. A scene is all that is to be shown: see `sceneOf` in map.js.

import { Tiles, arc, clock, label, svg } from "./map_tiles.js";
import { angles, pieces } from "./map_numbers.js";
import { share } from "./map_columns.js";
import { Strip, seen, spoken } from "./tokens.js";

const ARCS = 64; // the height of the arcs,
const BASE = ARCS - 4, TOP = 6;
const THICKEST = 9; // of them
const FAINTEST = 0.03; // of the weights, below which there is no arc
const SKYLINE = 56; // the height of the scores
const ROW = 56; // the height of the row of chances
const PIECE = 9; // pixels for a letter, which a piece of it must have for its name
export const START = "start"; // what the model reads before the first token

const size = ({ columns }) => Math.min(44, columns[0].width - 8);

// A picture as wide as its place.
function canvasOf(place) {
  const picture = svg("svg");
  place.append(picture);
  return (width, height, ...parts) => {
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    picture.style.height = `${height}px`;
    picture.replaceChildren(...parts);
  };
}

// The square of each token that has a column; vectorOf(index) gives its numbers.
const squares = ({ columns, focus }, vectorOf) => columns.map(({ index, x }) => (
  { x, vector: index === undefined ? null : vectorOf(index), dim: index > focus }
));

// A small plus on each lane, where something is added to it.
const joins = ({ columns, width, focus }) => [width, 15, ...columns.flatMap(({ index, x }) => (index === undefined ? [] : [
  svg("path", { class: `tt-map__join ${index === focus ? "" : "tt-map__dim"}`, d: `M${x - 4.5} 7.5h9M${x} 3v9` })]))];

// The tokens as chips with their numbers; a press looks from one.
export function tokens({ picture }, look) {
  const list = document.createElement("ol");
  list.className = "tt-play__tokens tt-map__chips";
  list.setAttribute("aria-label", "Tokens to look from");
  picture.append(list);
  let columns = [];
  const strip = new Strip(list, (i) => look(columns[i].index ?? columns[i].to - 1));
  return (scene) => {
    columns = scene.columns;
    const { view, focus, textOf } = scene;
    strip.show(columns.map(({ index, from, to }) => (index === undefined ? `+${to - from}` : textOf(index))),
      columns.findIndex(({ index }) => index === focus));
    for (const [i, chip] of strip.chips.entries()) {
      const { index, from, to, x, width } = columns[i];
      chip.style.fontSize = width < 60 ? "0.8rem" : "";
      chip.parentNode.style.cssText = `left: ${(x - width / 2).toFixed(1)}px; width: ${width.toFixed(1)}px`;
      chip.parentNode.dataset.id = index === undefined ? "" : view.reading.ids[index];
      chip.setAttribute("aria-label", index === undefined ? `${to - from} tokens more, from token ${from} on`
        : index ? `token ${index}: ${spoken(textOf(index))}` : START);
    }
  };
}

export function embedding({ picture }) {
  const tiles = new Tiles(picture);
  return (scene) => {
    const { view: { reading }, colours } = scene;
    tiles.show(squares(scene, (index) => reading.stream(0, index)), size(scene), colours);
  };
}

// A clock for each position: its hand is the angle of the first pair.
export function positions({ picture }) {
  const draw = canvasOf(picture);
  return ({ columns, width, view, focus }) => {
    const still = view.reading.broken.positions;
    draw(width, 38, ...columns.filter(({ index }) => index !== undefined).map(({ index, x }) => {
      const [angle] = angles(view.reading.model, still ? 0 : index);
      const one = svg("g", index > focus ? { class: "tt-map__dim" } : {}, clock(x, 12, 9, angle), label(x, 34, index, "position"));
      return one;
    }));
  };
}

// Arcs from the token in focus to those at which the chosen head looks, and what all heads add to every lane.
export function attention({ picture, block }) {
  const draw = canvasOf(picture), tiles = new Tiles(picture, "tt-map__added"), join = canvasOf(picture);
  return (scene) => {
    const { columns, focus, view: { reading }, looks, width, colours } = scene;
    const head = looks[block]?.head ?? 0;
    const weights = reading.looks(block, head, focus);
    const at = columns.find(({ index }) => index === focus).x;
    draw(width, ARCS + 14, ...columns.flatMap((column) => {
      const weight = share(weights, column);
      const much = svg("g", { opacity: Math.min(1, 0.45 + weight) });
      if (weight >= FAINTEST && column.index !== focus) much.append(arc(at, column.x, BASE, TOP, Math.max(1, THICKEST * weight)));
      if (weight >= FAINTEST && column.index === focus) {
        much.append(svg("circle", { class: "tt-map__arc", cx: at, cy: BASE - 9, r: 8, "stroke-width": Math.max(1, THICKEST * weight / 2) }));
      }
      if (weight >= 0.01) much.append(label(column.x, ARCS + 10, `${Math.round(100 * weight)} %`, "query"));
      return much.childNodes.length ? [much] : [];
    }));
    tiles.show(squares(scene, (index) => scene.added(index, "attention", block)), 0.64 * size(scene), colours);
    join(...joins(scene));
  };
}

export function mlp({ picture, block }) {
  const tiles = new Tiles(picture, "tt-map__added"), join = canvasOf(picture);
  return (scene) => {
    tiles.show(squares(scene, (index) => scene.added(index, "mlp", block)), 0.64 * size(scene), scene.colours);
    join(...joins(scene));
  };
}

export function sum(place, block) {
  const tiles = new Tiles(place);
  return (scene) => {
    const { view: { reading }, colours } = scene;
    tiles.show(squares(scene, (index) => reading.stream(block + 1, index)), size(scene), colours);
  };
}

// The scores of all tokens side by side, by their numbers; the highest have their names.
export function scores({ picture }) {
  const draw = canvasOf(picture);
  return ({ view: { reading }, focus, width, textOfId }) => {
    const all = reading.logits(focus);
    const least = Math.min(...all), most = Math.max(...all);
    const x = (id) => (id + 0.5) / all.length * width, y = (score) => 16 + (SKYLINE - 16) * (most - score) / (most - least || 1);
    const path = all.reduce((line, score, id) => `${line}M${x(id).toFixed(1)} ${SKYLINE}V${y(score).toFixed(1)}`, "");
    const named = [];
    for (const id of [...all.keys()].toSorted((a, b) => all[b] - all[a]).slice(0, 6)) {
      const half = 5 + 3.4 * seen(textOfId(id)).length, at = Math.min(Math.max(x(id), half), width - half);
      if (named.length < 4 && named.every((one) => Math.abs(one.at - at) > one.half + half)) named.push({ id, at, half });
    }
    draw(width, SKYLINE, svg("path", { class: "tt-map__skyline", d: path }),
      ...named.map(({ id, at }) => label(at, Math.max(11, y(all[id]) - 4), seen(textOfId(id)).trim(), "norm")));
  };
}

// All chances in a row, and where a random number stops.
export function sampling({ picture }) {
  const draw = canvasOf(picture);
  return ({ view, thrown, width, textOfId }) => {
    const all = width - 20; // the bars above have that much at their sides
    const row = pieces(view.chosen).flatMap(({ id, from, to }) => {
      const hit = thrown?.id === id, name = seen(textOfId(id)).trim(), length = (to - from) * all;
      const piece = svg("rect", { class: hit ? "tt-map__piece tt-map__hit" : "tt-map__piece", x: (from * all).toFixed(1), y: 14,
        width: Math.max(0.5, length - 1).toFixed(1), height: 22, rx: 2 });
      return length < PIECE * (name.length + 0.5) ? [piece] : [piece, label((from + to) / 2 * all, 29, name, hit ? "paper tt-map__on" : "ink tt-map__on")];
    });
    const needle = thrown ? [svg("path", { class: "tt-map__needle", d: `M${(thrown.number * all).toFixed(1)} 14l-5.5 -10h11z` })] : [];
    draw(all, ROW, svg("rect", { class: "tt-map__all", width: all, height: 22, y: 14, rx: 3 }), ...row, ...needle,
      label(0, 50, "0", "muted", "start"), label(all / 2, 50, thrown ? `the number is ${thrown.number.toFixed(3)}` : "all probabilities in a row"),
      label(all, 50, "1", "muted", "end"));
  };
}

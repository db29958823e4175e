// Vectors as squares: each of 64 numbers a dot, eight in a row; and the other pieces of the map's pictures.

import { make } from "../live/elements.js";

const SVG = "http://www.w3.org/2000/svg";
const FULL = 2; // root mean squares of a vector, from which a dot has its whole colour
const CSS_COLOURS = ["--d-paper", "--d-token", "--d-query"]; // of 0, above it, below it

export const svg = (name, attributes = {}, ...children) => {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

// A line in the manner of the drawings; kind is line or head.
export const line = (path, role = "muted", kind = "line") => svg("path", { class: `d-${role} d-${kind}`, d: path });

// Rows of squares, which stay where they are while their numbers change.
export class Tiles {
  constructor(place, kind = "") {
    this.element = make("div", `tt-map__tiles ${kind}`);
    this.made = [];
    place.append(this.element);
  }

  // squares: {x, vector, dim}; of a vector that is not there only the place is kept
  show(squares, size, colours) {
    while (this.made.length < squares.length) this.made.push(this.#add());
    this.element.style.height = `${size}px`;
    for (const [i, tile] of this.made.entries()) {
      const { x, vector, dim } = squares[i] ?? {};
      tile.hidden = !vector;
      if (!vector) continue;
      tile.style.translate = `${(x - size / 2).toFixed(1)}px`;
      tile.style.inlineSize = tile.style.blockSize = `${size}px`;
      tile.classList.toggle("tt-map__dim", Boolean(dim));
      paint(tile, vector, colours);
    }
  }

  #add() {
    const tile = make("canvas", "tt-map__tile", "", { width: 8, height: 8 });
    this.element.append(tile);
    return tile;
  }
}

// The colours of a scheme as [red, green, blue].
export function coloursOf(place) {
  const style = getComputedStyle(place);
  return CSS_COLOURS.map((name) => {
    const hex = /^#(..)(..)(..)$/.exec(style.getPropertyValue(name).trim());
    return hex ? hex.slice(1).map((two) => parseInt(two, 16)) : [128, 128, 128];
  });
}

function paint(tile, vector, [zero, above, below]) {
  const pen = tile.getContext("2d");
  const picture = pen.createImageData(8, vector.length / 8);
  const full = FULL * Math.hypot(...vector) / Math.sqrt(vector.length) || 1;
  for (const [i, value] of vector.entries()) {
    const much = Math.min(Math.abs(value) / full, 1), to = value < 0 ? below : above;
    for (let c = 0; c < 3; c += 1) picture.data[4 * i + c] = zero[c] + much * (to[c] - zero[c]);
    picture.data[4 * i + 3] = 255;
  }
  pen.putImageData(picture, 0, 0);
}

// A square of weights from 0 to 1, one row of `side` after the other.
export function paintWeights(canvas, weights, side, [zero, , one]) {
  Object.assign(canvas, { width: side, height: side });
  const pen = canvas.getContext("2d"), picture = pen.createImageData(side, side);
  for (const [i, weight] of weights.entries()) {
    for (let c = 0; c < 3; c += 1) picture.data[4 * i + c] = zero[c] + weight * (one[c] - zero[c]);
    picture.data[4 * i + 3] = 255;
  }
  pen.putImageData(picture, 0, 0);
}

// A curve over the tokens between two places at the same height, higher the farther they are apart.
export const arc = (x, to, base, top, width) => {
  const rise = Math.min(base - top, 14 + 0.42 * Math.abs(x - to)) * 4 / 3;
  return svg("path", {
    class: "tt-map__arc", d: `M${to} ${base}C${to} ${base - rise} ${x} ${base - rise} ${x} ${base}`, "stroke-width": width.toFixed(2),
  });
};

export const label = (x, y, words, kind = "muted", anchor = "middle") => (
  svg("text", { class: `d-${kind}`, x, y, "text-anchor": anchor, "font-size": 11.5 }, words)
);

// A clock of which the hand has turned by an angle, clockwise from the top.
export const clock = (x, y, r, angle) => svg("g", { class: "tt-map__clock" },
  svg("circle", { cx: x, cy: y, r }),
  svg("path", { d: `M${x} ${y}L${(x + 0.8 * r * Math.sin(angle)).toFixed(2)} ${(y - 0.8 * r * Math.cos(angle)).toFixed(2)}` }));

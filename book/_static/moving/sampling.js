// Temperature, top-k and top-p on six tokens, and the draw, as the playground makes them.

import { chosen, draw } from "../playground/sampling.js";

const BARS = { left: 60, width: 224, top: 8, step: 24, height: 17 };
const LINE = { left: 6, width: 328 };
const NAMES = ["", "One", "Two", "Three", "Four", "Five"];

// Not rounded: what is drawn, from 0 to below 1, must not read 1.00.
const twoDigits = (number) => (Math.floor(100 * number + 1e-9) / 100).toFixed(2);

const sum = (list) => list.reduce((total, value) => total + value, 0);

export default function (figure, { text, note, box, line, arrow, fixed, panel, slider, press, words }) {
  const { tokens, logits } = figure.data;
  const asItIs = [...chosen(logits)];
  const bars = panel(340, 156);
  const drawn = panel(340, 118);
  const say = words();
  let { number } = figure.data;
  let now;

  function show() {
    const options = { temperature: temperature.valueAsNumber };
    const before = [...chosen(logits, options)];
    const probs = [...chosen(logits, { ...options, topK: topK.valueAsNumber, topP: topP.valueAsNumber })];
    const kept = probs.filter((p) => p > 0).length;
    const held = sum(before.filter((_, i) => probs[i] > 0));
    now = { probs, held, number, token: draw(probs, () => number) };
    bars.replaceChildren(...probs.flatMap(bar));
    drawn.replaceChildren(...stretch(now));
    const cut = kept < tokens.length
      ? `${NAMES[kept]} of the six may be drawn: before the cut ${kept > 1 ? "they" : "it"} held ${Math.round(100 * held)} %.`
      : "Each of the six may be drawn.";
    say(`${cut} The number ${twoDigits(number)} draws ${tokens[now.token]}.`);
  }

  // A bar, and the outline of what it has lost.
  function bar(p, i) {
    const y = BARS.top + BARS.step * i;
    const [length, lost] = [BARS.width * p, BARS.width * (asItIs[i] - p)];
    const end = BARS.left + length;
    const outline = line(`M${end} ${y}h${lost}v${BARS.height}h${-lost}${p ? "" : "z"}`, "muted", "dashed");
    return [
      text(BARS.left - 8, y + 9, tokens[i], p ? "token" : "muted", { anchor: "end" }),
      ...(p ? [box(BARS.left, y, length, BARS.height, "query", { kind: "full", radius: 2 })] : []),
      ...(lost > 0.2 ? [outline] : []),
      text(334, y + 9, p ? fixed(p) : "–", p ? "ink" : "muted", { size: 13, anchor: "end", face: "mono" }),
    ];
  }

  // The probabilities laid end to end, and the number among them.
  function stretch({ probs, token }) {
    const at = LINE.left + LINE.width * number;
    let from = LINE.left;
    const pieces = probs.flatMap((p, i) => {
      const [x, width] = [from, LINE.width * p];
      from += width;
      if (!p) return [];
      const struck = i === token;
      const piece = box(x, 52, width, 30, struck ? "query" : "muted", { kind: struck ? "full" : "box", radius: 3 });
      const fits = width > 8 * tokens[i].length + 4;
      const name = text(x + width / 2, 67, tokens[i], struck ? "paper" : "ink", { face: "bold" });
      return fits ? [piece, name] : [piece];
    });
    return [
      ...pieces,
      text(Math.min(Math.max(at, 16), 324), 20, twoDigits(number), "query", { face: "mono" }),
      arrow([at, 30], [at, 50], "query"),
      note(LINE.left, 98, "0", "muted", "start"),
      note(170, 98, "laid end to end"),
      note(LINE.left + LINE.width, 98, "1", "muted", "end"),
    ];
  }

  const temperature = slider({
    label: "Temperature", min: 0, max: 2, step: 0.1, value: 1, say: (t) => (t ? t.toFixed(1) : "0, greedy"),
  }, show);
  const topK = slider({
    label: "Top-k", min: 1, max: tokens.length, value: tokens.length, say: (k) => (k < tokens.length ? `k = ${k}` : "all"),
  }, show);
  const topP = slider({
    label: "Top-p", min: 0.05, max: 1, step: 0.05, value: 0.9, say: (p) => (p < 1 ? `p = ${p.toFixed(2)}` : "all"),
  }, show);
  press("Draw another number", () => {
    number = Math.random();
    show();
  });
  show();
  return { numbers: () => now };
}

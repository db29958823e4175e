// Temperature, top-k and top-p on one forecast of the story GPT beside the truth, and the draw, as the playground makes them.

import { chosen, draw } from "../playground/sampling.js";

const BARS = { left: 60, width: 224, top: 8, step: 26, height: 17 };
const MOST = 11; // of top-k: from there on all are kept
const LINE = { left: 6, width: 328 };

// Not rounded: what is drawn, from 0 to below 1, must not read 1.00.
const twoDigits = (number) => (Math.floor(100 * number + 1e-9) / 100).toFixed(2);

const percent = (share) => (share > 0 && share < 0.01 ? (100 * share).toFixed(1) : Math.round(100 * share));

const sum = (list) => list.reduce((total, value) => total + value, 0);

export default function (figure, { text, note, box, line, arrow, fixed, panel, slider, press, words }) {
  const { tokens, logits, truth } = figure.data;
  const others = truth.length; // where the tokens begin that no story has here
  const names = [...tokens.slice(0, others), "others"];
  const bars = panel(340, 158);
  const drawn = panel(340, 118);
  const say = words();
  let { number } = figure.data;
  let now;

  function show() {
    const options = { temperature: temperature.valueAsNumber };
    const before = [...chosen(logits, options)];
    const probs = [...chosen(logits, { ...options, topK: topK.valueAsNumber < MOST ? topK.valueAsNumber : null, topP: topP.valueAsNumber })];
    const kept = probs.filter((p) => p > 0).length;
    const held = sum(before.filter((_, i) => probs[i] > 0));
    now = { probs, held, number, token: draw(probs, () => number) };
    const named = [...probs.slice(0, others), sum(probs.slice(others))];
    bars.replaceChildren(...named.flatMap(bar), note(334, 150, "a mark: the truth", "muted", "end"));
    drawn.replaceChildren(...stretch(named, now));
    const cut = kept < tokens.length
      ? `${kept} of the ${tokens.length} tokens may be drawn: before the cut ${kept > 1 ? "they" : "it"} held ${Math.round(100 * held)} %.`
      : `Each of the ${tokens.length} tokens may be drawn.`;
    say(`${cut} ${percent(named[others])} % goes to tokens that no story has here. The number ${twoDigits(number)} draws ${tokens[now.token]}.`);
  }

  // A bar, and a mark where the truth is.
  function bar(p, i) {
    const y = BARS.top + BARS.step * i;
    const role = i < others ? "query" : "loss";
    const at = BARS.left + BARS.width * (truth[i] ?? 0);
    return [
      text(BARS.left - 8, y + 9, names[i], i < others ? "token" : "loss", { anchor: "end" }),
      ...(p > 0.001 ? [box(BARS.left, y, BARS.width * p, BARS.height, role, { kind: "full", radius: 2 })] : []),
      line(`M${at} ${y - 2}v${BARS.height + 4}`, "ink", "thick"),
      text(334, y + 9, p ? fixed(p) : "–", p ? "ink" : "muted", { size: 13, anchor: "end", face: "mono" }),
    ];
  }

  // The probabilities laid end to end, and the number among them.
  function stretch(named, { token }) {
    const at = LINE.left + LINE.width * number;
    let from = LINE.left;
    const pieces = named.flatMap((p, i) => {
      const [x, width] = [from, LINE.width * p];
      from += width;
      if (!p) return [];
      const struck = i === Math.min(token, others);
      const piece = box(x, 52, width, 30, struck ? "query" : "muted", { kind: struck ? "full" : "box", radius: 3 });
      const fits = width > 8 * names[i].length + 4;
      const name = text(x + width / 2, 67, names[i], struck ? "paper" : "ink", { face: "bold" });
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
    label: "Top-k", min: 1, max: MOST, value: MOST, say: (k) => (k < MOST ? `k = ${k}` : "all"),
  }, show);
  const topP = slider({
    label: "Top-p", min: 0.05, max: 1, step: 0.05, value: 1, say: (p) => (p < 1 ? `p = ${p.toFixed(2)}` : "all"),
  }, show);
  press("Draw another number", () => {
    number = Math.random();
    show();
  });
  show();
  return { numbers: () => now };
}

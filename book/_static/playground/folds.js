// What the playground keeps folded: each part is drawn while its fold is open, and only then.

import { attention } from "./attention.js";
import { beliefs } from "./beliefs.js";
import { late } from "./late.js";
import { learning } from "./learning.js";
import { missing } from "./missing.js";
import { likeliestFirst } from "./sampling.js";
import { Strip, chip, fillTable, percent } from "./tokens.js";

const CANDIDATES = 3; // of each layer
const DARKEST = 3; // nats above the least possible, at which a token is as dark as it gets

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
const nats = (value, digits = 2) => (
  value === null ? "–" : value.toFixed(digits).replace(/^-(0\.0+)$/, "$1").replace("-", "−")
);

const layerName = (layer, last) => (
  layer === 0 ? "at once, from the last token alone" : layer === last ? "at the end" : `after block ${layer}`
);

export function folds(play) {
  const opened = (name) => {
    const element = () => play.parts[name].closest("details");
    return () => element().open;
  };
  const all = {
    training: learning(play), attention: attention(play), lens: lens(play),
    beliefs: beliefs(play), surprise: surprise(play), broken: missing(play),
    ask: late(play, "answering", "The model that answers", ask), wish: late(play, "wishing", "This part", wish),
  };
  const inside = {
    training: "step", attention: "looking", lens: "lens", beliefs: "animal", surprise: "surprised", broken: "parts",
    ask: "answering", wish: "wishing",
  };
  for (const [name, fold] of Object.entries(all)) fold.isOpen = opened(inside[name]);
  return all;
}

// Both come with their files.
const ask = async (play) => {
  const [made] = await Promise.all([import("./ask.js"), play.thinking.fetch("answering")]);
  return made.ask(play);
};

const wish = async (play) => {
  const [made, wishes] = await Promise.all([import("./wish.js"), play.thinking.wishes()]);
  return made.wish(play, wishes);
};

// What the model would say if it ended after the embeddings, or after its first block.
function lens({ parts, thinking }) {
  const cell = (id, p, i) => {
    const both = document.createElement("span");
    both.className = "tt-play__guess";
    both.append(chip("span", thinking.texts[id], i), ` ${percent(p)}`);
    return both;
  };
  return {
    show(_, { reading, ids, at, truth, rest }) {
      const position = at ?? ids.length;
      const last = reading.model.numLayers;
      const rows = Array.from({ length: last + 1 }, (__, layer) => {
        const { belief: probs } = thinking.next(reading.lens(layer, position), null, at === null ? rest : "", {});
        return [layerName(layer, last), ...likeliestFirst(probs).slice(0, CANDIDATES).map((id, i) => cell(id, probs[id], i))];
      });
      if (truth) {
        const best = [...truth].toSorted(([, a], [, b]) => b - a).slice(0, CANDIDATES);
        rows.push(["the truth", ...best.map(([id, p], i) => cell(id, p, i))]);
      }
      fillTable(parts.lens, rows);
    },
  };
}

const more = (each) => (each < 0
  ? `That is ${nats(-each, 3)} less for each token, by luck: only on average is nothing below the truth.`
  : `That is ${nats(each, 3)} more for each token.`);

// Every token with what it surprised the model by, and what it would have surprised the truth by.
function surprise({ parts, thinking }) {
  const strip = new Strip(parts.surprised);
  return {
    show(_, { ids, reading }) {
      const texts = ids.map((id) => thinking.texts[id]);
      const all = thinking.surprises(ids, reading);
      const above = all.map(({ model, least }) => model - (least ?? 0));
      strip.show(texts);
      for (const [i, one] of strip.chips.entries()) {
        one.style.setProperty("--much", Math.min(Math.max(above[i], 0) / DARKEST, 1).toFixed(3));
      }
      const least = all.every((one) => one.least !== null) ? sum(all.map((one) => one.least)) : null;
      const whole = sum(all.map(({ model }) => model));
      parts.surprise.textContent = !ids.length ? "Nothing has been written yet."
        : least === null ? `Together ${whole.toFixed(2)}. Where this can no longer be a story, there is no truth to compare with.`
          : `Together ${nats(whole)}; the truth would have been surprised by ${nats(least)}. ${more((whole - least) / ids.length)}`;
      fillTable(parts.surprises, all.map(({ model, least: possible }, i) => (
        [chip("span", texts[i], i), nats(model), nats(possible), possible === null ? "–" : nats(model - possible)]
      )));
    },
  };
}

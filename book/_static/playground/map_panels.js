// What opens in a part of the map: what it does, something to look into closely, and the way to its chapter. Each
// function fills its place once, and gives another one that shows a scene in it.

import { make } from "../live/elements.js";
import { angles, changes, nearest } from "./map_numbers.js";
import { PARTS } from "./map_parts.js";
import { clock, label, paintWeights, svg } from "./map_tiles.js";
import { HEADS } from "./state.js";
import { chip, fillTable, percent, quoted } from "./tokens.js";

const NEAREST = 6; // tokens
const CHANGED = 3; // that rise, and as many that fall
const LOOKS = 5;
const SCORED = 5;

const MADE = { tokens, "token-embedding": embedding, positions, attention, mlp, head: scores, sampling, training };

// Fills what opens in a row; gives what shows a scene there.
export function panel({ name, block, open }, play, act) {
  const { says, chapters } = PARTS[name];
  open.append(make("p", "tt-map__says", says));
  const inside = make("div", "tt-map__inside");
  open.append(inside);
  const show = MADE[name]?.(inside, { block, play, act }) ?? (() => {});
  const links = make("p", "tt-map__chapters", chapters.length > 1 ? "Chapters: " : "Chapter: ");
  for (const [i, [page, title]] of chapters.entries()) {
    links.append(i ? ", " : "", make("a", "", title, { href: `${play.root}${page}.html` }));
  }
  open.append(links);
  return show;
}

const token = (id, thinking, i = 0) => chip("span", thinking.texts[id], i);

function table(place, caption, heads) {
  const made = make("table", "tt-play__table");
  const about = make("caption", "", caption);
  const names = make("tr");
  names.append(...heads.map((text) => make("th", "", text, { scope: "col" })));
  const top = make("thead"), body = make("tbody");
  top.append(names);
  made.append(about, top, body);
  place.append(made);
  return { about, body };
}

function tokens(place) {
  const said = make("p", "tt-map__ids");
  place.append("What the model reads: ", said);
  return ({ view: { reading } }) => { said.textContent = `[${reading.ids.join(", ")}]`; };
}

function embedding(place, { play }) {
  const { about, body } = table(place, "", ["nearest", "cosine"]);
  place.append(make("p", "tt-play__note", "The cosine is 1 for the same direction and 0 at right angles."));
  return ({ view: { reading }, focus, textOf }) => {
    about.textContent = `Nearest in the table to ${focus ? quoted(textOf(focus)) : "the start"}`;
    fillTable(body, nearest(reading.model, reading.ids[focus], NEAREST).map(({ id, cosine }, i) => (
      [token(id, play.thinking, i), cosine.toFixed(2).replace("-", "−")]
    )));
  };
}

function positions(place) {
  const picture = svg("svg", { viewBox: "0 0 304 62", class: "tt-map__clocks", "aria-hidden": "true" });
  const said = make("p", "tt-play__note");
  place.append(picture, said);
  return ({ view: { reading }, focus }) => {
    const all = angles(reading.model, reading.broken.positions ? 0 : focus);
    picture.replaceChildren(...all.flatMap((angle, i) => [clock(19 + 38 * i, 18, 15, angle), label(19 + 38 * i, 50, `pair ${i + 1}`)]));
    said.textContent = `Position ${focus}: by how much each of the eight pairs of a head's query and key is turned. The first `
      + "hand goes on by one radian a token, the last one hardly moves: near and far can both be told apart.";
  };
}

function attention(place, { block }) {
  const { about, body } = table(place, "", ["looks at", "how much"]);
  const patterns = make("div", "tt-map__patterns");
  const each = Array.from({ length: HEADS }, (_, head) => {
    const pattern = make("figure"), square = make("canvas", "", "", { "aria-hidden": "true" });
    pattern.append(square, make("figcaption", "", `head ${head + 1}`));
    patterns.append(pattern);
    return { pattern, square };
  });
  place.append(patterns, make("p", "tt-play__note", "Squares: every row is a token that looks, every column one that it may look at."));
  return ({ view: { reading }, focus, looks, textOf, colours }) => {
    const head = looks[block]?.head ?? 0;
    for (const [i, { pattern, square }] of each.entries()) {
      pattern.toggleAttribute("data-chosen", i === head);
      paintWeights(square, reading.attention(block, i), reading.length, colours);
    }
    const weights = [...reading.looks(block, head, focus)];
    about.textContent = `Head ${head + 1} of block ${block + 1}, from ${focus ? quoted(textOf(focus)) : "the start"}`;
    const order = [...weights.keys()].toSorted((a, b) => weights[b] - weights[a]).slice(0, LOOKS);
    fillTable(body, order.map((i) => [chip("span", textOf(i), i), percent(weights[i])]));
  };
}

function mlp(place, { block, play }) {
  const { about, body } = table(place, "", ["token", "score", "before", "after"]);
  const note = make("p", "tt-play__note", "Before and after are probabilities; score is the change of the score, if the vector went from there straight to the last norm and the scores.");
  place.append(note);
  return (scene) => {
    const stage = scene.stage("mlp", block);
    const compared = stage.onto ? changes(scene.view.reading, stage, CHANGED) : { raised: [], lowered: [] };
    about.textContent = stage.onto ? `What the MLP of block ${block + 1} changes`
      : "The vector is replaced: there is no before to compare with";
    fillTable(body, [...compared.raised, ...compared.lowered].map(({ id, score, before, after }, i) => [
      token(id, play.thinking, i), `${score < 0 ? "−" : "+"}${Math.abs(score).toFixed(1)}`, percent(before), percent(after),
    ]));
  };
}

function scores(place, { play }) {
  const { body } = table(place, "The highest scores", ["token", "score", "probability"]);
  return ({ view: { reading, belief }, focus }) => {
    const logits = reading.logits(focus);
    const order = [...logits.keys()].toSorted((a, b) => logits[b] - logits[a]).slice(0, SCORED);
    fillTable(body, order.map((id, i) => [token(id, play.thinking, i), logits[id].toFixed(1).replace("-", "−"), percent(belief[id])]));
  };
}

// The number that is thrown, and the token that it hits.
function sampling(place, { act }) {
  const said = make("p", "", "", { role: "status" });
  const [again, write] = [make("button", "", "Throw a number", { type: "button" }), make("button", "", "Write it", { type: "button" })];
  const both = make("p", "tt-play__links");
  both.append(again, write);
  place.append(said, both);
  again.addEventListener("click", () => act.throwNumber());
  write.addEventListener("click", () => act.writeThrown());
  return ({ thrown }) => {
    const words = act.words() || "No number has been thrown yet.";
    if (said.textContent !== words) said.textContent = words; // it is read aloud, once
    write.setAttribute("aria-disabled", !thrown || act.isFull());
  };
}

const mean = (all) => all.reduce((sum, value) => sum + value, 0) / all.length;

// How surprising this text has been, for the model and for the truth.
function training(place, { play }) {
  const said = make("p"), deeper = make("details", "tt-play__deeper");
  deeper.append(make("summary", "", "More"), make("p", "", "The unit is the nat: a surprise is the natural logarithm of one over the probability."));
  place.append(said, deeper);
  return ({ view, state }) => {
    const all = play.thinking.surprises(view.ids, view.reading);
    const least = all.every((one) => one.least !== null) ? ` The truth itself would have been surprised by ${mean(all.map((one) => one.least)).toFixed(2)}.` : "";
    said.textContent = all.length ? `Over this text, a token surprises the model ${state.step ? `after ${state.step.toLocaleString("en")} steps` : "before its first step"} by ${
      mean(all.map((one) => one.model)).toFixed(2)} on average.${least}`
      : "Nothing has been written yet that could surprise it.";
  };
}

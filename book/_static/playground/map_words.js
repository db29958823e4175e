// What the map shows, in words: for those who do not see it, and one sentence for each step of a token on its way.

import { angles, changes, lengthOf } from "./map_numbers.js";
import { percent, quoted } from "./tokens.js";

export const shortLength = (vector) => String(Number(lengthOf(vector).toPrecision(2)));

const chance = (p) => percent(p).replace(" ", "\u00a0");

// The name of a token of the text in a sentence.
const from = ({ textOf }, index) => (index ? quoted(textOf(index)) : "the start");

export const guessed = ({ id, p }, { textOfId }) => `${quoted(textOfId(id))} (${chance(p)})`;

const joined = ({ onto, added }) => (onto
  ? `adds a vector of length ${shortLength(added)} to one of length ${shortLength(onto)}`
  : `replaces the vector by one of length ${shortLength(added)}`);

// One or two sentences for each part, by its key. Only those asked for are made.
export const WORDS = {
  tokens: (scene) => {
    const { view: { ids }, focus } = scene;
    const last = focus ? `${from(scene, focus)} is ${ids[focus - 1]}` : "all is still to come";
    return `The text is cut into ${ids.length} ${ids.length === 1 ? "token" : "tokens"}, each with a number: ${last}.`;
  },
  "token-embedding": (scene) => (
    `${focusOf(scene)} becomes its vector of 64 numbers. From that alone the model would guess ${guessed(scene.guesses[0], scene)}.`
  ),
  positions: ({ focus, view: { reading } }) => {
    if (reading.broken.positions) return "The positions are taken away: nothing is turned.";
    const all = angles(reading.model, focus);
    return `So that attention can tell the order, it rotates its pairs of numbers: at position ${focus} the first by ${all[0]} radians, `
      + `the second by ${Number(all[1].toPrecision(2))}, and so on, by less and less.`;
  },
  attention: (scene, block) => {
    const look = scene.looks[block];
    if (!look) return `Block ${block + 1} is passed over.`;
    return `Head ${look.head + 1} looks from ${focusOf(scene)} at ${from(scene, look.to)} with ${chance(look.weight)} of its attention. `
      + `All heads together: attention ${joined(scene.stage("attention", block))}.`;
  },
  mlp: (scene, block) => {
    const stage = scene.stage("mlp", block);
    if (!scene.looks[block]) return `Block ${block + 1} is passed over.`;
    const guess = `The guess is now ${guessed(scene.guesses[2 * block + 2], scene)}.`;
    if (!stage.onto) return `The MLP ${joined(stage)}. ${guess}`;
    const [best] = changes(scene.view.reading, stage, 1).raised;
    if (!best) return `The MLP ${joined(stage)}, which changes no probability. ${guess}`;
    return `The MLP ${joined(stage)}, and so lifts ${quoted(scene.textOfId(best.id))} from ${chance(best.before)} to `
      + `${chance(best.after)}. ${guess}`;
  },
  head: (scene) => {
    const { view, likeliest } = scene;
    const truth = view.truth ? `; the truth gives it ${chance(view.truth.get(likeliest) ?? 0)}` : "";
    return `All 512 tokens get a score, and the scores become probabilities. The largest is ${guessed({ id: likeliest, p: view.belief[likeliest] }, scene)}${truth}.`;
  },
  sampling: (scene) => {
    const { thrown, view } = scene;
    if (!thrown) return "";
    return `The random number ${thrown.number.toFixed(3)} lands on ${quoted(scene.textOfId(thrown.id))}, which had a probability of `
      + `${chance(view.chosen[thrown.id])}.`;
  },
};

const focusOf = (scene) => from(scene, scene.focus);

export const wordsOf = (key, scene) => {
  const [name, block] = key.split(".");
  return WORDS[name]?.(scene, Number(block)) ?? "";
};

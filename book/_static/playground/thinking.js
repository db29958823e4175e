// What the playground shows of a text: the model's belief beside the truth, computed and nothing else.

import { Model } from "./model.js";
import { Oracle } from "./oracle.js";
import { readSafetensors } from "./safetensors.js";
import { chosen } from "./sampling.js";
import { MINE, WINDOW, broken, isWhole } from "./state.js";
import { Tokenizer } from "./tokenizer.js";

const AT_MOST = 1600; // characters from which tokens are made: more than the window can hold
const KEPT = 2000; // truths that are remembered

const here = (name) => new URL(name, import.meta.url);
const weightsOf = async (step, started) => {
  const name = typeof step === "number" ? `step-${step}` : step;
  if (step !== MINE) return fetched(`weights/${name}.safetensors`, "arrayBuffer", started);
  const { keptWeights } = await import("./kept_training.js");
  return keptWeights();
};

// The body of a file. started: requests that are on their way, by name
async function fetched(name, kind, started) {
  const response = await (started?.get(name) ?? fetch(here(name))).catch(() => {
    throw new Error(`${name} did not come (no connection)`);
  });
  if (!response.ok) throw new Error(`${name} did not come (${response.status})`);
  return response[kind]().catch(() => { throw new Error(`${name} did not come whole`); });
}

// Lets the page do something else for a moment; or show first what has changed.
export const breath = () => new Promise((done) => { setTimeout(done, 0); });
export const painted = () => new Promise((done) => { requestAnimationFrame(() => { setTimeout(done, 0); }); });

// All that the first look needs comes at once; it is put together piece by piece.
export async function load(step, started) {
  const files = ["tokenizer.json", "grammar.json"].map((name) => fetched(name, "json", started));
  const [tokenizer, grammar, buffer] = await Promise.all([...files, weightsOf(step, started)]);
  const thinking = new Thinking(new Tokenizer(tokenizer), new Oracle(grammar), started);
  await breath();
  thinking.add(step, buffer);
  await breath();
  return thinking;
}

export class Thinking {
  #models = new Map(); // of each step: its weights, and one model that is whole and one that has lost something
  #truths = new Map();

  constructor(tokenizer, oracle, started) {
    Object.assign(this, { tokenizer, oracle, started });
    this.newline = tokenizer.encode("\n")[0];
    this.texts = Array.from({ length: tokenizer.vocabSize }, (_, id) => tokenizer.text(id));
    this.read = 0; // tokens that the models were given: a test counts them
  }

  add(step, buffer) {
    const { tensors, metadata } = readSafetensors(buffer);
    this.#models.set(step, { tensors, metadata });
  }

  has(step) {
    return this.#models.has(step);
  }

  // After how many steps of training the model of a step is as it is: they stand in its file.
  trainedFor(step) {
    return Number(this.#models.get(step)?.metadata.step);
  }

  // What a file of weights says of itself.
  about(step) {
    return this.#models.get(step).metadata;
  }

  // Fetches the weights of a step, or of a model that is tuned further, by its file's name; unless they are here.
  async fetch(step) {
    if (!this.has(step)) this.add(step, await weightsOf(step));
  }

  // The linear probes of the finished model, by the name of what they read: {weight (d, values), bias (values)}.
  async probes() {
    const { tensors } = readSafetensors(await fetched("probes.safetensors", "arrayBuffer", this.started));
    const of = (name) => ({ weight: tensors[`${name}.weight`].data, bias: tensors[`${name}.bias`].data });
    return { animal: of("animal"), child: of("child") };
  }

  // The points for happy endings, what the models that are tuned to them reach, and the best there is.
  wishes() {
    return fetched("wishes.json", "json");
  }

  // The tokens of a text: `ids`, the `rest` of an unfinished word, which is not read yet, and whether
  // the text is `longer` than the window.
  tokens({ text, drawn }) {
    const whole = text.toWellFormed();
    const start = whole.slice(0, AT_MOST);
    const { ids: typed, rest } = drawn.length || start !== whole
      ? { ids: this.tokenizer.encode(start), rest: "" } : this.oracle.heal(start, this.tokenizer);
    const all = [...typed, ...drawn];
    const longer = all.length > WINDOW - 1 || start !== whole;
    const ids = all.slice(0, WINDOW - 1);
    return { ids, rest: longer ? "" : rest, longer, typed: Math.min(typed.length, ids.length) };
  }

  // The same text with one token more: the words stay words as far as their tokens are the same again.
  written({ text, drawn }, upTo, id) {
    const { ids, typed } = this.tokens({ text, drawn });
    const kept = ids.slice(0, upTo);
    let words = Math.min(typed, upTo);
    const same = (count) => {
      const begun = kept.slice(0, count);
      return String(this.tokenizer.encode(this.tokenizer.decode(begun))) === String(begun);
    };
    while (!same(words)) words -= 1;
    const after = id === null ? [] : [id];
    return { text: this.tokenizer.decode(kept.slice(0, words)), drawn: [...kept.slice(words), ...after] };
  }

  // How many tokens there are without the last, and without others that hold parts of the same character.
  withoutLast(ids) {
    const text = this.tokenizer.decode(ids);
    const most = new TextEncoder().encode(text.slice(0, [...new Intl.Segmenter().segment(text)].at(-1)?.index)).length;
    let count = ids.length - 1;
    while (count > 0 && this.tokenizer.bytes(ids.slice(0, count)).length > most) count -= 1;
    return count;
  }

  // What a model makes of the ids.
  reading(ids, { step, ...state }, whole = isWhole(state)) {
    const models = this.#models.get(step), which = whole ? "whole" : "broken";
    const model = models[which] ??= new Model(models.tensors, models.metadata);
    this.read += ids.length + 1;
    return model.read([this.newline, ...ids], whole ? {} : broken(state));
  }

  // What the grammar knows of the token after these: {probs: Map or null, stopped}.
  truth(ids) {
    const key = ids.join();
    if (!this.#truths.has(key)) {
      if (this.#truths.size >= KEPT) this.#truths.clear();
      this.#truths.set(key, this.oracle.nextTokens(ids, this.tokenizer));
    }
    return this.#truths.get(key);
  }

  // Belief, what may be drawn, and truth at one place, all of them among the tokens that go on with `rest`.
  next(logits, truth, rest, { temperature, topK, topP }) {
    const may = rest && this.texts.map((text) => text.startsWith(rest));
    const open = rest && may.includes(true);
    const scores = open ? logits.map((score, id) => (may[id] ? score : -Infinity)) : logits;
    const belief = chosen(scores, {});
    return {
      belief,
      chosen: chosen(scores, { temperature, topK, topP }),
      truth: truth && among(truth, open ? (id) => may[id] : () => true),
    };
  }

  // Everything about the token after the ids, or about the one at `at`.
  look(state) {
    const { ids, rest, longer, typed } = this.tokens(state);
    const at = state.at !== null && state.at < ids.length ? state.at : null;
    const before = at === null ? ids : ids.slice(0, at);
    const reading = this.reading(ids, state);
    const { probs, stopped } = this.truth(before);
    const next = this.next(reading.logits(before.length), probs, at === null ? rest : "", state);
    const shown = distance(next.chosen, next.truth).agree; // with the sliders
    const pieces = probs ? this.oracle.pieces(before, this.tokenizer) : new Map();
    return { ids, rest, longer, typed, at, reading, stopped, shown, pieces, ...next, ...distance(next.belief, next.truth) };
  }

  // How far belief is from the truth on average: at every place of the text, the next token's included, up to where
  // it stops being a story, if it does.
  meanDistance(ids, reading) {
    const all = [];
    for (let i = 0; i <= ids.length; i += 1) {
      const { probs } = this.truth(ids.slice(0, i));
      if (!probs) break;
      all.push(distance(chosen(reading.logits(i), {}), probs));
    }
    const mean = (name) => all.reduce((sum, one) => sum + one[name], 0) / all.length;
    return { agree: mean("agree"), nats: mean("nats") };
  }

  // −ln p of each token, for the model and for the truth, which is null from where the text cannot be a story.
  surprises(ids, reading) {
    let possible = true;
    return ids.map((id, i) => {
      const p = chosen(reading.logits(i), {})[id];
      const truth = possible ? this.truth(ids.slice(0, i)).probs?.get(id) : undefined;
      possible &&= truth > 0;
      return { model: -Math.log(p), least: possible ? -Math.log(truth) : null };
    });
  }
}

// What a probe reads off the stream: one number for each value, as `tinytorch.inside.probes.LinearProbe`.
export function readOff(stream, { weight, bias }) {
  return [...bias].map((start, value) => stream.reduce((sum, x, i) => sum + x * weight[i * bias.length + value], start));
}

// The probabilities of some tokens, which then sum to one; null if there is nothing left.
function among(probs, may) {
  const kept = [...probs].filter(([id]) => may(id));
  const sum = kept.reduce((total, [, p]) => total + p, 0);
  return sum > 0 ? new Map(kept.map(([id, p]) => [id, p / sum])) : null;
}

// How much of the truth the belief covers, and by how many nats its surprise is larger on average.
function distance(belief, truth) {
  if (!truth) return { agree: null, nats: null };
  let agree = 0, nats = 0;
  for (const [id, p] of truth) {
    agree += Math.min(p, belief[id]);
    if (p > 0) nats += p * Math.log(p / belief[id]);
  }
  return { agree, nats: Math.max(nats, 0) };
}

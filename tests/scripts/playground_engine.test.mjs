// The playground's own engine beside the package: tokens, scores, attention, lens and sampling.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Model } from "../../book/_static/playground/model.js";
import { readSafetensors } from "../../book/_static/playground/safetensors.js";
import { chosen, draw, seeded } from "../../book/_static/playground/sampling.js";
import { readOff } from "../../book/_static/playground/thinking.js";
import { Tokenizer, splitLikeGpt2 } from "../../book/_static/playground/tokenizer.js";
import { close, fileOf, floats, jsonOf, known } from "./known.mjs";

const weightsOf = (step) => fileOf(`playground/weights/step-${step}.safetensors`);
const loaded = (file) => {
  const { tensors, metadata } = readSafetensors(file);
  return new Model(tensors, metadata);
};
const steps = [0, 100, 500, 2000, 4000];
const models = Object.fromEntries(steps.map((step) => [step, loaded(weightsOf(step))]));
const tokenizer = new Tokenizer(jsonOf("playground/tokenizer.json"));
const upTo = (n) => [...Array(n).keys()];

// The lens of every layer, whose last are the scores, attention, and the stream inside the blocks, end to end.
function everything(reading) {
  const { numLayers, numHeads } = reading.model;
  const lens = upTo(numLayers + 1).flatMap((layer) => upTo(reading.length).map((at) => reading.lens(layer, at)));
  const heads = upTo(numLayers).flatMap((layer) => upTo(numHeads).map((head) => reading.attention(layer, head)));
  const middles = upTo(numLayers).flatMap((layer) => upTo(reading.length).map((at) => reading.middle(layer, at)));
  return { lens: joined(lens), attention: joined(heads), middles: joined(middles) };
}

function joined(arrays) {
  const all = new Float32Array(arrays.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const array of arrays) {
    all.set(array, at);
    at += array.length;
  }
  return all;
}

test("tokens are those of the package", () => {
  const { texts, drawn } = known("tokens");
  for (const [text, words, ids] of texts) {
    assert.deepEqual(splitLikeGpt2(text), words);
    assert.deepEqual(tokenizer.encode(text), ids);
    assert.equal(tokenizer.decode(ids), text);
  }
  for (const [ids, text] of drawn) assert.equal(tokenizer.decode(ids), text);
  assert.deepEqual(tokenizer.pieces(" fox 🦊"), [" fox", " ", "\\xf0", "\\x9f", "\\xa6", "\\x8a"]);
});

test("scores, lens and attention are those of the package, also of a model that lacks something", () => {
  const { readings } = known("engine");
  for (const { step, ids, broken, lens, attention, middles } of readings) {
    const found = everything(models[step].read(ids, broken)), expected = floats(lens);
    const largest = expected.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
    const what = `step ${step} ${JSON.stringify(broken)}`;
    close(found.lens, expected, { rounding: Math.max(1e-4, 3e-6 * largest), share: 1e-5, what }); // without a norm, some exceed 100
    close(found.attention, floats(attention), { rounding: 1e-5, what });
    close(found.middles, floats(middles), { rounding: Math.max(1e-4, 3e-6 * largest), share: 1e-5, what: `${what}, inside` });
  }
});

test("a probe reads what the package's probe reads", () => {
  const { tensors } = readSafetensors(fileOf("playground/probes.safetensors"));
  for (const { name, ids, read } of known("engine").probes) {
    const [weight, bias] = ["weight", "bias"].map((part) => tensors[`${name}.${part}`].data);
    close(readOff(models[4000].read(ids).stream(2, ids.length - 1), { weight, bias }), read, { rounding: 1e-4, what: name });
  }
});

test("chosen gives the probabilities of the package, draw its token", () => {
  const { found, probs, drawn } = known("choices");
  for (const [scores, [temperature, topK, topP], expected] of found) {
    const what = `${scores.slice(0, 8)} at ${[temperature, topK, topP]}`;
    close(chosen(scores.map((x) => (x === -1e300 ? -Infinity : x)), { temperature, topK, topP }), expected, { rounding: 1e-12, what });
  }
  for (const [number, token] of drawn) assert.equal(draw(probs, () => number), token);
});

test("the same seed gives the same numbers, from 0 to below 1", () => {
  const rows = [1, 1, 2].map((seed) => Array.from({ length: 9 }, seeded(seed)));
  assert.deepEqual(rows[0], rows[1]);
  assert.notDeepEqual(rows[1], rows[2]);
  assert.ok(rows.flat().every((x) => x >= 0 && x < 1));
});

// What was read before ------------------------------------------------------------------------------------------------

test("a changed text is read from scratch, and the previous reading is unchanged", () => {
  const file = weightsOf(4000), model = loaded(file), { readings } = known("engine");
  const random = seeded(1), below = (n) => Math.floor(random() * n);
  const ids = tokenizer.encode("\nOne sunny morning Tom walked to the pond. There he met a little duck, all alone and sad.").slice(0, 40);
  const edits = upTo(12).map((n) => [ids.slice(0, n + 1), {}]); // typed
  for (let i = 0; i < 24; i += 1) {
    const edited = [...ids];
    edited.splice(below(40), below(3), ...upTo(below(3)).map(() => below(512)));
    edits.push([edited.slice(0, 1 + below(39)), i % 2 ? {} : readings[below(readings.length)].broken]);
  }
  let last = null;
  for (const [text, broken] of edits) {
    const reading = model.read(text, broken), fresh = everything(loaded(file).read(text, broken));
    assert.deepEqual(everything(reading), fresh);
    if (last) assert.deepEqual(everything(last.reading), last.fresh);
    last = { reading, fresh };
  }
});

test("tokens that were read are not read again", () => {
  const ids = upTo(60).map((i) => 100 + i);
  const shared = (first, second, broken) => { // positions whose scores are the very same array
    const before = models[4000].read(first, broken), scores = first.map((_, i) => before.logits(i));
    const after = models[4000].read(second, broken);
    return scores.filter((array, i) => i < second.length && array === after.logits(i)).length;
  };
  assert.equal(shared(ids, [...ids, 1], {}), 60);
  assert.equal(shared(ids, ids.slice(0, 20), { norm: true }), 20);
  assert.equal(shared(ids, [...ids.slice(0, 30), 1, ...ids.slice(31)], {}), 30);
  assert.equal(shared(ids, [...ids, 1], { mask: true }), 0);
});

// What cannot be read -------------------------------------------------------------------------------------------------

const swap = (from, to) => (file) => {
  const text = new TextDecoder("latin1").decode(file);
  new Uint8Array(file).set(new TextEncoder().encode(to), text.indexOf(from));
  return file;
};
const BAD = [
  [(file) => file.slice(0, 5), "do not hold the header"],
  [(file) => file.slice(0, 500), "do not hold the header"],
  [(file) => file.slice(0, -1), "it ends in the middle of tensor token_embedding.weight"],
  [(file) => file.slice(0, 100_000), "it ends in the middle of tensor blocks.0.mlp.linear2"],
  [(file) => new Blob([file, "x"]).arrayBuffer(), "bytes instead of"],
  [() => fileOf("playground/tokenizer.json"), "do not hold the header"],
  [(file) => { new Uint8Array(file).set([32, 91], 8); return file; }, "is not a JSON object"],
  [swap("F16", "F64"), "is of type F64, not F16 or F32"],
  [swap("[0,", "[2,"), "is not where it should be"],
  [swap('"version":"1"', '"version":"2"'), "of version 2, not 1"],
  [swap("ln_f.gamma", "ln_g.gamma"), "it has no ln_f.gamma"],
];

test("a damaged weights or tokenizer file is refused with an explanation", async () => {
  for (const [change, words] of BAD) {
    const file = await change(weightsOf(0));
    assert.throws(() => loaded(file), ({ message }) => message.includes(words) && message.endsWith("load the page again"), words);
  }
  const json = jsonOf("playground/tokenizer.json");
  for (const change of [{ version: 2 }, { format: "other" }, { size: 3 }, { tokens: {} }]) {
    assert.throws(() => new Tokenizer({ ...json, ...change }), /not one that this page reads/);
  }
  assert.throws(() => new Tokenizer(null), /not one that this page reads/);
});

test("impossible arguments are refused with an explanation", () => {
  const refused = [
    [() => models[0].read([]), "there is nothing to read"],
    [() => models[0].read(Array(113).fill(1)), "113 tokens are more than the 112"],
    [() => models[0].read([1, 512]), "token id 512 is not one of the 512"],
    [() => models[0].read([1.5]), "token id 1.5 is not"],
    [() => models[0].read([1]).lens(3, 0), "no position 0 after 3 blocks"],
    [() => models[0].read([1]).logits(1), "no position 1 after 2 blocks"],
    [() => tokenizer.encode("\ud83e"), "half a character"],
    [() => tokenizer.decode([512]), "token id 512 is not in the vocabulary of 512"],
    [() => chosen([1, 2], { temperature: -1 }), "the temperature must be 0 or more"],
    [() => chosen([1, 2], { topK: 0 }), "top-k must be a whole number from 1 on"],
    [() => chosen([1, 2], { topP: 0 }), "top-p must be above 0 and at most 1"],
    [() => chosen([NaN, 2]), "the scores hold no finite largest one"],
  ];
  for (const [act, words] of refused) assert.throws(act, ({ message }) => message.includes(words), words);
});

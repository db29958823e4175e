// The playground's models that answer and want happy endings, beside the package.

import assert from "node:assert/strict";
import { test } from "node:test";
import { UNSURE, asked, believed } from "../../book/_static/playground/ask.js";
import { Oracle } from "../../book/_static/playground/oracle.js";
import { QUESTIONS } from "../../book/_static/playground/state.js";
import { Thinking } from "../../book/_static/playground/thinking.js";
import { Tokenizer } from "../../book/_static/playground/tokenizer.js";
import { counted, told } from "../../book/_static/playground/wish.js";
import { close, fileOf, jsonOf, known } from "./known.mjs";

const expected = known("questions");
const oracle = new Oracle(jsonOf("playground/grammar.json"));
const thinking = new Thinking(new Tokenizer(jsonOf("playground/tokenizer.json")), oracle);
thinking.add("answering", fileOf("playground/weights/answering.safetensors"));

test("questions and answers are the package's own, in its order", () => {
  assert.deepEqual(QUESTIONS, expected.questions);
  assert.equal(UNSURE, expected.unsure);
  for (const { about, answers } of expected.asked) assert.deepEqual([...oracle.told(about, "").keys()], answers);
});

test("beliefs in every answer equal the package's", () => {
  for (const { text, about, answers, believed: belief } of expected.asked) {
    close(believed(thinking, text, QUESTIONS[about], [...answers, UNSURE]), belief, { rounding: 2e-6, share: 1e-4, what: `${text}: ${about}` });
  }
});

test("posteriors equal the package's, and there is none of what is no story", () => {
  const kinds = { open: 0, stated: 0, none: 0 };
  for (const { text, about, posterior } of expected.asked) {
    const found = oracle.told(about, text);
    if (posterior) close([...found.values()], posterior, { what: `${text}: ${about}` });
    else assert.equal(found, null, text);
    kinds[posterior ? Math.max(...posterior) > 1 - 1e-9 ? "stated" : "open" : "none"] += 1;
  }
  assert.ok(Object.values(kinds).every((count) => count >= 15), JSON.stringify(kinds));
});

test("of a text its last story is asked about, up to where a word is over", () => {
  const story = (text) => asked(oracle, "animal", text).story;
  const before = "One sunny morning Tom walked to the pond.";
  assert.equal(story(`${before} There he met a`), `${before} There he met a`);
  for (const more of [" ", " The", " There he met a lit"]) assert.equal(story(before + more), (before + more).replace(/ (The|lit)?$/, ""), more);
  assert.equal(story("Onc"), "");
  assert.equal(story("The dragon said\nOne sunny"), "One sunny");
  assert.deepEqual(asked(oracle, "animal", "The dragon said"), { story: "The dragon said", known: null });
});

test("points are those of the package", () => {
  const { points } = jsonOf("playground/wishes.json");
  for (const [text, reward] of known("rewards").texts) {
    const pieces = counted(text, points);
    assert.equal(pieces.map(([piece]) => piece).join(""), text);
    assert.equal(pieces.reduce((sum, [, p]) => sum + p, 0), reward, text);
  }
  assert.equal(told(counted("They smiled, tired and sad.", points)), "0 points: smiled +2, tired −1, sad −1.");
  assert.equal(told(counted("He was sad.", points)), "−1 point: sad −1.");
  assert.equal(told(counted("He ran.", points)), "0 points.");
});

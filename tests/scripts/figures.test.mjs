// The figures that move beside the package: whatever their handles say, they show what is computed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { happening, openPage } from "./dom.mjs";
import { known } from "./known.mjs";

openPage();
const { toolsFor } = await import("../../book/_static/moving/tools.js");

// A figure whose script has drawn it.
async function opened(name, data) {
  openPage('<figure><div class="tt-drawing__panels"></div></figure>');
  const figure = document.querySelector("figure");
  figure.data = data;
  const { default: move } = await import(`../../book/_static/moving/${name}.js`);
  figure.moving = move(figure, toolsFor(figure));
  return figure;
}

const labelled = (figure, words) => figure.querySelectorAll("label").find((each) => each.textContent.trim() === words);

const DEEDS = {
  slide(figure, label, value) {
    const input = document.getElementById(labelled(figure, label).getAttribute("for"));
    input.value = value;
    input.dispatchEvent(happening("input"));
    const told = input.getAttribute("aria-valuetext");
    assert.equal(figure.querySelector(`output[for=${input.id}]`).textContent, told);
  },
  choose(figure, label) {
    labelled(figure, label).querySelector("input").dispatchEvent(happening("change"));
  },
  press(figure, label) {
    figure.querySelectorAll("button").find((each) => each.textContent === label).click();
  },
};

// Whether numbers of a figure are those of the package, as far as these go.
function same(found, expected, what) {
  if (typeof expected === "number") {
    const wanted = expected === -1e300 ? -Infinity : expected;
    const close = found === wanted || Math.abs(found - wanted) <= 1e-6 + 1e-9 * Math.abs(wanted);
    assert.ok(close, `${what}: ${found} instead of ${wanted}`);
  } else if (expected === null || typeof expected !== "object") {
    assert.equal(found, expected, what);
  } else {
    if (Array.isArray(expected)) assert.equal(found.length, expected.length, what);
    for (const [key, value] of Object.entries(expected)) same(found[key], value, `${what}.${key}`);
  }
}

// Where the package has pairs or merges, the figure has their counts too.
const shown = (figure) => {
  const numbers = figure.moving.numbers();
  return numbers.merges ? { ...numbers, merges: numbers.merges.map(([left, right]) => [left, right]) } : numbers;
};

for (const [name, { data, steps }] of Object.entries(known("figures"))) {
  test(`${name} shows what the package computes`, async () => {
    const figure = await opened(name, data), words = figure.querySelector(".tt-moving__words");
    for (const [deeds, numbers, said] of steps) {
      for (const [how, label, value] of deeds) DEEDS[how](figure, label, value);
      const what = `${name} ${JSON.stringify(deeds)}`;
      same(shown(figure), numbers, what);
      assert.ok(words.textContent.includes(said), `${what}: ${words.textContent}`);
      assert.ok(!/NaN|undefined/.test(figure.outerHTML), what);
    }
  });
}

test("a drawn number chooses with the probabilities of the bars", async () => {
  const { data } = known("figures").sampling, figure = await opened("sampling", data), found = new Set();
  for (let i = 0; i < 12; i += 1) {
    DEEDS.press(figure, "Draw another number");
    const { probs, number, token } = figure.moving.numbers();
    const before = probs.slice(0, token).reduce((sum, p) => sum + p, 0);
    assert.ok(before <= number && number < before + probs[token]);
    assert.ok(figure.querySelector(".tt-moving__words").textContent.endsWith(`draws ${data.tokens[token]}.`));
    found.add(number);
  }
  assert.equal(found.size, 12);
});

test("a value without a number is not drawn", async () => {
  const all = known("figures"), graph = await opened("autograd", all.autograd.data);
  for (const [back, count] of [[0, 0], [1, 1], [2, 2], [3, 4], [4, 6]]) {
    DEEDS.slide(graph, "Gradients", back);
    assert.equal(graph.querySelectorAll("text.d-gradient.d-mono").length, count);
  }
  const curve = await opened("warm-up", all["warm-up"].data);
  assert.equal(curve.querySelectorAll(".d-thick").length, 1);
  DEEDS.slide(curve, "All steps", 40);
  assert.equal(curve.querySelectorAll(".d-thick").length, 0);
});

test("a text is announced after its last change", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const figure = await opened("tokenization", known("figures").tokenization.data);
  DEEDS.slide(figure, "Merges", 1);
  const said = figure.querySelector(".tt-moving__words"), heard = figure.querySelector("[aria-live=polite]");
  t.mock.timers.tick(499);
  assert.equal(heard.textContent, "");
  DEEDS.slide(figure, "Merges", 2);
  t.mock.timers.tick(499);
  assert.equal(heard.textContent, "");
  t.mock.timers.tick(1);
  assert.equal(heard.textContent, said.textContent);
});

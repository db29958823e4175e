// What comes to the playground when it is asked for: a picture and a link, the whole screen for a class, the tour.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { beforeEach, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { happening, openPage } from "./dom.mjs";

const FOLDER = new URL("../../book/_static/playground/", import.meta.url);
const of = (name) => import(new URL(`${name}.js`, FOLDER));
const { playground } = await of("playground");
const { FOLDS, START, fromHash, toHash, toured } = await of("state");
const { cardOf, drawCard, lastLines, linkTo, wordsOf } = await of("sharing");
const { keyOf, nextOff } = await of("lesson");
const { STOPS, isTruest } = await of("tour");

beforeEach(() => {
  globalThis.fetch = async (address) => new Response(readFileSync(new URL(address)));
  performance.getEntriesByType = () => [{ type: "navigate" }];
});

// A playground whose page takes styles at once.
async function opened({ hash = "", compact = false } = {}) {
  const size = compact ? ' data-size="compact"' : "";
  openPage(`<main><div class="tt-play"${size}></div><p class="other"></p></main>`, {
    address: `https://book.test/book/playground.html${hash}`, asked: ["(prefers-reduced-motion: reduce)"],
  });
  const { head } = document, append = head.append.bind(head);
  head.append = (link) => { append(link); queueMicrotask(() => link.onload?.()); };
  const place = document.querySelector(".tt-play");
  await playground(place);
  const it = globalThis.tinytorchPlay;
  await settled(it);
  return it;
}

const settled = async (it) => { for (let last; last !== it.settled; await last) last = it.settled; };
const until = async (condition) => { while (!condition()) await pause(1); };
const key = (name, about = {}) => document.dispatchEvent(happening("keydown", { key: name, ...about }));
const pressed = (name, element = document.body) => keyOf({ key: name, target: element }, true);

// The address --------------------------------------------------------------------------------------------------------

test("an address says what is unfolded and what a class is shown, and no more than there is", () => {
  const state = { ...START, open: ["attention", "broken"], lesson: "attention" };
  assert.equal(toHash(state), "#play&open=attention.broken&lesson=attention");
  assert.deepEqual(fromHash(toHash(state)), state);
  assert.deepEqual(fromHash("#play&open=broken.none.attention.toString&lesson=none"), { ...START, open: ["attention", "broken"] });
});

test("a link to a panel unfolds it, and what is unfolded stands in the next link", async () => {
  const it = await opened({ hash: "#play&open=lens" });
  const fold = (name) => it.place.querySelector(`[data-fold=${name}]`);
  assert.deepEqual(FOLDS.map((name) => fold(name).open), FOLDS.map((name) => name === "lens"));
  fold("attention").open = true;
  await until(() => linkTo(it.state).endsWith("#play&open=lens.attention"));
  fold("lens").open = false;
  await until(() => linkTo(it.state).endsWith("#play&open=attention"));
});

test("the other panels are led to with the text that stands here", async () => {
  const it = await opened({ compact: true });
  const link = document.createElement("a");
  link.hash = "#play&open=lens";
  const list = document.createElement("ul");
  list.className = "tt-panels";
  list.append(link);
  document.body.append(list);
  it.change({ text: "Once" });
  assert.equal(link.hash, "#play&text=Once&open=lens");
});

// The picture --------------------------------------------------------------------------------------------------------

test("the picture shows the text and the bars that stand there, and says so", async () => {
  const it = await opened({ compact: true });
  const card = cardOf(it);
  assert.deepEqual([card.text, card.rows.length, card.rows[0].token], ["One sunny morning", 5, " Mia"]);
  assert.ok(wordsOf(card).startsWith("After “One sunny morning” the model expects: “Mia” 16 %, the truth 17 %; "));
  const written = [], filled = [];
  const paint = {
    fillText: (words) => written.push([words, paint.fillStyle]), fillRect: (x, y, width) => filled.push([paint.fillStyle, width]),
    measureText: (words) => ({ width: 20 * words.length }),
  };
  drawCard(paint, card, { ink: "ink", muted: "muted", paper: "paper", model: "model", truth: "truth" });
  assert.deepEqual(written[0], ["One sunny morning …", "ink"]);
  assert.ok(written.some(([words, colour]) => words === "17 %" && colour === "truth"));
  const [teal, rust] = ["model", "truth"].map((name) => filled.filter(([colour]) => colour === name).slice(-5));
  assert.ok(Math.abs(teal[0][1] / rust[0][1] - card.rows[0].model / card.rows[0].truth) < 1e-9);
  it.change({ text: "The dragon said" });
  const none = cardOf(it);
  assert.equal(none.rows[0].truth, null);
  assert.ok(!wordsOf(none).includes("truth"));
});

test("of a long text the picture has the end", () => {
  const measure = (text) => text.length;
  assert.deepEqual(lastLines("a few words", measure, 20), ["a few words"]);
  assert.deepEqual(lastLines("one two three four five six", measure, 9), ["… four five", "six"]);
});

test("share offers the link, sends it where a browser can, and does without a picture", async () => {
  const it = await opened({ compact: true });
  const { picture, sharing } = it.parts;
  const button = (name) => sharing.querySelectorAll("button").find((each) => each.textContent === name);
  it.change({ temperature: 0.5, map: "mlp.0" });
  picture.click();
  await until(() => sharing.textContent.includes("makes no picture"));
  assert.deepEqual([picture.getAttribute("aria-expanded"), button("Save the picture")], ["true", undefined]);
  let copied;
  navigator.clipboard = { writeText: async (text) => { copied = text; } };
  button("Copy the link").click();
  await until(() => sharing.textContent.includes("The link is copied."));
  assert.ok(copied.endsWith("#play&temperature=0.5&map=mlp.0"));
  picture.click();
  await until(() => sharing.hidden);
  let sent;
  navigator.share = async (what) => { sent = what; };
  picture.click();
  await until(() => button("Send a link"));
  button("Send a link").click();
  await until(() => sharing.textContent.includes("Sent."));
  assert.equal(sent.url, copied);
});

// The lesson ---------------------------------------------------------------------------------------------------------

test("a key means what the list says, and nothing where it is text or moves something", async () => {
  const it = await opened();
  assert.deepEqual(["t", "S", "u", "p", "ArrowRight", "Escape", "x"].map((name) => pressed(name)), ["T", "S", "U", "P", "T", "Esc", null]);
  assert.deepEqual(["t", "ArrowRight", "Escape"].map((name) => pressed(name, it.parts.field)), [null, null, "Esc"]);
  assert.deepEqual(["t", "ArrowRight"].map((name) => pressed(name, it.parts.temperature)), ["T", null]);
  assert.equal(pressed("ArrowRight", it.strip.chips[0]), null);
  assert.equal(keyOf({ key: "t", target: document.body, ctrlKey: true }, true), null);
  assert.equal(keyOf({ key: "t", target: document.body }, false), null, "letters can be switched off");
});

test("P takes each part away alone, and then none", () => {
  const all = [];
  for (let off = []; !all.length || off.length; all.push(off)) off = nextOff(off);
  assert.deepEqual(all, [["positions"], ["mask"], ["scale"], ["residual"], ["norm"], []]);
});

test("a lesson lies over the page with its keys, follows the address and gives all of it back", async () => {
  const it = await opened();
  const opener = it.place.querySelector("[data-fold=attention] [data-lesson]");
  opener.click();
  await until(() => document.querySelector(".tt-lesson"));
  assert.equal(it.place.dataset.lesson, "attention");
  assert.ok(document.querySelector(".other").inert);
  assert.ok(it.place.querySelector("[data-fold=attention]").open);
  assert.ok(linkTo(it.state).includes("lesson=attention"));
  assert.deepEqual(document.querySelectorAll(".tt-lesson kbd").map((each) => each.textContent), ["T", "S", "U", "P", "C", "Esc"]);
  const press = (name) => it.place.dispatchEvent(happening("keydown", { key: name }));
  press("t");
  await until(() => it.state.drawn.length === 1 && !it.writing);
  press("u");
  assert.equal(it.state.drawn.length, 0);
  press("p");
  assert.deepEqual(it.state.off, ["positions"]);
  assert.ok(document.querySelector(".tt-lesson").textContent.includes("Without the positions."));
  press("Escape");
  assert.deepEqual([document.querySelector(".tt-lesson"), it.state.lesson, document.activeElement], [null, null, opener]);
  assert.ok(!document.querySelector(".other").inert);
  press("t");
  assert.equal(it.state.drawn.length, 0, "the keys have gone with it");
});

test("the class's link opens the same panel at once", async () => {
  const it = await opened({ hash: "#play&text=Once&lesson=lens" });
  await until(() => document.querySelector(".tt-lesson"));
  assert.deepEqual([it.place.dataset.lesson, it.state.text], ["lens", "Once"]);
});

test("a link to another panel, pasted while the page is open, shows that one, and one without a panel leaves", async () => {
  const it = await opened();
  const paste = async (hash) => { location.hash = hash; globalThis.dispatchEvent(happening("hashchange")); await settled(it); };
  await paste("#play&lesson=lens");
  await until(() => document.querySelector(".tt-lesson"));
  assert.equal(it.place.dataset.lesson, "lens");
  await paste("#play&text=Once&lesson=attention");
  assert.deepEqual([it.place.dataset.lesson, it.state.text], ["attention", "Once"]);
  await paste("#play&text=Once");
  assert.deepEqual([document.querySelector(".tt-lesson"), it.lesson, it.state.lesson], [null, null, null]);
});

// The tour -----------------------------------------------------------------------------------------------------------

test("the tour waits at each stop for what the reader does", async () => {
  const it = await opened({ compact: true });
  it.parts.tour.click();
  await until(() => it.tour);
  await until(() => it.folds.training);
  const at = async (number) => { await settled(it); await until(() => it.tour.number === number); };
  const words = () => document.querySelector(".tt-tour [role=status]").textContent;
  const looked = async (said) => { // what has been done stays in sight until then
    await until(() => it.tour.skip.textContent === "Next");
    assert.ok(words().includes(said), words());
    assert.equal(document.activeElement, it.tour.skip);
    it.tour.skip.click();
  };
  await at(0);
  assert.ok(words().includes("tokens") && it.parts.tokens.classList.contains("tt-tour__lit"));
  it.change({ temperature: 0.1 });
  await settled(it);
  assert.equal(it.tour.number, 0, "that was not asked for");
  it.strip.chips[1].click();
  await until(() => it.tour.skip.textContent === "Next");
  assert.deepEqual([it.tour.number, it.state.at], [0, 1], "what could have stood there is in sight");
  await looked("instead");
  await at(1);
  assert.deepEqual([it.state.at, it.tour.skip.textContent], [null, "Skip this"]);
  it.press(it.likeliest[1]);
  await at(2);
  const { truth } = it.view, worst = it.likeliest.find((id) => !isTruest(id, truth));
  it.press(worst);
  await settled(it);
  assert.equal(it.tour.number, 2);
  assert.ok(words().includes("Now press the token with the longest rust bar."));
  it.press(it.likeliest.find((id) => isTruest(id, it.view.truth)));
  await at(3);
  assert.ok(Math.max(...it.view.belief) < 0.5, "the bars have room to move");
  it.change({ temperature: 0.6 });
  await settled(it);
  assert.equal(it.tour.number, 3);
  it.change({ temperature: 2 });
  await looked("outlines");
  await at(4);
  it.folds.map = { heads: {}, isOpen: () => true, show() {} };
  it.show();
  await settled(it);
  assert.equal(it.tour.number, 4, "the map has come, and no head is chosen");
  it.folds.map.heads[0] = 2;
  it.show();
  await looked("added up");
  await at(5);
  it.change({ step: 0 });
  await until(() => it.state.step === 0);
  await settled(it);
  assert.ok(words().includes("Now drag it back"));
  it.change({ step: 4000 });
  await at(STOPS.length);
  assert.ok(document.querySelector(".tt-tour a").href.endsWith("counting-letters.html") && toured());
});

test("the tour can be left at any stop, by key too, and is not offered first again", async () => {
  const it = await opened({ compact: true });
  assert.equal(it.parts.tour.parentNode.firstElementChild, it.parts.tour);
  it.parts.tour.click();
  await until(() => it.tour);
  document.querySelector(".tt-tour button").click();
  assert.equal(it.tour.number, 1, "skipped");
  key("Escape");
  assert.deepEqual([document.querySelector(".tt-tour"), document.activeElement, it.tour], [null, it.parts.tour, null]);
  assert.ok(toured() && !document.querySelector(".tt-tour__lit"));
});

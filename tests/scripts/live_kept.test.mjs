// What a browser keeps of a reader's work: by tab, in a file, and what the page makes of it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { happening, openPage } from "./dom.mjs";
import { Python, cell, openLive } from "./live.mjs";

openPage();
const { Edit, memory, names, remembers } = await import("../../book/_static/live/remembered_progress.js");
const { readBack, saved } = await import("../../book/_static/live/saved_work.js");
const elsewhere = await import("../../book/_static/live/remembered_progress.js?another tab");
const OURS = "tinytorch-book:";

const keep = (entries) => { for (const [name, value] of Object.entries(entries)) localStorage.setItem(OURS + name, JSON.stringify(value)); };
const kept = () => Object.fromEntries(Object.entries(localStorage).map(([key, text]) => [key.slice(OURS.length), JSON.parse(text)]));

// Tabs ---------------------------------------------------------------------------------------------------------------

test("each stored name is a dictionary of its own, whatever another tab writes", () => {
  openPage();
  const [mine, theirs] = [memory("solved"), elsewhere.memory("solved")];
  assert.equal(mine.get("a"), undefined);
  assert.equal(mine.set("a", true), true);
  theirs.set("b", { x: 1 });
  memory("solvedmore").set("a", 2);
  localStorage.setItem("tinytorch-book:solved c", "{damaged");
  assert.deepEqual({ ...mine.all, c: 0 }, { a: true, b: { x: 1 }, c: 0 });
  mine.remove("a");
  assert.deepEqual([mine.get("a"), theirs.get("b")], [undefined, { x: 1 }]);
  theirs.clear();
  assert.deepEqual(Object.keys(mine.all), []);
  assert.ok(remembers());
});

test("a simultaneous write of another tab is kept", () => {
  openPage();
  const [mine, theirs] = [memory("solved"), elsewhere.memory("solved")], { setItem } = Storage.prototype;
  Storage.prototype.setItem = function between(...given) { // this one has made up its mind, and has not written yet
    Storage.prototype.setItem = setItem;
    theirs.set("theirs", true);
    setItem.apply(this, given);
  };
  mine.set("mine", true);
  assert.deepEqual([mine.all, theirs.all], [{ mine: true, theirs: true }, { mine: true, theirs: true }]);
});

test("a tab is told what another has changed, and when all is cleared", () => {
  openPage();
  const told = [];
  memory("solved", (field) => told.push(field));
  for (const key of ["tinytorch-book:solved a", "tinytorch-book:answers a", "other", null]) {
    dispatchEvent(Object.assign(new Event("storage"), { key }));
  }
  assert.deepEqual(told, ["a", null]);
});

test("what storage refuses lasts as long as the page", () => {
  openPage();
  localStorage.setItem = () => { throw new DOMException("full", "QuotaExceededError"); };
  const mine = memory("passing");
  assert.equal(mine.set("a", 1), false);
  assert.deepEqual(mine.all, { a: 1 });
  assert.ok(names().includes("passing"));
  assert.ok(!remembers());
  mine.clear();
  assert.deepEqual(mine.all, {});
});

test("data of the first edition is split into fields, and nothing newer is overwritten", () => {
  openPage();
  keep({ solved: { a: true, b: true }, "solved b": false });
  assert.deepEqual(memory("solved").all, { a: true, b: false });
  assert.deepEqual(kept(), { "solved a": true, "solved b": false });
});

test("two tabs' edits of one cell are both kept until the reader chooses", () => {
  openPage();
  const [one, other] = [memory("edits:book/a"), elsewhere.memory("edits:book/a")].map((all) => new Edit(all, 1, "book"));
  one.write("one");
  other.hear();
  assert.deepEqual([other.text, other.theirs], [undefined, "one"]);
  other.write("other");
  one.hear();
  assert.deepEqual([one.text, one.theirs], ["one", "other"]);
  assert.deepEqual(kept()["edits:book/a 1"], { of: "book", text: "other", other: "one" });
  const third = new Edit(memory("edits:book/a"), 1, "book");
  assert.deepEqual([third.text, third.theirs], ["other", "one"]);
  assert.equal(third.swap(), "one");
  third.forgetTheirs();
  assert.deepEqual(kept()["edits:book/a 1"], { of: "book", text: "one" });
  assert.equal(new Edit(memory("edits:book/a"), 1, "a new book").text, undefined);
  third.write(undefined);
  assert.deepEqual(kept(), {});
  one.hear(); // another tab has taken its text back: what stands here is put there
  assert.deepEqual(kept()["edits:book/a 1"].text, "one");
});

// A file of it -------------------------------------------------------------------------------------------------------

const WORK = {
  "solved ex-a": true,
  "answers a.html#r/0": true,
  "hints ex-a/0": true,
  "predictions book/a#p": { choice: "two" },
  "edits:book/a 1": { of: "a", text: "b" },
  "sources a_check": ["import numpy as np", "check.a(1)"],
  "parts lookup": "# part",
};

test("work is saved to a file and read back without losing present work", () => {
  openPage();
  keep({ ...WORK, "other x": 1 });
  const text = saved("1.2");
  assert.deepEqual(Object.keys(JSON.parse(text)), ["book", "version", "release", "kept"]);
  assert.ok(!text.includes("other"));
  localStorage.removeItem(`${OURS}other x`);
  localStorage.removeItem(`${OURS}hints ex-a/0`);
  keep({ "solved ex-b": true, "edits:book/a 1": { of: "a", text: "c" } });
  assert.deepEqual(readBack(text), { came: 2, lost: 0 });
  const merged = { of: "a", text: "c\n\n# From the file that was read back:\n# b" };
  assert.deepEqual(kept(), { ...WORK, "solved ex-b": true, "edits:book/a 1": merged });
  assert.deepEqual(readBack(text), { came: 0, lost: 0 });
  openPage();
  readBack(text);
  assert.deepEqual(kept(), WORK);
});

test("a full browser says how much it could not store, and still saves it to a file", () => {
  openPage();
  localStorage.setItem = () => { throw new Error("full"); };
  const work = { solved: { "ex-a": true, "ex-b": true } };
  assert.deepEqual(readBack(JSON.stringify({ book: "tinytorch", version: 1, kept: work })), { came: 2, lost: 2 });
  assert.deepEqual(JSON.parse(saved()).kept, work);
  memory("solved").clear();
});

test("a damaged or foreign file is refused and changes nothing", () => {
  openPage();
  keep(WORK);
  const ours = (more) => JSON.stringify({ book: "tinytorch", version: 1, ...more });
  for (const [text, reason] of [
    ["{", "not JSON"], ['{"book": "tinytorch", "version": 1, "kept": {"solved": {"ex-', "not JSON"],
    ['{"cells": []}', "not saved by this book"], ["[]", "not saved by this book"], ["null", "not saved by this book"],
    [ours({ version: 2, kept: {} }), "later edition"], [ours({ version: undefined, kept: {} }), "damaged"], [ours({}), "damaged"],
    [ours({ kept: { solved: [] } }), "damaged"],
    [ours({ kept: { solved: { a: true }, other: { a: 1 } } }), "“other”"],
    [ours({ kept: { solved: { a: true, b: "<b>" } } }), "“solved”"],
    [ours({ kept: { predictions: { a: true } } }), "“predictions”"],
    [ours({ kept: { sources: { a: "b" } } }), "“sources”"], [ours({ kept: { parts: { a: 1 } } }), "“parts”"],
    [ours({ kept: { "edits:book/a": { 1: { of: "a" } } } }), "“edits:book/a”"],
  ]) {
    assert.throws(() => readBack(text), ({ message }) => message.includes(reason), text);
    assert.deepEqual(kept(), WORK, text);
  }
});

// Exercises ----------------------------------------------------------------------------------------------------------

const told = (passed, more = {}) => `tell ${JSON.stringify({
  kind: "report", slot: 1, name: "a_check", cells: ["mine"], points: 2, passed, untouched: false,
  checks: [
    { state: "passed", claim: "it is there" },
    { state: passed ? "passed" : "not yet", claim: "it adds", given: "1", expected: "2", got: "3", hint: "Use axis=-1." },
    { state: passed ? "passed" : "not yet", claim: "it is quick" },
  ],
  ...more,
})}`;
const exercise = (id, hints) => `<div class="exercise admonition" id="${id}"><p class="admonition-title"><span class="caption-number">Exercise ${id === "ex-a" ? 1 : 2} </span> (The ${id}, 2 points)</p></div>
  ${cell("...", { tags: ["exercise-stub"] }).replace(/<\/div>$/, '<div class="cell_output"><p class="tt-live__first">Write it, then press Check.</p></div></div>')}
  ${hints.map((hint) => `<div class="dropdown admonition"><p class="admonition-title">Hint</p><p>${hint}</p></div>`).join("")}
  ${cell("solved", { tags: ["hide-cell", "exercise-solution"] })}`;
const BODY = `<nav class="bd-sidebar-primary"><div class="bd-links"><a class="reference" href="https://book.test/book/a.html">A</a></div></nav>
  <div class="tt-progress" hidden></div><a class="right-next" href="b.html"><p class="prev-next-title">B</p></a>`;
const exercises = (all = {}) => openLive(
  `<section><h2>Exercises</h2>${exercise("ex-a", ["Keep it."])}${exercise("ex-b", ["One.", "Two."])}</section>`,
  ["stub", "solution", "stub", "solution"].map((kind) => ({ tags: [`exercise-${kind}`] })),
  { body: BODY, data: { exercises: { "book/a": { "ex-a": 2, "ex-b": 1 }, "book/z": { "ex-z": 4 } } }, ...all },
);
const check = async (live, number, code) => {
  live.cell(number).write(code);
  live.press(number, "Check");
  await live.ended(number);
};

test("a report lists every check in words and opens the first that does not hold", async () => {
  const live = await exercises();
  await check(live, 1, told(false));
  const report = live.cell(1).element.querySelector(".tt-report");
  assert.equal(report.querySelector(".tt-report__verdict").textContent, "Not yet: 1 of 3 checks passed.");
  assert.deepEqual(report.querySelectorAll(".tt-report__state").map((each) => each.textContent), ["passed", "not yet", "not yet"]);
  assert.deepEqual(report.querySelectorAll("details").map(({ open }) => open), [true, false]);
  assert.equal(report.querySelector("details[open] dl").textContent, "given1expected2got3");
  assert.equal(live.voice.textContent,
    "exercise 1: Not yet: 1 of 3 checks passed. The first that does not hold: it adds.\nexpected 2\ngot 3");
  await check(live, 1, told(false, { untouched: true, checks: [{ state: "not reached", claim: "a" }] }));
  assert.ok(live.cell(1).element.textContent.includes("Nothing is written yet: press Edit, write it, then press Check."));
  assert.equal(live.cell(1).element.querySelectorAll(".tt-report").length, 1);
});

test("hints come one at a time, the solution last, and stay", async () => {
  const live = await exercises(), shown = () => document.querySelectorAll(".tt-hint:not([hidden])").map((each) => each.textContent);
  const ladder = document.getElementById("ex-b-hints"), press = () => ladder.querySelector("button");
  assert.deepEqual(shown(), []);
  for (const [word, hint] of [["Hint 1 of 2", "Hint 1One."], ["Hint 2 of 2", "Hint 2Two."]]) {
    assert.equal(press().textContent, word);
    press().click();
    assert.equal(shown().at(-1), hint);
    assert.equal(live.voice.textContent, hint);
  }
  assert.equal(press().textContent, "Show the solution");
  assert.ok(live.cell(4).element.hidden);
  press().click();
  assert.ok(!live.cell(4).element.hidden && live.cell(4).element.querySelector("details").open && ladder.hidden);
  assert.equal(document.getElementById("ex-a-hints").querySelector("button").textContent, "A hint");
  const again = await exercises({ kept: { ...localStorage } });
  assert.deepEqual(shown(), ["Hint 1One.", "Hint 2Two."]);
  assert.ok(!again.cell(4).element.hidden && again.cell(2).element.hidden);
});

test("the advice of a check is the next hint", async () => {
  const live = await exercises();
  await check(live, 1, told(false));
  const ladder = document.getElementById("ex-a-hints");
  live.button("A hint on what failed", ladder).click();
  assert.equal(live.voice.textContent, "Hint on what failed: it addsUse axis=-1.");
  live.button("A hint", ladder).click();
  assert.equal(document.querySelectorAll(".tt-hint:not([hidden])").length, 2);
  assert.ok(live.button("Show the solution", ladder));
});

// The parts of a GPT, two of them in one place, as the build tells the page.
const PARTS = { list: "your-gpt.html#your-parts", parts: [
  { name: "lookup", place: "lookup", said: "The lookup is", where: "Exercise 1", href: "#ex-a" },
  { name: "heads", place: "heads", said: "The heads are", where: "Exercise 2 of Heads", href: "heads.html#ex-h" },
  { name: "heads with a cache", place: "heads", said: "The heads with a cache are", where: "Exercise 4 of Cache", href: "cache.html#ex-c" },
  { name: "draw", place: "draw", said: "The draw is", where: "Exercise 3 of Sampling", href: "sampling.html#ex-d" },
] };
const CARD = `<p class="tt-parts">Your own GPT has <a href="your-gpt.html#your-parts">3 parts</a></p>
  <table id="your-parts">${["lookup", "heads", "draw"].map((name) => `<tr id="part-${name}"><td><p><strong>${name}</strong> does</p></td></tr>`).join("")}</table>`;
const withParts = (all = {}) => exercises({ body: `${BODY}${CARD}<script type="application/json" id="tt-parts">${JSON.stringify(PARTS)}</script>`, ...all });
const chip = () => document.querySelector(".tt-parts").textContent;
const marked = () => document.querySelectorAll("#your-parts .tt-live__solved").map((each) => each.closest("tr").id);
const accepted = (live, name) => check(live, 1, told(true, { part: { name, section: `# ${name}` }, kept: "yes" }));
const greeted = (live) => live.cell(1).element.querySelector(".tt-report__kept");

test("a part that a check accepts is greeted, counted and marked, and leads to the next open one", async () => {
  const live = await withParts();
  assert.deepEqual([chip(), marked()], ["Your GPT:  0 of 3 parts are yours", []]);
  await accepted(live, "lookup");
  assert.equal(greeted(live).textContent, "The lookup is yours now: 1 of 3 parts for your GPT. Next open part: heads, Exercise 2 of Heads");
  assert.equal(greeted(live).querySelector("a").getAttribute("href"), "heads.html#ex-h");
  assert.ok(live.heard.at(-2).includes("The lookup is yours now: 1 of 3 parts for your GPT. Next open part: heads, Exercise 2 of Heads"));
  assert.deepEqual([chip(), marked()], ["Your GPT:  1 of 3 parts are yours", ["part-lookup"]]);
  await accepted(live, "lookup");
  assert.ok(greeted(live).textContent.startsWith("The lookup is yours: 1 of 3 parts for your GPT."), "it was already");
});

test("two parts that stand in one place count once, and the last part leads to the list", async () => {
  const live = await withParts({ kept: { "tinytorch-book:parts heads": '"# heads"', "tinytorch-book:parts draw": '"# draw"' } });
  assert.deepEqual([chip(), marked()], ["Your GPT:  2 of 3 parts are yours", ["part-heads", "part-draw"]]);
  await accepted(live, "heads with a cache");
  assert.equal(greeted(live).textContent, "The heads with a cache are yours now: 2 of 3 parts for your GPT. Next open part: lookup, Exercise 1");
  await accepted(live, "lookup");
  assert.equal(greeted(live).textContent, "The lookup is yours now, and with it all 3 parts. Make your GPT of them");
  assert.equal(greeted(live).querySelector("a").getAttribute("href"), "your-gpt.html#your-parts");
});

test("another tab's part is counted here, and a forgotten one no longer", async () => {
  await withParts();
  const tell = () => dispatchEvent(Object.assign(new Event("storage"), { key: `${OURS}parts draw` }));
  keep({ "parts draw": "# draw" });
  tell();
  assert.deepEqual([chip(), marked()], ["Your GPT:  1 of 3 parts are yours", ["part-draw"]]);
  localStorage.removeItem(`${OURS}parts draw`);
  tell();
  assert.deepEqual([chip(), marked()], ["Your GPT:  0 of 3 parts are yours", []]);
});

test("success is announced, remembered and counted, and links to the next exercise", async () => {
  const live = await exercises(), progress = document.querySelector(".tt-progress");
  assert.ok(progress.textContent.startsWith("What you do here is remembered in this browser only."));
  assert.equal(progress.querySelectorAll("button:not([hidden])").length, 1, "to read back");
  assert.equal(document.querySelector(".tt-live__count"), null);
  await check(live, 1, told(true, { part: { name: "lookup", section: "# lookup" }, kept: "yes" }));
  assert.deepEqual(live.heard.slice(-2), [
    "exercise 1: Solved: 2 of 2 points. Kept as your part “lookup” of the published model, with your progress.",
    "Next: Exercise 2, The ex-b",
  ]);
  assert.deepEqual(Object.keys(kept()).filter((name) => !name.startsWith("edits")).toSorted(), ["hints ex-a/1", "parts lookup", "solved ex-a", "sources a_check"]);
  assert.deepEqual([kept()["sources a_check"], kept()["parts lookup"]], [["mine"], "# lookup"]);
  assert.equal(live.status(1), "Solved");
  assert.ok(document.querySelector("#ex-a .tt-live__solved"));
  assert.equal(document.querySelector(".tt-live__points").textContent, "You have 2 of 3 points.");
  assert.equal(document.querySelector(".bd-links .tt-live__count").textContent, "2/3 points");
  assert.ok(progress.textContent.startsWith("2 of 7 points: 1 of 3 exercises solved."));
  assert.equal(progress.querySelectorAll("button:not([hidden])").length, 3);
  assert.ok(live.cell(2).element.querySelector("details").open, "the book's solution is to be compared");
  await check(live, 3, told(true));
  assert.equal(live.cell(3).element.querySelector(".tt-live__next a").textContent, "Next chapter: B");
  const again = await exercises({ kept: { ...localStorage } });
  assert.equal(again.cell(1).element.querySelector(".tt-live__first").textContent,
    "You have solved this. Press Check to see the report on what stands above.");
});

// The page with these chapters in its contents.
const contents = (chapters) => BODY.replace(/<a class="reference".*?<\/a>/, chapters.map(
  (name) => `<a class="reference" href="https://book.test/book/${name}.html">Chapter ${name}</a>`).join(""));

test("the account names the first open exercise after the last solved one by its number and chapter", async () => {
  const live = await exercises({ body: contents(["z", "none", "a"]) });
  const next = () => document.querySelector(".tt-progress__next a");
  assert.equal(next(), null);
  await check(live, 1, told(true));
  assert.deepEqual([next().textContent, next().href], ["Next: Exercise 2 of Chapter a", "https://book.test/book/a.html#ex-b"]);
  await check(live, 3, told(true));
  assert.equal(next().textContent, "Next: Exercise 1 of Chapter z", "one that was passed over");
});

test("the first screen says where to go on, once there is something to go on with", async () => {
  const live = await exercises({ body: `${contents(["a", "z"])}<p class="tt-continue" hidden></p>` });
  const above = document.querySelector(".tt-continue");
  assert.deepEqual([above.hidden, above.textContent], [true, ""]);
  await check(live, 1, told(true));
  assert.deepEqual([above.hidden, above.textContent], [false, "Continue: Exercise 2 of Chapter a, 2 of 7 points"]);
  assert.equal(above.querySelector("a").href, "https://book.test/book/a.html#ex-b");
  localStorage.setItem("tinytorch-book:solved ex-z", "true");
  await check(live, 3, told(true));
  assert.equal(above.textContent, "All exercises on the path are solved: 7 of 7 points");
  for (const id of ["ex-a", "ex-b", "ex-z"]) localStorage.removeItem(`tinytorch-book:solved ${id}`);
  globalThis.dispatchEvent(new Event("tt-progress"));
  assert.deepEqual([above.hidden, above.textContent], [true, ""], "forgotten");
});

test("the last exercise leads back to one that was passed over", async () => {
  const live = await exercises();
  await check(live, 3, told(true));
  assert.equal(live.cell(3).element.querySelector(".tt-live__next a").getAttribute("href"), "#ex-a");
});

test("solved parts are given to Python, and progress is forgotten at a second press but not what was written", async () => {
  const live = await exercises({ kept: { "tinytorch-book:parts a": '"# a"', "tinytorch-book:parts b": '"# b"', "tinytorch-book:solved ex-a": "true" } });
  live.cell(1).write("say mine");
  live.press(1, "Check");
  await live.ended(1);
  assert.equal(Python.all[0].heard[0].parts, "# a\n\n# b");
  live.button("Forget my progress").click();
  assert.ok(document.querySelector("#ex-a .tt-live__solved"));
  live.button("Really forget it?").click();
  assert.equal(document.querySelector("#ex-a .tt-live__solved"), null);
  assert.deepEqual(Object.keys(kept()), ["edits:book/a 1"]);
  assert.equal(live.cell(1).element.querySelector(".tt-live__first"), null, "its own output stands there");
});

test("another tab's success is shown here, and an answer stays open", async () => {
  const question = '<div class="tt-reflect" id="r"><details class="tt-reflect__choice"><summary>a</summary></details></div>';
  await exercises({ body: BODY + question });
  keep({ "solved ex-a": true });
  dispatchEvent(Object.assign(new Event("storage"), { key: `${OURS}solved ex-a` }));
  assert.ok(document.querySelector("#ex-a .tt-live__solved"));
  assert.equal(document.querySelector(".bd-links .tt-live__count").textContent, "2/3 points");
  document.querySelector(".tt-reflect__choice").open = true;
  assert.equal(kept()["answers a.html#r/0"], true);
  await exercises({ body: BODY + question, kept: { ...localStorage } });
  assert.ok(document.querySelector(".tt-reflect__choice").open);
});

// Predictions --------------------------------------------------------------------------------------------------------

const CHOICES = ["an error.", "more", "less"].map((text, i) => `<li class="tt-prediction__choice${i === 1 ? " tt-prediction__choice--right" : ""}">`
  + `<span class="tt-prediction__text">${text}</span></li>`).join("");
const answer = '<details class="tt-fold tt-answer"><summary>Show me</summary></details>';
const ofChoices = `<div class="tt-prediction" id="p"><ul>${CHOICES}</ul></div>${answer}`;
const ofNumber = `<div class="tt-prediction" id="n" data-number="237" data-spread="47.4" data-unit="times">
  <p class="tt-prediction__came">The answer: 237 times.</p></div>${answer}`;
const verdict = () => document.querySelector(".tt-prediction__verdict").textContent;
const isOpen = () => document.querySelector(".tt-answer").open;

test("an answer waits for a choice and then says which was right; a choice is made once and kept", async () => {
  const live = await openLive(ofChoices, []), presses = () => document.querySelectorAll(".tt-prediction__press");
  assert.ok(!isOpen() && verdict() === "");
  presses()[0].click();
  assert.ok(isOpen());
  assert.equal(live.voice.textContent, "Not this time: see which one is right. Right: more.");
  assert.deepEqual(presses().map((each) => each.getAttribute("aria-pressed")), ["true", "false", "false"]);
  presses()[1].click();
  assert.deepEqual(kept(), { "predictions book/a#p": { choice: "an error" } });
  await openLive(ofChoices, [], { kept: { ...localStorage } });
  assert.ok(isOpen());
  document.querySelector(".tt-prediction__end button").click();
  assert.ok(!isOpen() && document.activeElement === presses()[0]);
  assert.deepEqual(kept(), {});
  presses()[1].click();
  assert.equal(verdict(), "Right, as you predicted.");
});

test("an answer shown on request does not count as a prediction", async () => {
  await openLive(ofChoices, []);
  document.querySelector(".tt-answer summary").click();
  assert.ok(isOpen() && verdict() === "You asked to see the answer.");
  assert.equal(document.querySelectorAll("[aria-pressed=true]").length, 0);
  document.querySelector(".tt-answer summary").click();
  assert.ok(!isOpen());
});

test("a number is judged by its tolerance", async () => {
  for (const [number, said] of [
    ["6", "too small"], ["1000", "too large"], ["189.6", "close enough"], ["284.4", "close enough"], ["284.5", "too large"], ["237", "exactly right"],
  ]) {
    const live = await openLive(ofNumber, []), field = document.querySelector("input");
    field.value = number;
    document.querySelector("form").dispatchEvent(happening("submit"));
    assert.ok(verdict().endsWith(`${said}.`), verdict());
    assert.ok(isOpen() && field.readOnly && live.voice.textContent.endsWith("The answer: 237 times."));
    await openLive(ofNumber, [], { kept: { ...localStorage } });
    assert.equal(document.querySelector("input").value, number);
  }
});

test("running a cell of the answer opens it", async () => {
  const live = await openLive(ofChoices.replace("Show me</summary>", `Show me</summary>${cell("say a")}`), [{}]);
  live.press(1, "Run");
  assert.ok(isOpen());
  await live.ended(1);
});

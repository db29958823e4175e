// What a reader does in the playground and what it says: its modules in a page without a browser.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { beforeEach, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { happening, openPage } from "./dom.mjs";

const { playground } = await import("../../book/_static/playground/playground.js");
const WINDOW = 112, LONGEST = 2000;
const LONG = "Once upon a time there was a boy named Max. One morning he walked to the meadow. In the grass sat a tiny rabbit, all "
  + "alone and sad.";
const BOOK = new URL("../../book/", import.meta.url);
let asked, refused; // files that were asked for; and a part of the names of those that do not come

// A file of the site, unless the network has a fault.
async function served(address) {
  const name = String(address).split("/").at(-1);
  asked.push(name);
  if (refused === "all") throw new TypeError("Failed to fetch");
  if (refused && name.includes(refused)) return new Response("", { status: 404 });
  return new Response(readFileSync(new URL(address)));
}

beforeEach(() => {
  [asked, refused] = [[], ""];
  globalThis.fetch = served;
  performance.getEntriesByType = () => [{ type: "navigate" }];
});

const words = (element) => element.textContent.replace(/\s+/gu, " ").trim();

class Play {
  // hash: of the address; compact: as on the first page
  static async open(hash = "", { compact = false } = {}) {
    const size = compact ? ' data-size="compact"' : "";
    openPage(`<div class="tt-play"${size}></div>`, {
      address: `https://book.test/book/playground.html${hash}`, asked: ["(prefers-reduced-motion: reduce)"],
    });
    document.documentElement.dataset.content_root = "../";
    const play = new Play();
    play.place = document.querySelector(".tt-play");
    await playground(play.place);
    play.it = globalThis.tinytorchPlay;
    await play.settle();
    return play;
  }

  async settle() {
    for (let last; last !== this.it.settled; await last) last = this.it.settled;
  }

  part(name) {
    return this.it.parts[name];
  }

  async type(text) {
    this.part("field").value = text;
    this.part("field").dispatchEvent(happening("input"));
    await this.settle();
  }

  button(name, place = this.place) {
    const all = place.querySelectorAll("button").filter((each) => !each.closest("[hidden]"));
    const found = all.find((each) => (each.getAttribute("aria-label") ?? words(each)) === name) ?? all.find((each) => words(each) === name);
    return found ?? assert.fail(`there is no button ${name}`);
  }

  async press(name, place) {
    this.button(name, place).click();
    await this.settle();
  }

  async slide(name, value) {
    this.part(name).value = value;
    this.part(name).dispatchEvent(happening("input"));
    await this.settle();
  }

  async open(name) {
    const fold = this.place.querySelector(`[data-fold=${name}]`);
    fold.open = true;
    await this.settle();
    return fold;
  }

  async write(what) {
    this.button(`Write a ${what}`).click();
    while (this.it.writing) await pause(1);
    await this.settle();
  }

  async change(changes) {
    this.it.change(changes);
    await this.settle();
  }

  async until(condition) {
    while (!condition()) await pause(1);
    await this.settle();
  }

  get text() {
    return this.part("field").value;
  }

  get tokens() {
    return this.part("tokens").querySelectorAll("button").map((each) => each.textContent);
  }

  // Token, the model's and the true percentage of every row.
  get rows() {
    const all = this.part("bars").querySelectorAll(".tt-play__row:not(.tt-play__row--empty)");
    return all.map((row) => [".tt-play__chip", ".tt-play__model", ".tt-play__truth"].map((each) => row.querySelector(each).textContent));
  }

  said(...names) {
    return names.map((name) => words(this.part(name))).join(" ");
  }

  get verdict() {
    return this.said("verdict", "reason");
  }

  // The probe's and the true percentage of all that can be hidden.
  hidden(name) {
    const rows = this.part(name).querySelectorAll("tr");
    return Object.fromEntries(rows.map((row) => [
      words(row.querySelector("th")), row.querySelectorAll("td").slice(1).map((each) => each.textContent),
    ]));
  }
}

// Reading ------------------------------------------------------------------------------------------------------------

test("the first view shows a beginning, its tokens and both distributions", async () => {
  const play = await Play.open();
  assert.equal(play.text, "One sunny morning");
  assert.deepEqual(play.tokens, ["One", " sunny", " morning"]);
  assert.deepEqual(play.rows[0], [" Mia", "16 %", "17 %"]);
  assert.equal(play.rows.length, 8);
  assert.ok(play.verdict.startsWith("Very close to the truth. Model and truth have"));
  assert.equal(play.said("about").split(".").at(-2), " The model has only read the stories");
  const others = play.part("bars").querySelector(".tt-play__others");
  assert.match(words(others), /^504 others ?[\d.]+ % ?[\d.]+ %$/);
});

test("a typed beginning changes tokens, bars and, after a rest, the address", async () => {
  const play = await Play.open();
  assert.equal(play.said("count"), "The model reads 3 tokens: words or pieces of words");
  const scale = play.part("bars").parentNode.querySelector(".tt-play__scale :last-child");
  assert.equal(scale.textContent, "full bar: 25 %");
  await play.type("Once upon a");
  assert.deepEqual(play.tokens, ["Once", " upon", " a"]);
  assert.deepEqual(play.rows[0], [" time", "100 %", "100 %"]);
  assert.equal(scale.textContent, "full bar: 100 %");
  await play.until(() => location.hash === "#play&text=Once+upon+a");
  await play.press("Mia was a");
  assert.deepEqual([play.text, play.tokens], ["Mia was a", ["M", "ia", " was", " a"]]);
});

test("a pressed bar is written", async () => {
  const play = await Play.open();
  await play.press("Tom", play.part("bars"));
  assert.equal(play.text, "One sunny morning Tom");
  assert.equal(play.tokens.at(-1), " Tom");
});

test("an unfinished word waits, and only what goes on with it is shown", async () => {
  const play = await Play.open();
  await play.type("One sunny morning An");
  assert.deepEqual(play.tokens, ["One", " sunny", " morning"]);
  assert.equal(play.place.querySelector(".tt-play__rest").textContent, " An");
  assert.deepEqual(play.rows.map(([name]) => name), [" Anna"]);
  assert.ok(play.said("count").startsWith("“An…” is unfinished."));
  await play.press("Anna", play.part("bars"));
  assert.equal(play.text, "One sunny morning Anna");
  await play.type("One sunny morning Mia r");
  const lens = await play.open("lens");
  for (const row of lens.querySelectorAll("tbody tr")) assert.ok(row.querySelector(".tt-play__chip").textContent.startsWith(" r"));
  play.part("tokens").querySelectorAll("button")[1].click();
  assert.ok(!play.said("count").includes("unfinished"));
});

test("a piece of a word says which word it begins", async () => {
  const play = await Play.open();
  await play.press("Mia was a");
  const first = play.part("bars").querySelector(".tt-play__row");
  assert.equal(first.querySelector(".tt-play__chip").textContent, " b");
  assert.equal(words(first.querySelector("button")), "brave");
  assert.equal(first.querySelector("button").getAttribute("aria-label"), "brave: the piece b", "what is seen comes first");
  await play.type("Mia was a brave girl. One");
  const names = play.part("bars").querySelectorAll(".tt-play__press").map(words);
  assert.deepEqual(names.slice(0, 5), ["sunny", "windy", "rainy", "warm", "snowy"]);
  await play.type("");
  assert.equal(words(play.button("Mia: the piece M, as in Mia")), "Mia…");
  assert.ok(play.said("count").startsWith("Nothing is written yet."));
});

test("bytes are explained, and half a character is read as one that is unknown", async () => {
  const play = await Play.open();
  await play.type("One 😀\x07");
  assert.deepEqual(play.tokens.slice(2), ["\\xf0", "\\x9f", "\\x98", "\\x80", "\\x07"]);
  assert.ok(play.said("count").includes("Those like \\xf0 are bytes"));
  play.button("token 3: byte f0");
  await play.type("One sunny");
  assert.ok(!play.said("count").includes("bytes"));
  await play.change({ text: "One \ud83d" });
  assert.ok(play.tokens.at(-1).startsWith("\\x"));
});

test("a text that cannot be a story is reported with the position and the possible words", async () => {
  const play = await Play.open();
  await play.type("Mia was a brave girl. One dragon");
  assert.equal(play.verdict.trim(), "No story goes on like this.");
  assert.match(play.said("about"), /^So there is no truth to compare with; the model guesses .* After “One” a story goes on with sunny/);
  assert.deepEqual(new Set(play.rows.map(([, , truth]) => truth)), new Set(["–"]));
  await play.type("One sunny morning\n");
  assert.ok(!play.said("count").includes("over"));
  assert.ok(play.said("about").includes("After “morning” a story goes on with Mia"));
  const story = LONG.slice(0, 43) + " One day she walked to the";
  await play.type(story);
  assert.ok(play.verdict.startsWith("No story goes on like this."), "a boy is no she");
});

test("the offered words are those of stories and can be pressed", async () => {
  const play = await Play.open();
  await play.press("The dragon said (in no story)");
  assert.ok(play.verdict.startsWith("No story begins like this."));
  const offered = play.part("about").querySelectorAll("button");
  assert.deepEqual(offered.slice(0, 2).map(words), ["One", "Once"]);
  offered[1].click();
  assert.equal(play.text, "Once");
  assert.ok(play.verdict.endsWith(" in common."));
  await play.press("Take back");
  assert.equal(play.text, "The dragon said");
});

test("tokens into which no story is cut are not called impossible words", async () => {
  const play = await Play.open();
  await play.change({ text: "", drawn: [79, 110, 101] }); // O, n, e
  assert.ok(play.verdict.startsWith("A story may go like this. But its words are never cut into these tokens"));
});

// Writing ------------------------------------------------------------------------------------------------------------

test("a story is written to its end and taken back whole", async () => {
  const play = await Play.open();
  await play.write("story");
  assert.ok(play.tokens.at(-1) === "↵" || play.tokens.length === WINDOW - 1);
  assert.ok(play.part("tokens").querySelectorAll(".tt-play__chip--drawn").length === play.tokens.length - 3);
  await play.press("Take back");
  assert.equal(play.text, "One sunny morning");
  await play.press("Take back");
  assert.equal(play.text, "One sunny");
  await play.write("token");
  assert.equal(play.tokens.length, 3);
  await play.write("sentence");
  assert.ok(".!?\n".includes(play.text.replace(/"+$/, "").at(-1)));
});

test("undo reverts the last action, and nothing that was typed is lost", async () => {
  const play = await Play.open(), mine = "Once upon a time there was a boy";
  await play.type(mine);
  await play.press("Mia was a");
  await play.write("sentence");
  const longer = play.text;
  await play.press("token 2: ia");
  play.part("bars").querySelector(".tt-play__row:not(.tt-play__row--here) .tt-play__press").click();
  assert.ok(play.text.length < "Mia was a".length);
  for (const before of [longer, "Mia was a", mine]) {
    await play.press("Take back");
    assert.equal(play.text, before);
  }
  await play.press("One sunny morning");
  await play.type("One sunny morning Tom");
  await play.press("Take back");
  assert.equal(play.text, "One sunny morning", "what was typed goes before");
  await play.press("Take back");
  assert.equal(play.text, mine);
});

test("a character of several tokens is taken back whole", async () => {
  const play = await Play.open();
  await play.type("One 😀🐈\u200d⬛Ω");
  for (const left of ["One 😀🐈\u200d⬛", "One 😀", "One ", "One", ""]) {
    await play.press("Take back");
    assert.equal(play.text, left);
  }
});

test("tokens that were written stay while their text does", async () => {
  const play = await Play.open();
  await play.write("sentence");
  const { text } = play, { drawn } = play.it.state, last = play.tokens.at(-1);
  await play.type(text.slice(0, -last.length));
  assert.deepEqual(play.it.state.drawn, drawn.slice(0, -1));
  await play.type("One");
  assert.deepEqual([play.it.state.drawn, play.it.state.text], [[], "One"]);
});

test("writing can be stopped, and nothing else can be pressed meanwhile", async () => {
  const play = await Play.open();
  play.button("Write a story").click();
  assert.ok(play.it.writing);
  assert.equal(play.button("Write a token").getAttribute("aria-disabled"), "true");
  play.button("Write a token").click();
  assert.ok(play.it.writing);
  const { length } = play.tokens;
  play.button("Stop").click();
  assert.equal(play.it.writing, 0);
  await pause(30);
  assert.equal(play.tokens.length, length);
  assert.equal(play.button("Write a story").getAttribute("aria-disabled"), "false");
});

test("a drawn token is replaced by another, and what came after goes", async () => {
  const play = await Play.open();
  await play.press("Tom", play.part("bars"));
  await play.write("sentence");
  await play.press("token 4: Tom");
  assert.equal(play.said("heading"), "What could have stood instead of “Tom”?");
  assert.deepEqual(play.rows[0], [" Mia", "16 %", "17 %"]);
  play.button("Tom, which stands there");
  await play.press("Mia", play.part("bars"));
  assert.equal(play.text, "One sunny morning Mia");
  assert.equal(play.said("heading"), "What comes next?");
  await play.press("token 2: sunny");
  await play.press("Back to the end of the text");
  assert.equal(play.said("heading"), "What comes next?");
});

test("a full window writes no more until something is taken back", async () => {
  const play = await Play.open();
  play.it.random = () => 0.3;
  for (let i = 0; i < 4; i += 1) await play.write("story");
  assert.equal(play.tokens.length, WINDOW - 1);
  assert.ok(play.said("note").includes("Take some back, or start again"));
  await play.write("token");
  assert.equal(play.tokens.length, WINDOW - 1);
  await play.press("Take back");
  assert.ok(play.tokens.length > 3 && play.tokens.length < WINDOW - 2, "the last story goes");
});

const BAD = ["x".repeat(10_000), "the cat sat ".repeat(834), "One 😀🐈‍⬛ day", "", "\n\n", "漢字 العربية Ελληνικά", "a\f\t\u2028b"];

test("any text is answered and kept, whatever is open", async () => {
  const play = await Play.open();
  const folds = play.place.querySelectorAll("[data-fold]");
  for (const typed of BAD) {
    await play.type(typed);
    const text = typed.slice(0, LONGEST);
    assert.equal(play.text, text);
    assert.equal(play.rows.length, 8);
    assert.ok(play.tokens.length < WINDOW);
    if (text.length > 1000) {
      assert.ok(play.said("note").startsWith(`The model reads ${WINDOW} tokens and no more`));
      assert.ok(play.said("note").endsWith("the field holds no more than 2,000 characters."));
      await play.press("Take back");
      play.button("Write a token").click();
      assert.equal(play.text, text, "what is not read is not lost");
    }
    for (const fold of folds) fold.open = true;
    await play.type(`${text}.`);
  }
});

// Sliders ------------------------------------------------------------------------------------------------------------

test("temperature and both filters change the bars before a draw, the truth stays", async () => {
  const play = await Play.open(), certain = () => play.rows.filter(([, model]) => model !== "0 %").length;
  const outlines = () => play.part("bars").querySelectorAll(".tt-play__bar--belief:not([hidden])").length;
  assert.equal(outlines(), 0);
  await play.slide("temperature", 0);
  assert.deepEqual(play.rows.slice(0, 2).map(([, model]) => model), ["100 %", "0 %"]);
  assert.ok(outlines() >= 5, "the belief before it stays as an outline");
  assert.equal(play.part("temperature").getAttribute("aria-valuetext"), "0.00: always the likeliest");
  await play.slide("temperature", 1);
  await play.slide("topK", 2);
  assert.equal(certain(), 2);
  assert.equal(play.said("topKIs"), "the likeliest 2");
  await play.slide("topK", 21);
  assert.equal(play.said("topKIs"), "all");
  await play.slide("topP", 0.3);
  assert.equal(certain(), 2);
  assert.equal(play.part("bars").querySelectorAll(".tt-play__row--never").length, 6);
  assert.deepEqual(play.rows.slice(0, 2).map(([, , truth]) => truth), ["17 %", "16 %"]);
});

test("the verdict judges the bars that are shown", async () => {
  const play = await Play.open();
  await play.slide("temperature", 0);
  assert.equal(play.verdict.trim(), "The model itself: very close to the truth.");
  assert.match(play.said("about"), /outline: before the sliders.*far from the truth. They have 17 % in common with the truth now, without the sliders 97/);
  await play.slide("temperature", 1);
  assert.ok(play.verdict.startsWith("Very close to the truth."));
});

// What is folded -----------------------------------------------------------------------------------------------------

test("removing a part moves the distribution from the truth at once, and is announced", async () => {
  const play = await Play.open();
  await play.type(LONG);
  const fold = await play.open("broken"), whole = play.it.view.agree;
  const flip = async (input, on) => {
    input.checked = on;
    input.dispatchEvent(happening("change"));
    await play.settle();
  };
  const switches = fold.querySelectorAll("input");
  assert.equal(switches.length, 5);
  for (const input of switches) {
    await flip(input, true);
    assert.notEqual(play.it.view.agree, whole);
    assert.ok(play.said("note").includes("parts are missing"));
    assert.equal(fold.querySelectorAll("[data-part=broken] tr").length, 2);
    await flip(input, false);
    assert.equal(play.it.view.agree, whole);
  }
  for (const select of fold.querySelectorAll("select")) {
    select.value = select.querySelectorAll("option")[1].value;
    select.dispatchEvent(happening("change"));
    await play.settle();
    assert.notEqual(play.it.view.agree, whole);
    await play.press("Put everything back");
    assert.equal(play.it.view.agree, whole);
  }
});

test("a model with a removed part writes differently", async () => {
  const play = await Play.open();
  await play.open("broken");
  await play.change({ off: ["residual"] });
  const written = () => play.part("broken").querySelectorAll(".tt-play__writes").map((each) => each.textContent);
  await play.until(() => written().at(-1).length > 20);
  assert.ok(!written()[0].startsWith(written()[1]));
  const [first, , last] = play.part("brokenBars").querySelectorAll(".tt-play__row").map(words);
  assert.match(first, /^m ?27 % ?0 %$/);
  assert.match(last, /^Mia ?< 0\.1 % ?17 %$/, "what the truth finds likeliest is there");
  await play.until(() => written().every((text) => text.endsWith(" …")));
  assert.match(written()[0], /a tiny rabbit, all alone and …$/, "it ends with a whole word");
  await play.type("x".repeat(200));
  assert.ok(written()[0].startsWith("Nothing: it reads"));
});

test("the bars stand beside what changes them, and the layers end with what they show", async () => {
  const play = await Play.open();
  for (const [fold, part] of [["training", "learnedBars"], ["broken", "brokenBars"]]) {
    await play.open(fold);
    assert.equal(play.part(part).querySelectorAll(".tt-play__row").length, 3);
    assert.match(words(play.part(part).querySelector("tr")), /^Mia ?16 % ?17 %$/);
  }
  const rows = (await play.open("lens")).querySelectorAll("tbody tr");
  assert.deepEqual(rows.map((row) => words(row.querySelector("th"))),
    ["at once, from the last token alone", "after block 1", "at the end", "the truth"]);
  assert.equal(words(rows[2].querySelector("td")), "Mia 16 %");
});

test("a step of the training comes when it is asked for", async () => {
  const play = await Play.open();
  assert.deepEqual(asked.filter((name) => name.startsWith("step-")), ["step-4000.safetensors"]);
  await play.open("training");
  await play.slide("step", 0);
  await play.until(() => play.it.state.step === 0);
  assert.match(play.verdict, /^(Far|Some way) from/);
  assert.equal(play.said("stepIs"), "before the first step");
  assert.ok(play.said("note").includes("the model before the first step"));
});

test("dragging from untrained to trained changes the story and not the dice", async () => {
  const play = await Play.open("", { compact: true });
  const story = async (before = "") => { // the next one, once nothing more is written
    let last;
    do {
      last = play.said("wrote");
      await pause(300);
    } while (!last || last === before || last !== play.said("wrote"));
    return last;
  };
  assert.match(play.said("costs"), /: 1\.1 MB\.$/);
  const trained = await story();
  assert.match(trained, /^[A-Z]\w+ \w+ to the \w+\. /);
  await play.slide("step", 0);
  await play.until(() => play.it.state.step === 0);
  assert.ok(play.part("costs").hidden);
  const untrained = await story(trained);
  await play.slide("step", 4);
  await play.until(() => play.it.state.step === 4000);
  assert.equal(await story(untrained), trained);
  assert.equal(play.said("begun"), "One sunny morning");
});

test("a step that fails to load is reported, the model stays, and it can be retried", async () => {
  const play = await Play.open(), before = play.rows;
  refused = "all";
  await play.open("training");
  await play.slide("step", 1);
  await play.until(() => play.said("fetching").includes("could not be loaded: weights/step-100.safetensors did not come (no connection)"));
  assert.deepEqual(play.rows, before);
  assert.equal(play.said("stepIs"), "after 4,000 steps");
  await play.type("Once");
  assert.ok(play.part("fetching").hidden, "it was said, and the reader has gone on");
  refused = "";
  await play.slide("step", 1);
  await play.until(() => play.it.state.step === 100);
  assert.ok(play.part("fetching").hidden);
});

test("surprise adds up to that of the truth and what is above it", async () => {
  const play = await Play.open();
  await play.type(LONG);
  const rows = (await play.open("surprise")).querySelectorAll("tbody tr");
  assert.equal(rows.length, play.tokens.length);
  const cells = rows.map((row) => row.querySelectorAll("td").map((cell) => Number(cell.textContent.replace("−", "-"))));
  for (const [model, least, above] of cells) assert.ok(Math.abs(model - least - above) < 0.0151);
  const total = cells.reduce((sum, [model]) => sum + model, 0), told = parseFloat(play.said("surprise").split(" ")[1]);
  assert.ok(Math.abs(told - total) < 0.01 * cells.length);
  assert.match(play.said("surprise"), /the truth would have been surprised by [\d.]+\. That is [\d.]+ (more|less)/);
});

test("attention is told as a table, from any token and of any head", async () => {
  const play = await Play.open();
  await play.type(LONG);
  const fold = await play.open("attention"), table = () => play.part("weights").querySelectorAll("tr");
  const total = table().reduce((sum, row) => sum + Number(/[\d.]+/.exec(row.querySelector("td").textContent)[0]), 0);
  assert.ok(Math.abs(total - 100) < 6);
  const before = words(play.part("weights"));
  await play.press("Head 2 of block 1");
  assert.notEqual(words(play.part("weights")), before);
  fold.querySelectorAll("ol button")[3].click();
  assert.equal(table().length, 4, "the fourth token looks at four");
  assert.ok(play.part("lines").querySelectorAll("path").length > 0);
  await play.press("Show it");
  assert.equal(play.rows[0][0], " he");
  assert.match(words(table()[0]), /^Tom ?9\d %$/);
});

test("a removed part is named where it is displayed", async () => {
  const play = await Play.open("#play&block=1");
  await play.open("attention");
  assert.equal(play.said("silent"), "Block 2 is passed over: nobody looks.");
  await play.change({ block: null, head: [1, 0] });
  assert.ok(play.said("silent").startsWith("This head is taken away"));
  await play.change({ head: null });
  assert.ok(play.part("silent").hidden);
});

test("a probe reads what is hidden when it is due, and hardly a token earlier", async () => {
  const play = await Play.open();
  await play.open("beliefs");
  await play.press("Right before the animal");
  await play.until(() => play.said("believed").includes("in common"));
  assert.ok(play.said("believed").includes(" 93 % of the animal’s"));
  const due = play.hidden("animal");
  assert.deepEqual([due.duck, due.frog], [["50 %", "50 %"], ["40 %", "40 %"]]);
  assert.deepEqual([due.goat[1], due.fox[1]], ["10 %", "0 %"]);
  await play.press("A token earlier");
  const early = play.hidden("animal");
  assert.deepEqual(Object.values(early).map(([, p]) => p), Object.values(due).map(([, p]) => p));
  assert.ok(Number.parseFloat(early.duck[0]) < 20);
  await play.press("Right before “he”");
  assert.deepEqual(play.hidden("child"), { girl: ["0 %", "0 %"], boy: ["100 %", "100 %"] });
});

test("the probe shows nothing where it has nothing to read", async () => {
  const play = await Play.open();
  await play.open("beliefs");
  await play.until(() => play.said("believed").startsWith("The place is not told yet"));
  assert.deepEqual(play.hidden("animal").rabbit, ["–", "13 %"]);
  await play.type("One sunny morning Tom walked to the pond. There he met a little duck");
  assert.ok(play.said("believed").startsWith("The animal is known by now"));
  assert.deepEqual(play.hidden("animal").duck, ["–", "100 %"]);
  await play.press("The dragon said (in no story)");
  assert.ok(play.said("believed").startsWith("No story begins with these tokens"));
  assert.deepEqual(play.hidden("child"), { girl: ["–", "–"], boy: ["–", "–"] });
  await play.press("Right before the animal");
  await play.change({ block: 1 });
  assert.ok(play.said("believed").endsWith("the reading is made for the whole model."));
  await play.change({ step: 2000 });
  await play.until(() => play.it.state.step === 2000);
  assert.ok(play.said("believed").startsWith("Only the numbers of the finished model can be read"));
});

test("without its probes the panel shows only the truth", async () => {
  refused = "probes";
  const play = await Play.open();
  await play.open("beliefs");
  await play.until(() => play.said("believed").includes("could not be loaded: probes.safetensors did not come (404)"));
  assert.deepEqual(play.hidden("animal").rabbit, ["–", "13 %"]);
});

// What comes when its fold is opened --------------------------------------------------------------------------------

const ABOUT_POND = "#play&text=One+sunny+morning+Tom+walked+to+the+pond.+There+he+met+a";

test("a question about the text is answered, beside the truth", async () => {
  const play = await Play.open(ABOUT_POND);
  assert.ok(!asked.some((name) => name.includes("answering")), "until it is asked for");
  await play.open("ask");
  await play.until(() => play.said("answered"));
  assert.equal(play.said("answered"), "Asked “Which animal?” after “…to the pond. There he met a”, it would say “duck”. It gives that "
    + "44 %; in truth it has 50 %. Among the answers alone, model and truth have 95 % in common.");
  assert.equal(play.said("voice"), play.said("answered"));
  assert.deepEqual([play.hidden("answers").duck, play.hidden("answers").fox], [["44 %", "50 %"], ["0.2 %", "0 %"]]);
  assert.deepEqual(play.hidden("otherAnswers")["I do not know"], ["5.2 %", "–"]);
  await play.press("Who?");
  assert.equal(play.button("Who?").getAttribute("aria-pressed"), "true");
  assert.match(play.said("answered"), /^Asked “Who\?”.* it would say “Tom”\. .*\. The text leaves no choice: it is “Tom”\.$/);
  await play.until(() => location.hash === `${ABOUT_POND}&about=hero&open=ask`);
  assert.equal(play.said("voice"), play.said("answered"), "and not what comes next");
  await play.press("token 4: Tom");
  assert.match(play.said("answered"), /after “One sunny morning”/);
  assert.notEqual(play.hidden("answers").Tom[1], "100 %");
});

test("what is no story has no truth, and the model believes something all the same", async () => {
  const play = await Play.open("#play&text=The+dragon+said&about=place");
  assert.ok(play.place.querySelector("[data-fold=ask]").open, "what a link has changed is seen");
  await play.until(() => play.said("answered"));
  assert.match(play.said("answered"), /^Asked “Where\?” after “The dragon said”, it would say .* No story goes on like this, so there is no truth;/);
  for (const [believed, posterior] of Object.values(play.hidden("answers"))) assert.ok(believed !== "–" && posterior === "–");
  for (const typed of BAD) {
    await play.type(typed);
    assert.match(play.said("answered"), /^Asked “Where\?” (after|before) /, typed);
  }
});

test("a model that answers but does not come is missed in words, and can be asked for again", async () => {
  refused = "answering";
  const play = await Play.open(ABOUT_POND);
  const fold = await play.open("ask");
  await play.until(() => play.said("answering").startsWith("The model that answers could not be loaded: weights/answering.safetensors did not come (404)."));
  assert.equal(play.said("answered"), "");
  refused = "";
  play.button("Try again", fold).focus();
  await play.press("Try again", fold);
  await play.until(() => play.said("answered").includes("“duck”"));
  assert.ok(play.part("answering").hidden);
  assert.equal(document.activeElement, fold.querySelector("summary"), "the pressed button has gone");
});

const WISHES = JSON.parse(readFileSync(new URL("_static/playground/wishes.json", BOOK)));

test("it wants a happy ending as much as the slider says", async () => {
  const play = await Play.open();
  assert.ok(!asked.some((name) => name.startsWith("wish")), "until it is asked for");
  await play.open("wish");
  await play.until(() => play.said("wishCounted"));
  const stories = () => ["wishStory", "bestStory"].map((name) => play.said(name));
  const untuned = stories();
  assert.match(play.said("wishPoints"), /^2 for friends, laughed, smiled; 1 for .*; −1 for sad/);
  await play.slide("wish", 3);
  await play.until(() => play.said("voice").startsWith("β = 0.5:"));
  assert.deepEqual(asked.filter((name) => name.startsWith("wish")), ["wishes.json", "wish-0.5.safetensors"]);
  const { tuned, best, stories: [first, second] } = WISHES.wishes.find(({ beta }) => beta === 0.5);
  const cells = play.part("wishReached").querySelectorAll("tr").map((row) => row.querySelectorAll("td").map((cell) => Number.parseFloat(cell.textContent)));
  assert.deepEqual(cells, [tuned, best].map(({ reward, kl }) => [reward, kl].map((x) => Number(x.toFixed(2)))));
  assert.notEqual(stories()[0], untuned[0]);
  assert.equal(stories()[1].replace(/[+−]\d/g, ""), first);
  for (const [story, sum] of [["wishStory", "wishCounted"], ["bestStory", "bestCounted"]]) {
    const points = play.part(story).querySelectorAll("sup").map((mark) => Number(mark.textContent.replace("−", "-")));
    assert.equal(Number.parseInt(play.said(sum).replace("−", "-"), 10), points.reduce((total, p) => total + p, 0));
  }
  assert.equal(play.place.querySelectorAll("[data-chosen]").length, 2);
  const said = play.said("voice");
  await play.until(() => location.hash === "#play&wish=0.5&open=wish");
  assert.equal(play.said("voice"), said, "once, and not what comes next");
  await play.press("Another story of each");
  assert.equal(stories()[1].replace(/[+−]\d/g, ""), second);
  await Promise.all([play.slide("wish", 1), play.slide("wish", 0)]);
  await play.until(() => asked.includes("wish-2.safetensors"));
  await pause(50);
  assert.equal(play.it.state.wish, null, "what has been passed over is not shown when it comes");
});

test("a wish that does not come leaves the model, and can be asked for again", async () => {
  refused = "wish-0.25";
  const play = await Play.open("#play&wish=0.25");
  const fold = play.place.querySelector("[data-fold=wish]");
  await play.until(() => play.said("wishFetching").startsWith("The model β = 0.25 could not be loaded: weights/wish-0.25.safetensors did not come (404)."));
  await play.slide("wish", 0);
  await play.until(() => play.it.state.wish === null && play.said("wishCounted"));
  assert.ok(play.part("wishFetching").hidden);
  await play.slide("wish", 4);
  await play.until(() => play.said("wishFetching").includes("could not be loaded"));
  assert.equal(play.it.state.wish, null);
  refused = "";
  await play.press("Try again", fold);
  await play.until(() => play.it.state.wish === 0.25);
});

// The address and what is said ---------------------------------------------------------------------------------------

test("a link brings everything back", async () => {
  const play = await Play.open();
  await play.press("Tom", play.part("bars"));
  await play.change({ temperature: 0.7, topK: 5, topP: 0.8, off: ["scale"], seen: [0, 2], head: [1, 1], block: 0, at: 1 });
  await play.change({ step: 500 });
  await play.until(() => play.it.state.step === 500);
  await play.press("Copy a link to this");
  await play.until(() => play.said("shared") === "The link is in the address bar.");
  const { state } = play.it, { rows } = play;
  const again = await Play.open(location.hash);
  assert.deepEqual(again.it.state, state);
  assert.deepEqual(again.rows, rows);
  assert.ok(again.place.querySelector("[data-fold=broken]").open && again.place.querySelector("[data-fold=training]").open);
  assert.deepEqual(again.part("parts").querySelectorAll("input").map(({ checked }) => checked), [false, false, false, true, false]);
});

test("a damaged link shows what can be read of it", async () => {
  const plain = (await Play.open()).it.state;
  const damaged = ["#play", "#play&step=7&temperature=x&k=-1&p=2&off=all&drawn=9999&head=9.9&at=500&seen=a", "#play&drawn=1..2&block=2"];
  for (const hash of damaged) assert.deepEqual((await Play.open(hash)).it.state, plain, hash);
  assert.equal((await Play.open("#play&text=%F0%9F&k=1.5&temperature=2.1")).rows.length, 8);
});

test("an unavailable step in the address is reported", async () => {
  refused = "step-500";
  const play = await Play.open("#play&step=500");
  assert.ok(play.said("note").includes("after 500 steps could not be loaded"));
  assert.deepEqual(play.rows[0], [" Mia", "16 %", "17 %"]);
});

test("a broken link to the first page can be repaired there", async () => {
  refused = "step-4000";
  const play = await Play.open("#play&text=Once&off=mask.norm&block=0&step=500&k=3&p=0.5", { compact: true });
  assert.equal(play.rows.length, 5);
  assert.ok(play.said("note").includes("the model after 500 steps of training, and parts are missing"));
  assert.ok(play.said("note").endsWith("Limited by top-k 3 and top-p 0.5."));
  await play.press("Put everything back");
  await play.until(() => play.said("note").includes("after 4,000 steps could not be loaded"));
  assert.ok(!play.said("note").includes("parts are missing"));
  refused = "";
  await play.press("Put everything back");
  await play.until(() => location.hash === "#play&text=Once");
  assert.ok(play.part("note").hidden && play.part("mendAll").hidden);
  assert.equal(document.activeElement, play.part("field"));
  assert.ok(play.part("more").hash === "#play&text=Once");
});

test("a change is announced once, after a pause", async () => {
  const play = await Play.open(), heard = [];
  play.it.say = (text) => heard.push(text);
  for (const letter of " Tom") await play.type(play.text + letter);
  await play.until(() => heard.length);
  await pause(450);
  assert.equal(heard.length, 1);
  assert.match(heard[0], /^What comes next\? .*, .*, .*\. .*the truth\./);
});

test("what is written is said aloud, and where things stand only after it has changed", async () => {
  const play = await Play.open(), heard = [];
  play.it.say = (text) => heard.push(text);
  await play.change({ map: "mlp.1", seen: [0, 1] });
  await pause(450);
  assert.deepEqual(heard, [], "another picture of the same");
  await play.press("Mia");
  await play.press(play.it.thinking.texts[play.it.likeliest[0]].trim());
  await play.until(() => heard.length);
  assert.match(heard[0], /^Written: “Mia walked”\. What comes next\? /);
  await play.type(`${play.text} to`);
  await play.until(() => heard.length === 2);
  assert.match(heard[1], /^What comes next\? /, "what was typed is known");
});

test("Escape ends the writing, a look at another token and the sharing", async () => {
  const play = await Play.open(), escape = (part) => part.dispatchEvent(happening("keydown", { key: "Escape" }));
  play.button("Write a story").click();
  await play.until(() => play.it.state.drawn.length);
  escape(play.button("Stop"));
  assert.equal(play.it.writing, 0);
  await play.change({ at: 1 });
  play.part("back").focus();
  escape(play.part("back"));
  await play.settle();
  assert.deepEqual([play.it.state.at, document.activeElement], [null, play.part("field")]);
  play.part("picture").click();
  await play.until(() => play.part("sharing").querySelector("button"));
  escape(play.part("sharing").querySelector("button"));
  assert.ok(play.part("sharing").hidden);
  assert.deepEqual([document.activeElement, play.part("picture").getAttribute("aria-expanded")], [play.part("picture"), "false"]);
});

test("no two buttons for the whole screen have the same name", async () => {
  const play = await Play.open();
  const names = play.place.querySelectorAll("[data-lesson]").map((each) => each.getAttribute("aria-label"));
  assert.ok(names.length > 1 && new Set(names).size === names.length, names.join());
});

test("a letter costs one reading and one question to the oracle", async () => {
  const play = await Play.open(), { thinking } = play.it, letters = " Max sat";
  await play.type(LONG);
  const cost = { readings: 0, truths: 0 };
  const { reading } = thinking, { nextTokens } = thinking.oracle;
  thinking.reading = (...all) => { cost.readings += 1; return reading.apply(thinking, all); };
  thinking.oracle.nextTokens = (...all) => { cost.truths += 1; return nextTokens.apply(thinking.oracle, all); };
  for (const letter of letters) await play.type(play.text + letter);
  assert.equal(cost.readings, letters.length);
  assert.ok(cost.truths <= letters.length);
});

test("open in Python puts the beginning and the sliders into the cell", async () => {
  const play = await Play.open(), written = [];
  const original = 'beginning = "Once"\ntemperature = 1\ntop_k = None\ntop_p = None\nwrite()';
  const cell = { original, write: (code) => written.push(code), element: play.part("more") ?? play.place, runButton: play.button("Mia was a") };
  await play.press("Open in Python");
  assert.equal(play.said("voice"), "The cells of this page are not ready.");
  globalThis.tinytorchLive = { cells: [cell] };
  await play.type('Oh "no" \\ said Tom');
  await play.change({ temperature: 0.5, topK: 4 });
  await play.press("Open in Python");
  assert.deepEqual(written, ['beginning = "Oh \\"no\\" \\\\ said Tom"\ntemperature = 0.5\ntop_k = 4\ntop_p = None\nwrite()']);
  assert.equal(document.activeElement, cell.runButton);
  await play.change({ off: ["mask"] });
  await play.press("Open in Python");
  assert.match(written[1], /^# The finished model, with all its parts: not the one in the playground\.\nbeginning = /);
  delete globalThis.tinytorchLive;
});

test("a failed download is reported with the name of the file", async () => {
  for (const [name, answer, told] of [
    ["step-4000.safetensors", () => new Response("", { status: 404 }), /^weights.step-4000.safetensors did not come \(404\)$/],
    ["step-4000.safetensors", () => new Response("x".repeat(99)), /the file of weights is damaged/],
    ["grammar.json", () => new Response("<html>"), /^grammar.json did not come whole$/],
    ["tokenizer.json", () => { throw new TypeError("no"); }, /^tokenizer.json did not come \(no connection\)$/],
  ]) {
    globalThis.fetch = async (address) => (String(address).endsWith(name) ? answer() : served(address));
    await assert.rejects(Play.open(), ({ message }) => told.test(message), name);
  }
});

test("every link leads to a page", async () => {
  const play = await Play.open();
  const links = play.place.querySelectorAll("a").map((each) => each.getAttribute("href"));
  assert.ok(links.length >= 9);
  for (const link of links) assert.ok(existsSync(new URL(link.replace(/^\.\.\/book\/(.*)\.html$/, "$1.md"), BOOK)), link);
});

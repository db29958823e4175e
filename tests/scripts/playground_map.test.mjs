// The map of the model at work: its numbers beside the package, its columns, and what it says and does.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { beforeEach, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { columnsOf, share } from "../../book/_static/playground/map_columns.js";
import { angles, changes, lengthOf, nearest, pieces, stages, strongest } from "../../book/_static/playground/map_numbers.js";
import { PARTS, partNamed } from "../../book/_static/playground/map_parts.js";
import { Model } from "../../book/_static/playground/model.js";
import { readSafetensors } from "../../book/_static/playground/safetensors.js";
import { chosen, draw } from "../../book/_static/playground/sampling.js";
import { fromHash, toHash } from "../../book/_static/playground/state.js";
import { happening, openPage } from "./dom.mjs";
import { close, fileOf, known } from "./known.mjs";

const { playground } = await import("../../book/_static/playground/playground.js");
const { map } = await import("../../book/_static/playground/map.js");
const { tensors, metadata } = readSafetensors(fileOf("playground/weights/step-4000.safetensors"));
const model = new Model(tensors, metadata);
const BOOK = new URL("../../book/", import.meta.url);
const TOM = "One sunny morning Tom walked to the barn. There";
const read = (ids, broken) => model.read(ids, broken);

// Numbers ------------------------------------------------------------------------------------------------------------

test("what each part adds, and what would be guessed after it, are those of the package", () => {
  for (const { ids, added, after, scores, chances } of known("on_the_map").mapped) {
    const reading = read(ids), all = stages(reading, ids.length - 1);
    assert.deepEqual(all.map(({ part, block }) => [part, block]),
      [["token-embedding", null], ["attention", 0], ["mlp", 0], ["attention", 1], ["mlp", 1]]);
    for (const [i, stage] of all.entries()) {
      const rounding = 1e-5 * lengthOf(after[i]), what = `${ids} stage ${i}`;
      close(stage.after, after[i], { rounding, what });
      if (i) close(stage.added, added[i - 1], { rounding, what: `${what}, added` });
      close(reading.scores(stage.after), scores[i], { rounding: 1e-4, share: 1e-5, what: `${what}, scores` });
      if (i) {
        for (const { id, score, before, after: then } of Object.values(changes(reading, stage, 3)).flat()) {
          close([score, before, then], [scores[i][id] - scores[i - 1][id], chances[i - 1][id], chances[i][id]], { rounding: 2e-4, what });
        }
        const risen = chances[i].map((p, id) => p - chances[i - 1][id]);
        const { raised, lowered } = changes(reading, stage, 3);
        for (const [some, sign] of [[raised, 1], [lowered, -1]]) {
          const largest = risen.map((much) => sign * much).toSorted((a, b) => b - a).slice(0, 3).filter((much) => much >= 0.0005);
          close(some.map(({ id }) => sign * risen[id]), largest, { rounding: 1e-5, what });
          close(some.map(({ before, after: then }) => sign * (then - before)), largest, { rounding: 1e-5, what });
        }
      }
    }
  }
});

test("where a part is taken away nothing is added, and without the residual stream all is replaced", () => {
  const { ids } = known("on_the_map").mapped.at(-1), last = ids.length - 1;
  const passed = stages(read(ids, { block: 0 }), last);
  assert.deepEqual([lengthOf(passed[1].added), lengthOf(passed[2].added)], [0, 0]);
  assert.equal(strongest(read(ids, { block: 0 }), 0, last), null);
  assert.ok(lengthOf(passed[3].added) > 0);
  for (const { onto, added, after } of stages(read(ids, { residual: true }), last).slice(1)) {
    assert.equal(onto, null);
    assert.equal(added, after);
  }
  const both = stages(read(ids, { residual: true, block: 1 }), last);
  assert.ok(both[4].onto, "a block that is passed over replaces nothing");
});

test("the nearest tokens are those of the package", () => {
  for (const [id, cosines] of Object.entries(known("on_the_map").cosines)) {
    const found = nearest(model, Number(id), 6);
    close(found.map((one) => one.cosine), cosines.toSpliced(id, 1).toSorted((a, b) => b - a).slice(0, 6), { rounding: 1e-5 });
    close(found.map((one) => cosines[one.id]), found.map((one) => one.cosine), { rounding: 1e-5 });
  }
});

test("the clocks show the angles by which the package turns", () => {
  for (const [position, turned] of known("on_the_map").turned.entries()) {
    const found = angles(model, position);
    close(found.map(Math.cos), turned.map(Math.cos), { rounding: 1e-4 });
    close(found.map(Math.sin), turned.map(Math.sin), { rounding: 1e-4 });
  }
});

test("the head that is shown looks at one earlier token the most", () => {
  const { ids } = known("on_the_map").mapped.at(-1), last = ids.length - 1, reading = read(ids);
  for (const block of [0, 1]) {
    const looks = [0, 1, 2, 3].map((head) => Array.from(reading.attention(block, head).slice(last * ids.length + 1, (last + 1) * ids.length - 1)));
    const most = Math.max(...looks.flat()), { head, to, weight } = strongest(reading, block, last);
    assert.deepEqual([weight, looks[head][to - 1]], [most, most]);
  }
  assert.deepEqual(strongest(reading, 1, last).to, 4, "the last block looks from “There” back at “Tom”");
  assert.equal(strongest(reading, 0, 0).to, 0, "the start has nothing but itself");
});

test("a random number stops at the piece of the token that it draws", () => {
  const probs = chosen(read(known("on_the_map").mapped[2].ids).logits(3), {});
  const all = pieces(probs, 0);
  for (let i = 0; i < 1000; i += 1) {
    const number = (i + 0.5) / 1000, id = draw(probs, () => number);
    assert.equal(all.find(({ from, to }) => from <= number && number < to).id, id);
  }
  assert.ok(pieces(probs).length < 20 && pieces(probs).every(({ from, to }) => to - from >= 0.01));
});

// Columns ------------------------------------------------------------------------------------------------------------

const named = (columns) => columns.map(({ index, from, to }) => index ?? `+${to - from}`).join(" ");

test("every token has a column, or is counted in one; what must be seen is", () => {
  assert.equal(named(columnsOf(4, 3, 320)), "0 1 2 3");
  assert.equal(named(columnsOf(13, 12, 320)), "0 +8 9 10 11 12");
  assert.equal(named(columnsOf(13, 12, 320, [4])), "0 +3 4 +6 11 12");
  assert.equal(named(columnsOf(13, 12, 660, [4])), "0 1 2 3 4 5 6 7 8 9 10 11 12");
  for (const width of [250, 320, 660]) {
    for (let count = 1; count <= 112; count += 7) {
      for (let focus = 0; focus < count; focus += 5) {
        const wanted = [Math.floor(focus / 2), Math.floor(focus / 3)], columns = columnsOf(count, focus, width, wanted);
        const all = columns.flatMap(({ index, from, to }) => index ?? Array.from({ length: to - from }, (_, i) => from + i));
        assert.deepEqual(all, Array.from({ length: count }, (_, i) => i));
        for (const one of [0, focus, ...wanted]) assert.ok(columns.some(({ index }) => index === one), `${one} of ${count} in ${width}`);
        const [{ x, width: each }] = columns, end = columns.at(-1).x;
        assert.ok(x - each / 2 >= -0.01 && end + each / 2 <= width + 0.01);
      }
    }
  }
});

test("the weights of the columns are all of a look", () => {
  const { ids } = known("on_the_map").mapped.at(-1), weights = read(ids).looks(0, 2, 12);
  const columns = columnsOf(ids.length, 12, 320);
  close([columns.reduce((sum, column) => sum + share(weights, column), 0)], [1], { rounding: 1e-6 });
});

// The map in its page ------------------------------------------------------------------------------------------------

let reduced;

beforeEach(() => {
  reduced = true;
  globalThis.fetch = async (address) => new Response(readFileSync(new URL(address)));
  performance.getEntriesByType = () => [{ type: "navigate" }];
  globalThis.IntersectionObserver = class { observe() {} };
  globalThis.MutationObserver = class { observe() {} };
});

const words = (element) => element.textContent.replace(/\s+/gu, " ").trim();

async function open(hash = "") {
  openPage('<div class="tt-play" data-size="compact"></div><div class="tt-map"></div>', {
    address: `https://book.test/book/intro.html${hash}`, asked: reduced ? ["(prefers-reduced-motion: reduce)"] : [],
  });
  Element.prototype.getContext = () => ({ createImageData: (w, h) => ({ data: new Uint8ClampedArray(4 * w * h) }), putImageData() {} });
  globalThis.getComputedStyle = () => ({ getPropertyValue: () => "#ffffff" });
  document.documentElement.dataset.content_root = "../";
  const play = await playground(document.querySelector(".tt-play"));
  play.folds = {}; // the slider over the training would write on, and so read
  const it = await map(play, document.querySelector(".tt-map"));
  const settle = async () => { for (let last; last !== play.settled; await last) last = play.settled; };
  const part = (key) => it.rows[key];
  return {
    play, it, settle, part,
    press: async (button) => { button.click(); await settle(); },
    control: (name) => it.controls[name],
    change: async (changes_) => { play.change(changes_); await settle(); },
  };
}

test("the map is filled with what the playground computes, and reads nothing itself", async () => {
  const { play, it, change } = await open();
  const before = play.thinking.read;
  await change({ text: TOM });
  assert.equal(play.thinking.read - before, play.view.ids.length + 1, "one reading for both");
  assert.match(words(it.rows["attention.1"].said), /^Head 1 looks from “There” at “Tom” with 97.% of its attention\./);
  assert.equal(words(it.rows.sampling.picture.querySelector(".tt-play__row")), words(play.place.querySelector(".tt-play__row")));
  assert.match(words(it.rows.head.said), /^All 512 tokens get a score, .* The largest is “he” \(100 %\); the truth gives it 100 %\.$/);
  assert.equal(words(it.rows["mlp.0"].guess), "would guess he 79 %");
  assert.match(words(it.rows["mlp.0"].said), /^The MLP adds a vector of length 20 to one of length 2\.1, .* The guess is now “he” \(79.%\)\.$/);
  assert.equal(words(it.rows["mlp.0"].size), "adds length 20 to length 2.1");
  assert.equal(words(it.text), TOM);
});

test("it draws nothing while it is far from the screen, and all of it when it comes near", async () => {
  const { it, change } = await open();
  it.near = false;
  await change({ text: "Mia was a" });
  assert.equal(words(it.text), "One sunny morning");
  it.near = true;
  await change({});
  assert.equal(words(it.text), "Mia was a");
});

test("a press on a part opens it with its numbers and the way to its chapter; Escape closes it", async () => {
  const { play, it, press, part } = await open();
  await press(part("token-embedding").button);
  assert.equal(part("token-embedding").button.getAttribute("aria-expanded"), "true");
  const rows = part("token-embedding").open.querySelectorAll("tbody tr").map((row) => row.children.map(words));
  assert.deepEqual(rows.slice(0, 3).toSorted(), [["afternoon", "0.99"], ["day", "0.99"], ["evening", "0.99"]]);
  await press(part("mlp.1").button);
  assert.equal(part("token-embedding").open.hidden, true, "one is open at a time");
  const [first] = part("mlp.1").open.querySelectorAll("tbody tr").map((row) => row.children.map(words));
  assert.deepEqual(first, ["Mia", "+3.9", "3.0 %", "16 %"]);
  it.element.dispatchEvent(happening("keydown", { key: "Escape" }));
  assert.equal(document.activeElement, part("mlp.1").button);
  assert.equal(play.state.map, null);
});

test("a number that is thrown is good for one text", async () => {
  const { play, press, part, change } = await open();
  play.random = () => 0.4;
  await press(part("sampling").button);
  const [again, write] = part("sampling").open.querySelectorAll("button");
  assert.equal(write.getAttribute("aria-disabled"), "true");
  await press(again);
  assert.match(words(part("sampling").open), /The random number 0\.400 lands on “Tom”/);
  await change({ text: "Mia was" });
  assert.match(words(part("sampling").open), /No number has been thrown yet/);
  await press(write);
  assert.equal(play.state.text, "Mia was", "there is nothing to write");
  await press(again);
  await press(write);
  assert.equal(play.state.drawn.length, 1);
});

test("every part opens, says two sentences and leads to pages that there are", async () => {
  const { press, it } = await open();
  for (const row of Object.values(it.rows)) {
    await press(row.button);
    assert.equal(row.open.hidden, false, row.key);
    const said = words(row.open.querySelector(".tt-map__says"));
    assert.equal(said.match(/[.?!](?= |$)/gu).length, 2, said);
    const links = row.open.querySelectorAll(".tt-map__chapters a").map((each) => each.getAttribute("href"));
    assert.ok(links.length);
    for (const link of links) assert.ok(existsSync(new URL(link.replace(/^\.\.\/book\/(.*)\.html$/, "$1.md"), BOOK)), link);
  }
});

test("an address opens a part, under the name that a chapter's card has for it too", async () => {
  const { it, play } = await open("#play&text=Mia+was+a&map=cache");
  assert.equal(it.open, "attention.0");
  assert.equal(fromHash(toHash(play.state)).map, "cache");
  assert.equal(play.state.text, "Mia was a");
  for (const [said, key] of [["stack", "gpt"], ["mlp.1", "mlp.1"], ["block", "block.0"], ["tokens.3", null], ["mlp.2", null], ["toString", null]]) {
    assert.equal(partNamed(said, 2), key, said);
  }
});

test("a press on a token looks from it, in the playground as well", async () => {
  const { play, it, press } = await open(`#play&text=${TOM.replaceAll(" ", "+")}`);
  const chip = it.rows.tokens.picture.querySelectorAll("button").find((each) => each.getAttribute("aria-label").endsWith("Tom"));
  await press(chip);
  assert.equal(play.state.at, 4);
  assert.match(words(it.rows["token-embedding"].said), /^“Tom” becomes its vector/);
  await press(it.rows.sampling.picture.querySelector(".tt-play__press"));
  assert.equal(play.view.ids.length, 5, "what was pressed stands in the place of what came after");
});

test("another head draws its own arcs until it is pressed again", async () => {
  const { it, press, play } = await open();
  const [about] = it.rows["attention.0"].element.querySelectorAll(".tt-map__looks");
  const heads = it.rows["attention.0"].element.querySelectorAll(".tt-map__heads button");
  assert.equal(words(about), "looks most strongly: 96 % at “One”");
  await press(heads[0]);
  assert.equal(words(about), "looks: 60 % at “One”");
  assert.deepEqual(play.state.seen, [0, 0]);
  await press(heads[0]);
  assert.equal(words(about), "looks most strongly: 96 % at “One”");
});

test("one token is watched from part to part, and stands in the text at the end", async () => {
  const { play, it, control, settle } = await open();
  play.random = () => 0.5;
  control("watch").click();
  const seen = [], told = [];
  while (it.watch.on) {
    seen.push(it.watch.steps[it.watch.at]);
    told.push(words(it.told));
    control(it.watch.isLast ? "stop" : "next").click();
    await settle();
  }
  assert.deepEqual(seen, ["tokens", "token-embedding", "positions", "attention.0", "mlp.0", "attention.1", "mlp.1", "head", "sampling", "written"]);
  assert.equal(new Set(told).size, 10);
  const id = draw(chosen(read([10, 299, 401, 350]).logits(3), {}), () => 0.5);
  assert.deepEqual(play.view.ids, [299, 401, 350, id]);
  assert.match(told[8], /^The random number 0\.500 lands on “Tom”, which had a probability of 16 %\.$/);
  assert.equal(told[9], "The text goes on with “Tom”, and everything runs again.");
});

test("a watch waits for a press where less motion is wanted, and runs by itself elsewhere", async () => {
  let { it, control } = await open();
  control("watch").click();
  assert.equal(it.watch.paused, true);
  assert.equal(words(control("pause")), "Run");
  control("stop").click();
  assert.equal(it.element.hasAttribute("data-watching"), false);
  reduced = false;
  ({ it, control } = await open());
  it.watch.pace = 1;
  control("watch").click();
  while (!it.watch.isLast) await pause(1);
  assert.equal(it.watch.paused, false);
});

test("the focus stays with the buttons of a watch, and goes back to where it began", async () => {
  const { it, control } = await open();
  const press = (name) => { control(name).focus(); control(name).click(); };
  press("watch");
  assert.equal(document.activeElement, control("next"), "nothing moves by itself here");
  while (!it.watch.isLast) press("next");
  assert.equal(document.activeElement, control("stop"));
  control("stop").click();
  assert.equal(document.activeElement, control("watch"));
  press("watch");
  control("next").dispatchEvent(happening("keydown", { key: "Escape" }));
  assert.deepEqual([it.watch.on, document.activeElement], [false, control("watch")]);
});

test("a reader in the drawing is not lost when the map takes its place", async () => {
  const { play } = await open();
  const place = document.querySelector(".tt-map"), link = document.createElement("a");
  place.append(link);
  link.focus();
  const it = await map(play, place);
  assert.ok(document.activeElement === it.controls.watch);
});

test("a part that opens stays where it was pressed, though another closes above it", async () => {
  const { press, part } = await open();
  await press(part("tokens").button);
  const { button } = part("mlp.1"), moved = [];
  button.getBoundingClientRect = () => ({ top: part("tokens").open.hidden ? 100 : 300 });
  globalThis.scrollBy = ({ top }) => moved.push(top);
  button.focus();
  await press(button);
  assert.deepEqual(moved.filter(Boolean), [-200]);
});

test("a head says where it looks, and a number is said once", async () => {
  const { play, it, press, part, change } = await open(), heard = [];
  play.say = (text) => heard.push(text);
  await press(it.rows["attention.0"].element.querySelector(".tt-map__heads button"));
  assert.match(heard[0], /^Head 1 looks from “morning” at “One” with 60.% of its attention\./);
  await press(part("sampling").button);
  const said = part("sampling").open.querySelector("[role=status]"), [text] = said.childNodes;
  await change({ temperature: 1 });
  assert.equal(said.childNodes[0], text, "it is not written again, or it would be read again");
});

test("the same part of two blocks has two names", async () => {
  const { it } = await open();
  const names = Object.values(it.rows).map(({ button }) => words(button));
  assert.equal(new Set(names).size, names.length);
  assert.equal(words(it.rows["mlp.1"].button), "Norm and MLP of block 2: what each token makes of it");
});

test("what is typed while a token is watched ends the watch", async () => {
  const { it, control, change } = await open();
  control("watch").click();
  await change({ text: "Mia" });
  assert.equal(it.watch.on, false);
});

test("every part has the name of its drawing", () => {
  const drawn = readFileSync(new URL("drawings/model.py", BOOK), "utf8").split("def map_of_the_book")[1];
  const found = Object.values(PARTS).filter(({ name, remark }) => drawn.includes(`"${name}"`) && drawn.includes(`"${remark}"`));
  assert.ok(found.length >= 10, found.map(({ name }) => name).join());
});

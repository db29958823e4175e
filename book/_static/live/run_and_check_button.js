// The first button of a cell: Run, in an exercise Check; while the cell runs, Stop. What a press
// does, and what has to run before.

import { button, make } from "./elements.js";
import { anotherTry, duration, notLoaded } from "./rows.js";

export const SLOW = 2; // seconds; what takes longer in the browser says so before it starts

export class RunAndCheckButton {
  constructor(cell, page) {
    this.cell = cell;
    this.page = page;
    // one button, so that who has run a cell can stop it, and run it again, without looking for it
    this.element = button("", "", () => {
      if (page.running.has(cell) || page.waiting.delete(cell)) page.kernel.stop();
      else cell.press();
    });
    this.element.classList.add("tt-live__button--run");
    this.toHere = button("Run to here", "", () => this.pressToHere());
    this.offer();
  }

  // Runs the cells above that have not run, and this one; it is offered while there are such cells.
  pressToHere() {
    this.cell.above?.remove();
    this.element.focus(); // it is Stop now, and the pressed button goes
    return this.#runBefore(this.#above, Boolean(this.cell.info.smaller));
  }

  // All of them but exercises and their solutions, which are the reader's.
  get #above() {
    return this.cell.notRun.filter((each) => !each.isStub && !each.isSolution);
  }

  offerToHere() {
    const above = this.#above, { cell, toHere } = this, seconds = secondsOf([...above, cell]);
    toHere.hidden = !above.length || cell.isSolution || this.element.textContent === "Stop";
    toHere.textContent = `Run to here${seconds > SLOW ? `, about ${duration(seconds)}` : ""}`;
    toHere.setAttribute("aria-label", `${toHere.textContent}: ${counted(above)} above, then ${cell.name}`);
  }

  offer(word = this.cell.isStub ? "Check" : "Run") {
    this.element.textContent = word;
    this.element.setAttribute("aria-label", `${word} ${this.cell.name}`);
    if (this.cell.button) this.offerToHere(); // all cells are there
  }

  // Runs the cell; an exercise takes the report, and says what comes next.
  async press(small = false) {
    const { cell, page } = this;
    if (page.running.has(cell) || page.waiting.has(cell)) return undefined;
    const result = this.#knownToMiss() ?? await cell.run({ small, steps: cell.stepping });
    if (result.type === "missing" && result.needed.length) {
      const first = [cell.isStub ? [] : this.#allAbove(result), result.needed].find(isQuick);
      if (first) return this.#runAfter(first, result, small);
      this.#offerAbove(result, small);
      return result;
    }
    // nothing above defines what is missing: then Python says so itself
    const last = result.type === "missing" ? await cell.run({ small, steps: cell.stepping, force: true }) : result;
    const next = last.type === "done" && cell.isStub && cell.onchecked?.(cell.report);
    if (next) page.announce(next);
    return last;
  }

  // What the build knows to be missing, while no Python can have it yet.
  #knownToMiss() {
    const { cell, page } = this, { missing } = cell.info;
    cell.above?.remove();
    if (cell.changed || !missing || !["off", "starting"].includes(page.kernel.state)) return undefined;
    const needed = missing.needed.map((i) => page.cells[i]).filter(({ runnable }) => runnable);
    if (needed.some((each) => page.running.has(each))) return undefined; // it may come: Python will say
    cell.element.dataset.live = "missing";
    return { type: "missing", names: missing.names, needed };
  }

  #allAbove({ needed }) {
    return this.cell.notRun.filter((each) => !each.isStub && !each.isSolution || needed.includes(each));
  }

  // Offers to run what is above: all of it, so that every number comes out as in the book, or
  // only the cells that define what is missing, which is enough for an exercise.
  #offerAbove({ names, needed }, small) {
    const { cell, page } = this, all = this.#allAbove({ needed });
    cell.say("");
    const list = names.slice(0, 4).join(", ") + (names.length > 4 ? ", …" : "");
    const text = `Needs ${list} from above.`;
    cell.above = make("div", "tt-live__above");
    cell.above.append(make("span", "", text));
    if (!cell.isStub) this.#offerToRun("Run all above", all, small);
    if (cell.isStub || needed.length < all.length) this.#offerToRun("Run what it needs", needed, small);
    cell.bar.after(cell.above);
    cell.above.querySelector("button").focus();
    page.announce(text);
  }

  #offerToRun(name, chosen, small) {
    const slow = secondsOf(chosen);
    const time = slow > 5 ? `, about ${duration(slow)}` : "";
    const { above } = this.cell;
    above.append(button(`${name} (${counted(chosen)}${time})`, "", async () => {
      this.element.focus(); // before what has the focus goes
      above.remove();
      await this.#runBefore(chosen, small);
    }));
  }

  async #runBefore(chosen, small) {
    const { cell, page } = this;
    let last;
    page.waiting.add(cell);
    this.offer("Stop");
    const failed = await page.runAll(chosen, (each, i) => {
      this.step = `Running cell ${each.number} above: ${i + 1} of ${chosen.length}`;
      cell.say(page.loading || this.step, "busy");
      last = each;
      return page.waiting.has(cell);
    });
    const goesOn = page.waiting.delete(cell);
    this.offer();
    if (goesOn && !failed) return this.press(small);
    cell.say(!goesOn ? "Stopped" : failed.load ? notLoaded(failed.text)
      : `Cell ${last.number} above failed: fix it first`, "error");
    page.announce(`${cell.name}: ${cell.status.textContent}`, goesOn);
    if (goesOn && failed.load) this.offerTry(small);
    return undefined;
  }

  // What it needs is run by itself, if that is quick; afterwards it says so.
  async #runAfter(chosen, missing, small) {
    const last = await this.#runBefore(chosen, small);
    if (last?.type !== "done") return last ?? missing;
    const first = `${counted(chosen)} above ran first.`, { status } = this.cell;
    this.cell.say(`${status.textContent}. ${first}`, status.dataset.state);
    this.page.announce(first);
    return last;
  }

  offerTry(small) {
    const row = anotherTry(button, this.cell.name, () => {
      if (row.contains(document.activeElement)) this.element.focus(); // before it goes
      this.press(small);
    });
    this.cell.above = row;
    this.cell.bar.after(row);
  }
}

const counted = (list) => list.length === 1 ? "1 cell" : `${list.length} cells`;

// The seconds that cells take in the browser, at their smaller size nearly none.
export const secondsOf = (list) =>
  list.reduce((sum, { info }) => sum + (info.smaller ? 0 : info.expected ?? 0), 0);

// Whether there are cells that may be run unasked: as the book has them, and known to be short.
const isQuick = (list) =>
  list.length > 0 && list.every(({ changed, info }) => !changed && !info.smaller && info.expected !== undefined)
  && secondsOf(list) <= SLOW;

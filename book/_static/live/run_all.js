// The button at the head of a page that runs its cells from top to bottom; while they run, Stop.

import { make } from "./elements.js";
import { duration, notLoaded } from "./rows.js";
import { SLOW, secondsOf } from "./run_and_check_button.js";

// Of a page, what it runs: all but the exercises, which wait for their reader.
const toRun = (page) => page.cells.filter((cell) =>
  cell.runnable && !cell.isStub && !cell.isSolution && cell.ran === null);

export function runAllCells(page, element) {
  const told = make("span", "tt-live__told");
  element.after(" ", told);
  let running = false, stopped = false;
  const offer = () => {
    element.textContent = running ? "Stop" : "Run all cells";
    element.setAttribute("aria-label", running ? "Stop running all cells" : "Run all cells");
  };
  element.addEventListener("click", async () => {
    if (running) {
      stopped = true;
      page.kernel.stop();
      return;
    }
    const model = document.querySelector(".tt-talk");
    if (model && model.dataset.state !== "whole") {
      told.textContent = "The cells of this page need the model: fetch it first, just below.";
      page.announce(told.textContent);
      [...model.querySelectorAll("button")].find((each) => !each.closest("[hidden]"))?.focus();
      return;
    }
    const list = toRun(page);
    [running, stopped] = [true, false];
    offer();
    const seconds = secondsOf(list);
    const takes = seconds > SLOW ? `, about ${duration(seconds)} in all` : "";
    page.announce(`Running ${list.length} cells${takes}`);
    let last;
    const failed = await page.runAll(list, (cell, i) => {
      if (!stopped) told.textContent = `Cell ${i + 1} of ${list.length}${takes}`;
      if (!stopped && i && i % Math.ceil(list.length / 4) === 0) page.announce(told.textContent);
      last = cell;
      return !stopped;
    }, true);
    running = false;
    offer();
    told.textContent = stopped ? `Stopped at cell ${last.number}.`
      : !failed ? "All cells have run."
        : failed.load ? notLoaded(failed.text) : `Cell ${last.number} has not ended well: look there first.`;
    page.announceToo(told.textContent);
  });
  offer();
  element.disabled = false;
}

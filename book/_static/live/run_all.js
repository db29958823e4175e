// The buttons that run the cells of a page from top to bottom, in its toolbar and at its head; while they run, Stop.

import { make } from "./elements.js";
import { duration, notLoaded } from "./rows.js";
import { SLOW, secondsOf } from "./run_and_check_button.js";

// Of a page, what it runs: all but the exercises, which wait for their reader.
const toRun = (page) => page.cells.filter((cell) =>
  cell.runnable && !cell.isStub && !cell.isSolution && cell.ran === null);
const timeOf = (list) => secondsOf(list) > SLOW ? `about ${duration(secondsOf(list))}` : "";

// buttons: all say what a press does; the one in the toolbar, and a text beside the last, how far it is.
export function runAllCells(page, buttons) {
  const told = make("span", "tt-live__told"), names = buttons.map(({ textContent }) => textContent);
  buttons.at(-1).after(" ", told);
  let running = false, stopped = false;
  const offer = (step = "") => {
    const time = timeOf(toRun(page));
    buttons.forEach((element, i) => {
      const said = step && element.closest(".article-header-buttons") ? `Stop ${step}` : "Stop";
      element.textContent = running ? said : names[i];
      element.setAttribute("aria-label", running ? `${element.textContent} running all cells` : ["Run all cells", time].filter(Boolean).join(", "));
      element.title = running ? "" : time;
    });
  };
  const press = async () => {
    if (running) {
      stopped = true;
      page.kernel.stop();
      return;
    }
    const model = document.querySelector(".tt-talk");
    if (model && model.dataset.state !== "whole") {
      told.textContent = "The cells of this page need the model: fetch it first, just below.";
      [...model.querySelectorAll("button")].find((each) => !each.closest("[hidden]"))?.focus();
      page.announce(told.textContent);
      return;
    }
    const list = toRun(page), time = timeOf(list), takes = time && `, ${time} in all`;
    [running, stopped] = [true, false];
    offer();
    page.announce(`Running ${list.length} cells${takes}`);
    let last;
    const failed = await page.runAll(list, (cell, i) => {
      if (stopped) return false;
      last = cell;
      told.textContent = `Cell ${i + 1} of ${list.length}${takes}`;
      offer(`${i + 1}/${list.length}`);
      if (i && i % Math.ceil(list.length / 4) === 0) page.announce(told.textContent);
      return true;
    }, true);
    running = false;
    offer();
    told.textContent = stopped ? `Stopped at cell ${last.number}.`
      : !failed ? "All cells have run."
        : failed.load ? notLoaded(failed.text) : `Cell ${last.number} failed: fix it first.`;
    page.announce(told.textContent, Boolean(failed));
  };
  for (const element of buttons) {
    element.addEventListener("click", press);
    element.disabled = false;
  }
  offer();
}

// The entry of the menu that opens the page where it is: Python comes, and the first cell that is seen waits for a press.
export function openHere(page, entry) {
  entry.addEventListener("click", (event) => {
    event.preventDefault();
    const { bar, runButton } = page.cells.find((cell) => cell.runnable && cell.bar.checkVisibility()) ?? {};
    bar?.scrollIntoView({ block: "center" });
    runButton?.focus({ preventScroll: true });
    page.kernel.load();
  });
}

// The ladder of an exercise: one hint after the other, the solution last, each at a press.

import { make } from "./elements.js";
import { memory } from "./remembered_progress.js";

const taken = memory("hints", () => dispatchEvent(new Event("tt-progress")));

export class Ladder {
  // hints and solution: the elements that the page has for them, hidden here until they are asked for
  constructor(id, { name, stub, hints, solution }, { button, announce }) {
    Object.assign(this, { id, name, announce, solution });
    this.rungs = hints.map((hint, i) => plain(hint, hints.length > 1 ? `Hint ${i + 1}` : "Hint"));
    if (solution) this.rungs.push(solution);
    this.press = button("", "", () => this.climb());
    this.advice = make("div", "tt-hint admonition");
    this.element = make("div", "tt-ladder", "", { id: `${id}-hints` });
    this.element.append(this.press);
    this.stub = stub;
    stub.after(this.element, this.advice);
    this.advise();
    addEventListener("tt-progress", () => this.show());
  }

  get climbed() {
    return this.rungs.map((_, i) => Boolean(taken.get(`${this.id}/${i}`)));
  }

  // What the last report advises comes before all other hints.
  advise(checks = []) {
    const failed = checks.find(({ hint }) => hint);
    this.advice.replaceChildren();
    this.advice.hidden = true;
    if (failed) {
      const title = make("p", "admonition-title", `Hint on what failed: ${failed.claim}`);
      this.advice.append(title, make("p", "", failed.hint));
    }
    this.show();
  }

  show() {
    const { climbed } = this;
    this.rungs.forEach((rung, i) => { rung.hidden = !climbed[i]; });
    this.next = this.advice.firstChild && this.advice.hidden ? -1 : climbed.indexOf(false);
    const number = this.rungs.length - (this.solution ? 1 : 0);
    const word = this.next < 0 ? "A hint on what failed"
      : this.rungs[this.next] === this.solution ? "Show the solution"
        : number > 1 ? `Hint ${this.next + 1} of ${number}` : "A hint";
    this.press.textContent = word;
    this.press.setAttribute("aria-label", `${word}, ${this.name}`);
    this.element.hidden = this.next < 0 && !(this.advice.firstChild && this.advice.hidden);
    this.#follow();
  }

  // The button stands below the hints that have been taken, and keeps the focus when it moves there.
  #follow() {
    const shown = [this.advice, ...this.rungs].filter((rung) => !rung.hidden && rung !== this.solution);
    const last = shown.at(-1) ?? this.stub;
    if (last.nextElementSibling === this.element) return;
    const focused = document.activeElement === this.press;
    last.after(this.element);
    if (focused) this.press.focus();
  }

  climb() {
    const rung = this.next < 0 ? this.advice : this.rungs[this.next];
    if (rung === this.advice) rung.hidden = false;
    else taken.set(`${this.id}/${this.next}`, true);
    if (rung === this.solution) this.unfold();
    this.show();
    rung.scrollIntoView({ block: "nearest" });
    if (rung !== this.solution) this.announce(rung.innerText);
    else rung.querySelector("summary").focus();
  }

  // Shows the solution, which is open from then on.
  unfold() {
    if (!this.solution) return;
    taken.set(`${this.id}/${this.rungs.indexOf(this.solution)}`, true);
    this.solution.querySelector("details").open = true;
    this.show();
  }
}

// A hint without the theme's fold: the ladder opens it.
function plain(fold, title) {
  const hint = fold.cloneNode(true); // without what listens to the fold
  hint.className = "tt-hint admonition";
  hint.removeAttribute("id");
  hint.querySelector(".toggle-button")?.remove();
  hint.querySelector(".admonition-title").replaceWith(make("p", "admonition-title", title));
  fold.replaceWith(hint);
  return hint;
}

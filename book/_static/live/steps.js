// The lines of a cell in the order in which they ran, each with the names that it changed.

import { make } from "./elements.js";

export class Steps {
  // steps: [[first line, last line, function, [[name, kind, value], ...]], ...], as step_through.py records them
  constructor(cell, { steps, more }, announce) {
    const { name, bar, pre } = cell;
    Object.assign(this, { cell, steps, more, announce, length: cell.source.split("\n").length });
    this.code = cell.element.querySelector(".tt-live__editor") ?? pre;
    this.panel = make("div", "tt-live__bar tt-step", "", { role: "group", "aria-label": `Steps of ${name}` });
    this.slider = make("input", "", "", { type: "range", min: 1, max: steps.length, "aria-label": `Step of ${name}` });
    this.where = make("p");
    this.changes = make("ul");
    this.panel.append(this.#button("Previous", () => this.#go(-1)), this.#button("Next", () => this.#go(1)),
      this.#button("Close", () => this.close()), this.slider, this.where, this.changes);
    this.slider.addEventListener("input", () => this.show(this.slider.value - 1));
    this.panel.addEventListener("keydown", ({ key, target }) => {
      if (key === "Escape") this.close();
      else if (target !== this.slider) this.#go({ ArrowLeft: -1, ArrowRight: 1 }[key]); // it moves by itself
    });
    bar.after(this.panel);
    this.observer = new ResizeObserver(() => this.#mark());
    if (bar.contains(document.activeElement)) this.slider.focus();
    this.show(0);
    this.observer.observe(this.code);
  }

  // Unlike others, it takes every press of a double click and of a key that is held.
  #button(text, act) {
    const made = make("button", "tt-live__button", text, { type: "button", "aria-label": `${text}: steps of ${this.cell.name}` });
    made.addEventListener("click", act);
    return made;
  }

  #go(by) {
    if (this.steps[this.at + by]) this.show(this.at + by);
  }

  show(at) {
    this.at = at;
    const [first, , inside, changes] = this.steps[at];
    const where = `line ${first} of ${this.length}${inside && `, in ${inside}`}`;
    this.where.textContent = `Step ${at + 1} of ${this.steps.length}, ${where}`;
    const rows = changes.map((change) => {
      const row = make("li");
      row.append(...change.filter(Boolean).map((text, i) => make(i === 1 ? "span" : "code", "", text)));
      return row;
    });
    if (!rows.length) rows.push(make("li", "", "No name changes."));
    if (this.more && !this.steps[at + 1]) rows.push(make("li", "", "And so on."));
    this.changes.replaceChildren(...rows);
    const text = `${where}: ${changes.map(spoken).join("; ") || "no name changes"}`;
    this.slider.value = at + 1;
    this.slider.setAttribute("aria-valuetext", text);
    if (document.activeElement !== this.slider) this.announce(text); // else it is read as the slider's value
    this.#mark();
  }

  // Marks the lines in the cell: in its editor, where they may be broken, or in the book's own markup.
  #mark() {
    const [first, last] = this.steps[this.at], { paddingTop, lineHeight } = getComputedStyle(this.code);
    let [top, bottom] = [first - 1, last].map((line) => Number.parseFloat(paddingTop) + line * Number.parseFloat(lineHeight));
    const edited = this.code.querySelectorAll(".cm-line"), box = this.code.getBoundingClientRect();
    if (edited.length) {
      top = edited[first - 1].getBoundingClientRect().top - box.top;
      bottom = edited[last - 1].getBoundingClientRect().bottom - box.top;
    }
    this.code.classList.add("tt-step__code");
    this.code.style.setProperty("--tt-step-top", `${top}px`);
    this.code.style.setProperty("--tt-step-height", `${bottom - top}px`);
  }

  close() {
    this.observer.disconnect();
    this.code.classList.remove("tt-step__code");
    if (this.panel.contains(document.activeElement)) this.cell.stepButton.focus();
    this.panel.remove();
    this.cell.steps = null;
  }
}

// Of an array the shape is said, of anything else the value.
const spoken = ([name, kind, value]) => `${name}, ${/, /.test(kind) ? kind.split(", ")[0] : `${kind} ${value}`}`.trim();
